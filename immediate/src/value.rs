//! What can live in an instruction: [`ImmediateValue`] and its implementations.
//!
//! # Invariants
//!
//! * `V1` A type that implements [`ImmediateValue`] has no padding and at most 16 bytes; its bits
//!   move through integers and come back unchanged. Whoever makes bits that were not a value first
//!   (parsing text) does it by a value of the type.

#![allow(unsafe_code)]
// `fn(A)` and `for<'a> fn(&'a A)` are different types; the lint is about their being once thought
// the same (rust-lang/rust#56105).
#![allow(coherence_leak_check)]

use std::fmt;
use std::mem::{size_of, transmute_copy};
use std::num::NonZero;
use std::ptr::NonNull;

/// How the bits of a value compare, as far as a constant can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum Kind {
    /// As an unsigned number.
    Unsigned = 0,
    /// As a signed number.
    Signed = 1,
    /// As `false < true`.
    Bool = 2,
    /// As a Unicode scalar value.
    Char = 3,
    /// As an IEEE 754 number.
    Float = 4,
    /// An address: known when the program runs, not when it is built.
    Pointer = 5,
    /// By a comparison of the type's own.
    Opaque = 6,
}

impl Kind {
    /// The kind with this number, as a descriptor holds it.
    pub(crate) const fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => Kind::Unsigned,
            1 => Kind::Signed,
            2 => Kind::Bool,
            3 => Kind::Char,
            4 => Kind::Float,
            5 => Kind::Pointer,
            6 => Kind::Opaque,
            _ => return None,
        })
    }
}

