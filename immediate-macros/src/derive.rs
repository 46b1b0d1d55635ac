//! `#[derive(ImmediateValue)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DataEnum, DataStruct, DeriveInput, Error, Fields, Ident, parse_quote};

const REPRS: [&str; 10] = ["u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize"];

pub(crate) fn expand(item: TokenStream) -> syn::Result<TokenStream> {
    let item: DeriveInput = syn::parse2(item)?;
    let reprs = reprs(&item)?;
    match &item.data {
        Data::Enum(data) => of_enum(&item, data, &reprs),
        Data::Struct(data) => of_new_type(&item, data, &reprs),
        Data::Union(_) => {
            Err(Error::new_spanned(&item.ident, "ImmediateValue cannot be derived for a union"))
        }
    }
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

fn of_enum(item: &DeriveInput, data: &DataEnum, reprs: &[String]) -> syn::Result<TokenStream> {
    let name = &item.ident;
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
    let names: Vec<String> = variants.iter().map(|variant| variant.to_string()).collect();
    let valid = names.join(", ");
    Ok(implementation(
        item,
        quote!(::immediate::Kind::Opaque),
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
        quote! {
            match <#inner as ::immediate::ImmediateValue>::KIND {
                ::immediate::Kind::Pointer => ::immediate::Kind::Pointer,
                _ => ::immediate::Kind::Opaque,
            }
        },
        quote! {
            <#inner as ::immediate::ImmediateValue>::from_text(text).map(|value| #make)
        },
        quote!(<#inner as ::immediate::ImmediateValue>::to_text(#take, out)),
    ))
}

fn implementation(
    item: &DeriveInput,
    kind: TokenStream,
    parse: TokenStream,
    show: TokenStream,
) -> TokenStream {
    let name = &item.ident;
    let mut generics = item.generics.clone();
    if !generics.params.is_empty() {
        generics.make_where_clause().predicates.push(parse_quote!(Self: 'static));
    }
    let (implement, arguments, bounds) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        // SAFETY: the derive has checked that the representation is that of an integer, or of a
        // field that is an immediate value itself.
        unsafe impl #implement ::immediate::ImmediateValue for #name #arguments #bounds {
            const KIND: ::immediate::Kind = #kind;

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
