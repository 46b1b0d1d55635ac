//! `#[derive(ImmediateValue)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{
    Data, DataEnum, DataStruct, DeriveInput, Error, Fields, Ident, Path, Type, WherePredicate,
    parse_quote,
};

const REPRS: [&str; 10] = ["u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize"];

pub(crate) fn expand(item: TokenStream) -> syn::Result<TokenStream> {
    let item: DeriveInput = syn::parse2(item)?;
    let reprs = reprs(&item)?;
    let root = root(&item)?;
    match &item.data {
        Data::Enum(data) => of_enum(&item, &root, data, &reprs),
        Data::Struct(data) => of_new_type(&item, &root, data, &reprs),
        Data::Union(_) => {
            Err(Error::new_spanned(&item.ident, "ImmediateValue cannot be derived for a union"))
        }
    }
}

/// Where the crate is found: `#[immediate_value(crate = path)]`, or `::immediate`.
fn root(item: &DeriveInput) -> syn::Result<Path> {
    let mut root = parse_quote!(::immediate);
    for attribute in &item.attrs {
        if attribute.path().is_ident("immediate_value") {
            attribute.parse_nested_meta(|meta| {
                if !meta.path.is_ident("crate") {
                    return Err(meta.error("the option is `crate = path`"));
                }
                root = meta.value()?.call(Path::parse_mod_style)?;
                Ok(())
            })?;
        }
    }
    Ok(root)
}

/// What stands in `#[repr(…)]`.
fn reprs(item: &DeriveInput) -> syn::Result<Vec<String>> {
    let mut reprs = Vec::new();
    for attribute in &item.attrs {
        if attribute.path().is_ident("repr") {
            attribute.parse_nested_meta(|meta| {
                if let Some(name) = meta.path.get_ident() {
                    reprs.push(name.to_string());
                }
                if meta.input.peek(syn::token::Paren) {
                    let content;
                    syn::parenthesized!(content in meta.input);
                    content.parse::<TokenStream>()?;
                }
                Ok(())
            })?;
        }
    }
    Ok(reprs)
}

fn of_enum(
    item: &DeriveInput,
    root: &Path,
    data: &DataEnum,
    reprs: &[String],
) -> syn::Result<TokenStream> {
    let name = &item.ident;
    if let Some(other) = reprs.iter().find(|repr| !REPRS.contains(&repr.as_str())) {
        let text =
            format!("an immediate value has the size of its integer: remove `repr({other})`");
        return Err(Error::new_spanned(name, text));
    }
    if !reprs.iter().any(|repr| REPRS.contains(&repr.as_str())) {
        let text = "an enum needs a repr to be an immediate value: write `#[repr(u8)]`";
        return Err(Error::new_spanned(name, text));
    }
    if let Some(variant) =
        data.variants.iter().find(|variant| !matches!(variant.fields, Fields::Unit))
    {
        let text = "an immediate value holds no fields: only an enum without fields can be one";
        return Err(Error::new_spanned(variant, text));
    }
    if data.variants.is_empty() {
        return Err(Error::new_spanned(name, "an enum without variants has no value"));
    }
    let variants: Vec<&Ident> = data.variants.iter().map(|variant| &variant.ident).collect();
    let names: Vec<String> = variants.iter().map(|variant| variant.unraw().to_string()).collect();
    let valid = names.join(", ");
    Ok(implementation(
        item,
        root,
        None,
        quote!(#root::Kind::Opaque),
        quote! {
            #(if text == #names { return ::core::result::Result::Ok(#name::#variants); })*
            ::core::result::Result::Err(::std::string::String::from(#valid))
        },
        quote! {
            out.write_str(match self { #(#name::#variants => #names,)* })
        },
    ))
}

fn of_new_type(
    item: &DeriveInput,
    root: &Path,
    data: &DataStruct,
    reprs: &[String],
) -> syn::Result<TokenStream> {
    if !reprs.iter().any(|repr| repr == "transparent") {
        let text = "a struct needs `#[repr(transparent)]` to be an immediate value";
        return Err(Error::new_spanned(&item.ident, text));
    }
    let Some(field) = data.fields.iter().next().filter(|_| data.fields.len() == 1) else {
        let text = "a new type has one field to be an immediate value";
        return Err(Error::new_spanned(&item.ident, text));
    };
    let inner = &field.ty;
    let (make, take) = match &field.ident {
        Some(field) => (quote!(Self { #field: value }), quote!(self.#field)),
        None => (quote!(Self(value)), quote!(self.0)),
    };
    Ok(implementation(
        item,
        root,
        Some(inner),
        quote! {
            match <#inner as #root::ImmediateValue>::KIND {
                #root::Kind::Pointer => #root::Kind::Pointer,
                _ => #root::Kind::Opaque,
            }
        },
        quote! {
            <#inner as #root::ImmediateValue>::from_text(text).map(|value| #make)
        },
        quote!(<#inner as #root::ImmediateValue>::to_text(#take, out)),
    ))
}

fn implementation(
    item: &DeriveInput,
    root: &Path,
    field: Option<&Type>,
    kind: TokenStream,
    parse: TokenStream,
    show: TokenStream,
) -> TokenStream {
    let name = &item.ident;
    let mut generics = item.generics.clone();
    if !generics.params.is_empty() {
        // A generic type is a value where its field is one; without parameters the compiler's error
        // at the field says more than one at a bound.
        let predicates = &mut generics.make_where_clause().predicates;
        predicates.push(parse_quote!(Self: ::core::marker::Copy + ::core::marker::Send + 'static));
        predicates.extend(
            field.map(|field| -> WherePredicate { parse_quote!(#field: #root::ImmediateValue) }),
        );
    }
    let (implement, arguments, bounds) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        // SAFETY: the derive has checked that the representation is that of an integer, or of a
        // field that is an immediate value itself.
        unsafe impl #implement #root::ImmediateValue for #name #arguments #bounds {
            const KIND: #root::Kind = {
                // The variable carries the value to every thread.
                const fn is_send<T: ::core::marker::Send>() {}
                is_send::<Self>();
                #kind
            };

            fn from_text(
                text: &str,
            ) -> ::core::result::Result<Self, ::std::string::String> {
                #parse
            }

            fn to_text(self, out: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                #show
            }
        }
    }
}
