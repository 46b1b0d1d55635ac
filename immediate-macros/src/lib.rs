//! The procedural macros of `immediate`: syntax and errors only. Everything else is in the macros of
//! `immediate` that their expansions call.

use proc_macro::TokenStream;

mod declare;
mod derive;
mod read;

/// Makes a `static` an immediate variable.
///
/// Options: `name = "…"`, the name under which it is listed and set, instead of
/// `module::path::NAME`; `shared`, one variable for all modules that declare it by this name and
/// type; `crate = path`, where the crate `immediate` is found, instead of `::immediate`.
///
/// Beside the static it declares an uninhabited type of the same name, which tells the macros what
/// they must know: an import, a re-export or a renaming carries both.
#[proc_macro_attribute]
pub fn immediate(options: TokenStream, item: TokenStream) -> TokenStream {
    declare::expand(options.into(), item.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Derives `ImmediateValue` for a field-less enum with a `repr`, or for a `repr(transparent)` new
/// type. Where the crate has another name, `#[immediate_value(crate = path)]` says which.
#[proc_macro_derive(ImmediateValue, attributes(immediate_value))]
pub fn immediate_value(item: TokenStream) -> TokenStream {
    derive::expand(item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// What `immediate_read!` calls.
#[doc(hidden)]
#[proc_macro]
pub fn read(input: TokenStream) -> TokenStream {
    read::expand_read(input.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// What `immediate_if!` calls.
#[doc(hidden)]
#[proc_macro]
pub fn branch(input: TokenStream) -> TokenStream {
    read::expand_branch(input.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