/// A type that a variable can have.
///
/// Implemented for all integers, `bool`, `char`, `f32`, `f64`, raw pointers, `&'static T`, `fn`
/// pointers, [`NonZero`], [`NonNull`], and `Option` of the last four. Derive it for field-less enums
/// with a `repr` and for `repr(transparent)` new types:
///
/// ```
/// use immediate::{Immediate, ImmediateValue, immediate, immediate_if};
///
/// #[derive(Clone, Copy, PartialEq, PartialOrd, ImmediateValue)]
/// #[repr(u8)]
/// enum Level {
///     Quiet,
///     Loud,
/// }
///
/// #[immediate]
/// static LEVEL: Immediate<Level> = Immediate::new(Level::Quiet);
///
/// assert!(!immediate_if!(LEVEL == Level::Loud));
/// LEVEL.set(Level::Loud)?;
/// assert!(immediate_if!(LEVEL == Level::Loud));
/// # Ok::<(), immediate::Error>(())
/// ```
///
/// A type wider than the target can hold in one instruction is read from memory.
///
/// # Safety
///
/// The type has no padding, at most 16 bytes and a size that is a power of two; a copy of its
/// bytes is a value of the type in every thread; `KIND` is [`Kind::Pointer`] exactly if the type
/// holds an address, and one of the kinds of numbers only if the type's own comparisons are those
/// of that kind.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the value of an immediate variable",
    note = "it can be an integer, bool, char, f32, f64, a pointer, a reference with lifetime \
            'static, a fn pointer, NonNull, NonZero, an Option of the last four, or a type with \
            #[derive(ImmediateValue)]"
)]
pub unsafe trait ImmediateValue: Copy + 'static {
    /// How the bits compare.
    const KIND: Kind;

    /// Reads a value from text, as in `IMMEDIATE=name=value`.
    ///
    /// # Errors
    ///
    /// What would be valid, as in "a number from 0 to 255".
    fn from_text(text: &str) -> Result<Self, String>;

    /// Writes the value so that [`from_text`](ImmediateValue::from_text) reads it back, where the
    /// type can be read at all.
    ///
    /// # Errors
    ///
    /// Those of the formatter.
    fn to_text(self, out: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// The bits of a value, zero-extended.
pub(crate) fn bits<T: ImmediateValue>(value: T) -> u128 {
    if matches!(T::KIND, Kind::Pointer) {
        assert!(size_of::<T>() == size_of::<usize>(), "an address has the size of a pointer");
        // SAFETY: V1; the type holds an address and nothing else.
        let pointer: *const () = unsafe { transmute_copy(&value) };
        pointer.expose_provenance() as u128
    } else {
        constant_bits(value)
    }
}

/// The bits of a value that is no pointer, zero-extended; 0 for a pointer.
pub(crate) const fn constant_bits<T: ImmediateValue>(value: T) -> u128 {
    if matches!(T::KIND, Kind::Pointer) {
        return 0;
    }
    // SAFETY: V1; each arm copies exactly the bytes of the value, which are all initialised.
    unsafe {
        match size_of::<T>() {
            1 => transmute_copy::<T, u8>(&value) as u128,
            2 => transmute_copy::<T, u16>(&value) as u128,
            4 => transmute_copy::<T, u32>(&value) as u128,
            8 => transmute_copy::<T, u64>(&value) as u128,
            16 => transmute_copy::<T, u128>(&value),
            _ => panic!("the size of an immediate value is 1, 2, 4, 8 or 16 bytes"),
        }
    }
}

/// The value that has these bits.
///
/// # Safety
///
/// `bits` came from [`bits`] of a value of this type.
#[inline(always)]
pub(crate) unsafe fn from_bits<T: ImmediateValue>(bits: u128) -> T {
    // SAFETY: V1; each arm makes the bytes of the value again.
    unsafe {
        if matches!(T::KIND, Kind::Pointer) {
            let pointer = std::ptr::with_exposed_provenance::<()>(bits as usize);
            return transmute_copy(&pointer);
        }
        match size_of::<T>() {
            1 => transmute_copy(&(bits as u8)),
            2 => transmute_copy(&(bits as u16)),
            4 => transmute_copy(&(bits as u32)),
            8 => transmute_copy(&(bits as u64)),
            _ => transmute_copy(&bits),
        }
    }
}

macro_rules! integers {
    ($($type:ident $kind:ident),* $(,)?) => { $(
        // SAFETY: an integer has no padding and compares as its kind says.
        unsafe impl ImmediateValue for $type {
            const KIND: Kind = Kind::$kind;

            fn from_text(text: &str) -> Result<Self, String> {
                number(text)
                    .and_then(|(negative, radix, digits)| {
                        let signed = format!("{}{digits}", if negative { "-" } else { "" });
                        $type::from_str_radix(&signed, radix).ok()
                    })
                    .ok_or_else(|| format!("a number from {} to {}", $type::MIN, $type::MAX))
            }

            fn to_text(self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self, out)
            }
        }

        // SAFETY: a non-zero integer has no padding and compares as the integer.
        unsafe impl ImmediateValue for NonZero<$type> {
            const KIND: Kind = Kind::$kind;

            fn from_text(text: &str) -> Result<Self, String> {
                let range = || format!("a number from {} to {} except 0", $type::MIN, $type::MAX);
                $type::from_text(text).ok().and_then(NonZero::new).ok_or_else(range)
            }

            fn to_text(self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self, out)
            }
        }

        // SAFETY: `Option` of a non-zero integer has its size and no padding (std::option,
        // "Representation"). `None` is below every negative number, so the kind is not `Signed`.
        unsafe impl ImmediateValue for Option<NonZero<$type>> {
            const KIND: Kind = Kind::Opaque;

            fn from_text(text: &str) -> Result<Self, String> {
                if text == "None" {
                    return Ok(None);
                }
                NonZero::<$type>::from_text(text).map(Some).map_err(|valid| format!("None or {valid}"))
            }

            fn to_text(self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    Some(value) => value.to_text(out),
                    None => out.write_str("None"),
                }
            }
        }
    )* };
}

integers! {
    u8 Unsigned, u16 Unsigned, u32 Unsigned, u64 Unsigned, u128 Unsigned, usize Unsigned,
    i8 Signed, i16 Signed, i32 Signed, i64 Signed, i128 Signed, isize Signed,
}

