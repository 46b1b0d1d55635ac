//! The macros under a user's own lints. A lint that fires inside an expansion is one that the user
//! can do nothing about; `forbid(unsafe_code)` above all must not keep a program from having
//! variables.

#![forbid(unsafe_code)]
#![deny(
    warnings,
    unused,
    missing_docs,
    missing_debug_implementations,
    missing_copy_implementations,
    nonstandard_style,
    future_incompatible,
    rust_2018_idioms,
    rust_2021_compatibility,
    rust_2024_compatibility,
    let_underscore_drop,
    unreachable_pub,
    unused_qualifications,
    unused_results,
    unused_lifetimes,
    unused_import_braces,
    unit_bindings,
    explicit_outlives_requirements,
    elided_lifetimes_in_paths,
    trivial_casts,
    trivial_numeric_casts,
    variant_size_differences,
    absolute_paths_not_starting_with_crate,
    single_use_lifetimes,
    meta_variable_misuse,
    macro_use_extern_crate,
    ambiguous_negative_literals,
    redundant_lifetimes,
    redundant_imports,
    unused_macro_rules,
    keyword_idents,
    non_ascii_idents,
    unsafe_op_in_unsafe_fn
)]
#![deny(clippy::all, clippy::pedantic, clippy::undocumented_unsafe_blocks)]
#![deny(clippy::allow_attributes, clippy::allow_attributes_without_reason, clippy::absolute_paths)]
#![deny(
    clippy::implicit_return,
    clippy::shadow_reuse,
    clippy::as_conversions,
    clippy::indexing_slicing
)]
#![deny(
    clippy::single_char_lifetime_names,
    clippy::items_after_statements,
    clippy::semicolon_outside_block
)]
#![allow(clippy::implicit_return, reason = "only what is written here")]

use immediate::{Error, Immediate, ImmediateValue, immediate, immediate_if, immediate_read};

/// How loud.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ImmediateValue)]
#[repr(i8)]
pub enum Level {
    /// Not at all.
    Quiet = -1,
    /// Very.
    Loud,
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ImmediateValue)]
#[repr(transparent)]
pub struct Bytes(u64);

/// A value with something around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ImmediateValue)]
#[repr(transparent)]
pub struct Around<T> {
    inner: T,
}

/// How loud the program is.
#[immediate]
pub static LEVEL: Immediate<Level> = Immediate::new(Level::Quiet);

/// How much it may take.
#[immediate]
static LIMIT: Immediate<Bytes> = Immediate::new(Bytes(10));

#[immediate]
static AROUND: Immediate<Around<u16>> = Immediate::new(Around { inner: 3 });

#[immediate]
static TRACE: Immediate<bool> = Immediate::new(false);

#[immediate(name = "lints.mask", shared)]
static MASK: Immediate<u8> = Immediate::new(0b100);

#[immediate]
static WIDE: Immediate<u128> = Immediate::new(1 << 100);

#[immediate]
static ACTIVE: Immediate<&'static [u8; 2]> = Immediate::new(&[1, 2]);

fn look() -> (bool, bool, bool, bool, bool, u64, u16) {
    let mut loud = false;
    immediate_if!(LEVEL >= Level::Loud => { loud = true; });
    let masked = immediate_if!(MASK, |mask| mask & 4 != 0 => { true } else { false });
    let wide = immediate_if!(WIDE > 1) && immediate_if!(likely WIDE, u128::is_power_of_two);
    (
        loud,
        immediate_if!(TRACE),
        immediate_if!(!TRACE),
        masked,
        wide,
        immediate_read!(LIMIT).0 + u64::from(immediate_read!(ACTIVE)[1]),
        immediate_read!(AROUND).inner,
    )
}

fn leave(limit: u8) -> Option<u8> {
    immediate_if!(MASK == 0 => { return None; });
    while immediate_if!(MASK < 2) {
        if limit == 0 {
            break;
        }
    }
    Some(immediate_read!(MASK).max(limit))
}

#[test]
fn no_lint_fires_inside_an_expansion() -> Result<(), Error> {
    assert_eq!(look(), (false, false, true, true, true, 12, 3));
    assert_eq!(leave(0), Some(4));
    LEVEL.set(Level::Loud)?;
    TRACE.set(true)?;
    MASK.set(0)?;
    WIDE.set(3)?;
    assert_eq!(look(), (true, true, false, false, false, 12, 3));
    assert_eq!(leave(0), None);
    Ok(())
}
