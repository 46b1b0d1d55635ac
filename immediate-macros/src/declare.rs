//! `#[immediate]`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{
    Error, Expr, ExprLit, GenericArgument, ItemStatic, Lifetime, Lit, LitStr, Meta, Path,
    PathArguments, StaticMutability, Token, Type,
};

/// What stands in the parentheses.
struct Options {
    root: Path,
    name: Option<LitStr>,
    is_shared: bool,
}

const KNOWN: &str = "the options are `name = \"…\"`, `shared` and `crate = path`";

/// An error of the parser, at `option` where the input has ended.
fn not_known(error: Error, option: Span) -> Error {
    let at_end = error.to_string().starts_with("unexpected end of input")
        || error.to_string().starts_with("expected `=`");
    Error::new(if at_end { option } else { error.span() }, KNOWN)
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut options =
            Options { root: syn::parse_quote!(::immediate), name: None, is_shared: false };
        while !input.is_empty() {
            if input.peek(Token![crate]) {
                let place = input.parse::<Token![crate]>()?.span;
                let known = |error: Error| not_known(error, place);
                input.parse::<Token![=]>().map_err(known)?;
                options.root = input.call(Path::parse_mod_style).map_err(known)?;
            } else {
                let option: Ident =
                    input.parse().map_err(|error| Error::new(error.span(), KNOWN))?;
                match option.to_string().as_str() {
                    "shared" => options.is_shared = true,
                    "name" => {
                        let known = |error: Error| not_known(error, option.span());
                        input.parse::<Token![=]>().map_err(known)?;
                        let name: LitStr = input.parse().map_err(known)?;
                        let unusable =
                            |c: char| c == ',' || c == '=' || c.is_whitespace() || c.is_control();
                        if name.value().is_empty() || name.value().contains(unusable) {
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
                input.parse::<Token![,]>().map_err(|error| Error::new(error.span(), KNOWN))?;
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
    check_type(&item.ident, &item.ty)?;
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
    let written_out = with_lifetimes(ty);
    let value = quote_spanned!(ty.span()=> <#written_out as #root::__private::IsImmediate>::Value);
    Ok(quote_spanned! {site=>
        #(#attrs)*
        #vis static #ident: #ty = {
            extern "C" fn __initial() -> #root::__private::Bits {
                #root::__private::initial::<#value>(#expr)
            }
            const DESCRIPTOR: &#root::__private::Descriptor =
                &#root::__private::Descriptor::new::<#value>(
                    __initial,
                    <#ident as #root::__private::Declared>::BITS,
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
                const BITS: ::core::primitive::u128 = #root::__private::initial_constant::<#value>(#expr);
            }
            #root::__private::declare!(#ident);
        };
    })
}

/// Refuses types that by their spelling are none of a variable, for which the compiler's own errors
/// would be many. Whatever else is not `Immediate<T>`, behind an alias, the compiler finds.
fn check_type(name: &Ident, ty: &Type) -> syn::Result<()> {
    let last = match ty {
        Type::Path(path) => path.path.segments.last(),
        Type::Reference(_) | Type::Tuple(_) | Type::Array(_) | Type::Ptr(_) | Type::BareFn(_) => {
            None
        }
        _ => return Ok(()),
    };
    let text = match last {
        Some(last) if last.ident == "Immediate" => {
            let PathArguments::AngleBracketed(arguments) = &last.arguments else {
                let text = format!(
                    "the type of a static is written out: `static {name}: Immediate<T> = …`, with \
                     the type of its values for `T`"
                );
                return Err(Error::new_spanned(ty, text));
            };
            return match arguments.args.first() {
                Some(GenericArgument::Type(value)) => check_value(value),
                _ => Ok(()),
            };
        }
        Some(last) if !is_value(&last.ident.to_string()) => return Ok(()),
        _ => {
            check_value(ty)?;
            let shown = quote!(#ty).to_string().replace("& ", "&");
            let value = match shown.rsplit(' ').next().and_then(|last| last.strip_prefix("Atomic"))
            {
                Some("Ptr") => "*mut T".to_string(),
                Some(integer) => integer.to_lowercase(),
                None => shown,
            };
            format!(
                "a variable is an `Immediate`: write \
                 `static {name}: Immediate<{value}> = Immediate::new(…);`"
            )
        }
    };
    Err(Error::new_spanned(ty, text))
}

/// The type with the lifetimes written out that a static may leave out (Reference, "Lifetime
/// elision", "const and static elision"); an associated type may not. Those of a `fn` pointer are
/// its own.
fn with_lifetimes(ty: &Type) -> Type {
    let mut ty = ty.clone();
    match &mut ty {
        Type::Reference(reference) => {
            reference.lifetime.get_or_insert_with(|| Lifetime::new("'static", Span::call_site()));
            *reference.elem = with_lifetimes(&reference.elem);
        }
        Type::Ptr(pointer) => *pointer.elem = with_lifetimes(&pointer.elem),
        Type::Array(array) => *array.elem = with_lifetimes(&array.elem),
        Type::Slice(slice) => *slice.elem = with_lifetimes(&slice.elem),
        Type::Paren(paren) => *paren.elem = with_lifetimes(&paren.elem),
        Type::Group(group) => *group.elem = with_lifetimes(&group.elem),
        Type::Tuple(tuple) => {
            tuple.elems.iter_mut().for_each(|element| *element = with_lifetimes(element));
        }
        Type::Path(path) => {
            for segment in &mut path.path.segments {
                let PathArguments::AngleBracketed(arguments) = &mut segment.arguments else {
                    continue;
                };
                for argument in &mut arguments.args {
                    if let GenericArgument::Type(inner) = argument {
                        *inner = with_lifetimes(inner);
                    }
                }
            }
        }
        _ => {}
    }
    ty
}

/// Whether a type of this name is one of a value, not of a variable.
fn is_value(name: &str) -> bool {
    const PRIMITIVE: [&str; 16] = [
        "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize",
        "bool", "char", "f32", "f64",
    ];
    PRIMITIVE.contains(&name) || name.starts_with("Atomic")
}

/// Refuses references of two words, for which the compiler says only that something has no size.
fn check_value(value: &Type) -> syn::Result<()> {
    let Type::Reference(reference) = value else { return Ok(()) };
    let is_wide = match &*reference.elem {
        Type::Slice(_) | Type::TraitObject(_) => true,
        Type::Path(path) => path.path.is_ident("str"),
        _ => false,
    };
    if !is_wide {
        return Ok(());
    }
    let text = "this reference is two words, an address and what belongs to it, which no instruction \
                holds: put one reference around it, `&'static &'static …`, with `Immediate::new(&…)`";
    Err(Error::new_spanned(value, text))
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