/// Sign, radix and digits of a number in Rust's notation, underscores removed.
fn number(text: &str) -> Option<(bool, u32, String)> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (radix, digits) = match rest.get(..2) {
        Some("0x") => (16, &rest[2..]),
        Some("0o") => (8, &rest[2..]),
        Some("0b") => (2, &rest[2..]),
        _ => (10, rest),
    };
    let first = digits.chars().next()?;
    first.is_digit(radix).then(|| (negative, radix, digits.replace('_', "")))
}

// SAFETY: one byte, 0 or 1.
unsafe impl ImmediateValue for bool {
    const KIND: Kind = Kind::Bool;

    fn from_text(text: &str) -> Result<Self, String> {
        match text {
            "true" | "on" | "1" => Ok(true),
            "false" | "off" | "0" => Ok(false),
            _ => Err("true or false (also on, off, 1, 0)".into()),
        }
    }

    fn to_text(self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self, out)
    }
}

// SAFETY: four bytes, a Unicode scalar value, compared as a number.
unsafe impl ImmediateValue for char {
    const KIND: Kind = Kind::Char;

    fn from_text(text: &str) -> Result<Self, String> {
        let mut letters = text.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) => Ok(letter),
            _ => Err("one character".into()),
        }
    }

    fn to_text(self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self, out)
    }
}

macro_rules! floats {
    ($($type:ident),*) => { $(
        // SAFETY: no padding; compared as IEEE 754 says.
        unsafe impl ImmediateValue for $type {
            const KIND: Kind = Kind::Float;

            fn from_text(text: &str) -> Result<Self, String> {
                text.parse().map_err(|_| "a decimal number such as 0.5, inf or NaN".into())
            }

            fn to_text(self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self, out)
            }
        }
    )* };
}

floats!(f32, f64);

const NO_ADDRESS: &str = "an address, which only the program itself can set";

macro_rules! pointers {
    ($([$($generics:tt)*] $type:ty),* $(,)?) => { $(
        // SAFETY: one address, no padding; it is shared only if what it points to may be.
        unsafe impl<$($generics)*> ImmediateValue for $type {
            const KIND: Kind = Kind::Pointer;

            fn from_text(_: &str) -> Result<Self, String> {
                Err(NO_ADDRESS.into())
            }

            fn to_text(self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "{:#x}", bits(self))
            }
        }
    )* };
}

