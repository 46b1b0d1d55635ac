//! `#[immediate]`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprLit, ItemStatic, Lit, LitStr, Meta, Path, StaticMutability, Token};

/// What stands in the parentheses.
struct Options {
    root: Path,
    name: Option<LitStr>,
    is_shared: bool,
}

const KNOWN: &str = "the options are `name = \"…\"`, `shared` and `crate = path`";

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut options =
            Options { root: syn::parse_quote!(::immediate), name: None, is_shared: false };
        while !input.is_empty() {
            if input.peek(Token![crate]) {
                input.parse::<Token![crate]>()?;
                input.parse::<Token![=]>()?;
                options.root = input.call(Path::parse_mod_style)?;
            } else {
                let option: Ident =
                    input.parse().map_err(|error| Error::new(error.span(), KNOWN))?;
                match option.to_string().as_str() {
                    "shared" => options.is_shared = true,
                    "name" => {
                        input.parse::<Token![=]>()?;
                        let name: LitStr = input.parse()?;
                        if name.value().is_empty() || name.value().contains([',', '=', ' ']) {
                            let text = "a name is not empty and has no comma, no `=` and no space, \
                                        so that it can stand in IMMEDIATE=name=value,…";
                            return Err(Error::new(name.span(), text));
                        }
                        options.name = Some(name);
                    }
                    _ => return Err(Error::new(option.span(), KNOWN)),
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

pub(crate) fn expand(options: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let Options { root, name, is_shared } = syn::parse2(options)?;
    let whole = item.clone();
    let item: ItemStatic = syn::parse2(item).map_err(|_| {
        let text = "#[immediate] goes on a static: \
                    `static NAME: Immediate<T> = Immediate::new(value);`";
        Error::new(whole.span(), text)
    })?;
    if let StaticMutability::Mut(token) = &item.mutability {
        let text = "an immediate variable is set through `NAME.set(value)`: remove `mut`";
        return Err(Error::new(token.span(), text));
    }
    let ItemStatic { attrs, vis, ident, ty, expr, .. } = &item;
    let plain = ident.to_string();
    let plain = plain.strip_prefix("r#").unwrap_or(&plain);
    let name = match name {
        Some(name) => quote!(#name),
        None => quote!(::core::concat!(::core::module_path!(), "::", #plain)),
    };
    let doc = first_line(attrs);
    let conditions = attrs
        .iter()
        .filter(|attribute| ["cfg", "cfg_attr"].iter().any(|name| attribute.path().is_ident(name)));
    let conditions: Vec<_> = conditions.collect();
    let site = Span::mixed_site();
    let value = quote_spanned!(ty.span()=> <#ty as #root::__private::IsImmediate>::Value);
    Ok(quote_spanned! {site=>
        #(#attrs)*
        #vis static #ident: #ty = {
            const DESCRIPTOR: &#root::__private::Descriptor =
                &#root::__private::Descriptor::new::<#value>(
                    || #root::__private::initial::<#value>(#expr),
                    #name,
                    #doc,
                    #root::__private::Place {
                        file: ::core::file!(),
                        line: ::core::line!(),
                        column: ::core::column!(),
                    },
                    #is_shared,
                );
            #root::__private::describe::<#value>(#expr, DESCRIPTOR)
        };

        #(#conditions)*
        #[doc(hidden)]
        #[allow(non_camel_case_types, dead_code, clippy::upper_case_acronyms)]
        #vis enum #ident {}

        #(#conditions)*
        const _: () = {
            #[automatically_derived]
            impl #root::__private::Declared for #ident {
                type Value = #value;
                const BITS: u128 = #root::__private::initial_constant::<#value>(#expr);
            }
            #root::__private::declare!(#ident);
        };
    })
}

/// The first line of the documentation.
fn first_line(attributes: &[syn::Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    });
    lines
        .flat_map(|text| text.lines().map(str::trim).map(String::from).collect::<Vec<_>>())
        .find(|line| !line.is_empty())
        .unwrap_or_default()
}