pointers! {
    [T: 'static] *const T,
    [T: 'static] *mut T,
    [T: Sync + 'static] &'static T,
    [T: Sync + 'static] Option<&'static T>,
    [T: 'static] NonNull<T>,
    [T: 'static] Option<NonNull<T>>,
}

/// `fn` pointers of every number of arguments up to eight; those with borrowed arguments are types
/// of their own, given up to three arguments.
macro_rules! functions {
    ($([$($generics:tt)*] $type:ty),* $(,)?) => {
        pointers! { $([$($generics)*] $type, [$($generics)*] Option<$type>),* }
    };
}

macro_rules! by_value {
    ($($argument:ident)*) => {
        functions! {
            [R: 'static $(, $argument: 'static)*] fn($($argument),*) -> R,
            [R: 'static $(, $argument: 'static)*] unsafe fn($($argument),*) -> R,
            [R: 'static $(, $argument: 'static)*] extern "C" fn($($argument),*) -> R,
            [R: 'static $(, $argument: 'static)*] unsafe extern "C" fn($($argument),*) -> R,
        }
    };
}

by_value!();
by_value!(A);
by_value!(A B);
by_value!(A B C);
by_value!(A B C D);
by_value!(A B C D E);
by_value!(A B C D E F);
by_value!(A B C D E F G);
by_value!(A B C D E F G H);

functions! {
    [A: ?Sized + 'static, R: 'static] for<'a> fn(&'a A) -> R,
    [A: ?Sized + 'static, R: 'static] for<'a> fn(&'a mut A) -> R,
    [A: ?Sized + 'static, R: ?Sized + 'static] for<'a> fn(&'a A) -> &'a R,
    [A: ?Sized + 'static, R: ?Sized + 'static] for<'a> fn(&'a mut A) -> &'a mut R,
    [A: ?Sized + 'static, B: 'static, R: 'static] for<'a> fn(&'a A, B) -> R,
    [A: ?Sized + 'static, B: 'static, R: 'static] for<'a> fn(&'a mut A, B) -> R,
    [A: 'static, B: ?Sized + 'static, R: 'static] for<'a> fn(A, &'a B) -> R,
    [A: 'static, B: ?Sized + 'static, R: 'static] for<'a> fn(A, &'a mut B) -> R,
    [A: ?Sized + 'static, B: ?Sized + 'static, R: 'static] for<'a, 'b> fn(&'a A, &'b B) -> R,
    [A: ?Sized + 'static, B: ?Sized + 'static, R: 'static] for<'a, 'b> fn(&'a A, &'b mut B) -> R,
    [A: ?Sized + 'static, B: ?Sized + 'static, R: 'static] for<'a, 'b> fn(&'a mut A, &'b B) -> R,
    [A: ?Sized + 'static, B: ?Sized + 'static, R: 'static] for<'a, 'b> fn(&'a mut A, &'b mut B) -> R,
    [A: ?Sized + 'static, B: 'static, C: 'static, R: 'static] for<'a> fn(&'a A, B, C) -> R,
    [A: ?Sized + 'static, B: 'static, C: 'static, R: 'static] for<'a> fn(&'a mut A, B, C) -> R,
    [A: ?Sized + 'static, B: ?Sized + 'static, C: 'static, R: 'static] for<'a, 'b> fn(&'a A, &'b B, C) -> R,
    [A: ?Sized + 'static, B: ?Sized + 'static, C: 'static, R: 'static] for<'a, 'b> fn(&'a mut A, &'b B, C) -> R,
    [A: ?Sized + 'static, B: ?Sized + 'static, C: ?Sized + 'static, R: 'static] for<'a, 'b, 'c> fn(&'a A, &'b B, &'c C) -> R,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_names_what_is_valid() {
        assert_eq!(u8::from_text("300").unwrap_err(), "a number from 0 to 255");
        assert_eq!(i8::from_text("-128"), Ok(-128));
        assert_eq!(u32::from_text("0xffff_ffff"), Ok(u32::MAX));
        assert_eq!(i32::from_text("-0x80"), Ok(-128));
        for bad in ["", " 1", "1 ", "1x", "+1", "--1", "0x", "_1", "TRUE", "-"] {
            assert!(u16::from_text(bad).is_err(), "{bad:?}");
        }
        assert_eq!(bool::from_text("on"), Ok(true));
        assert!(bool::from_text("True").is_err());
        assert_eq!(char::from_text("é"), Ok('é'));
        assert!(char::from_text("ab").is_err());
        assert_eq!(NonZero::<u8>::from_text("0").unwrap_err(), "a number from 0 to 255 except 0");
        assert_eq!(Option::<NonZero<u8>>::from_text("None"), Ok(None));
    }

    #[test]
    fn bits_come_back() {
        fn round<T: ImmediateValue + PartialEq + fmt::Debug>(value: T) {
            // SAFETY: the bits of a value of this type.
            assert_eq!(unsafe { from_bits::<T>(bits(value)) }, value);
        }
        round(-1_i8);
        round(i128::MIN);
        round('\u{10ffff}');
        round(-0.0_f64);
        round(NonZero::new(5_u16));
        round(None::<NonZero<i64>>);
        static TARGET: u32 = 7;
        round::<&'static u32>(&TARGET);
        round(Some(&TARGET));
        round(text_names_what_is_valid as fn());
        round(None::<fn(&str) -> usize>);
        assert_eq!(bits(-1_i8), 0xff, "zero-extended");
    }
}
