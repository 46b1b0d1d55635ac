//! What is known of a variable when it is declared.
//!
//! # Invariants
//!
//! * `D1` A descriptor is a constant: its texts and functions live as long as its module is loaded,
//!   and nobody asks it for anything afterwards.

#![allow(unsafe_code)]

use std::fmt;

use crate::exchange::{Bits, Sink, Text};
use crate::value::{ImmediateValue, Kind, bits, from_bits};

/// Where a variable is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The source file, as given to the compiler.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// The description of a variable: constant, one a declaration. `include/immediate.h` writes the same.
#[repr(C)]
pub struct Descriptor {
    kind: u32,
    /// Bytes of the value.
    size: u32,
    /// Bit 0: shared.
    flags: u32,
    line: u32,
    column: u32,
    name: Text,
    doc: Text,
    file: Text,
    /// The bits in the built file: computed once, when it is built. A constant expression that is
    /// computed again when the program runs may differ, in the bits of a NaN.
    built_in: Bits,
    /// None where the kind and the size tell, and the same below.
    type_name: Option<extern "C" fn(Sink)>,
    initial: Option<extern "C" fn() -> Bits>,
    /// Writes what would be valid where it fails.
    parse: Option<extern "C" fn(Text, Sink, *mut Bits) -> bool>,
    show: Option<extern "C" fn(Bits, Sink)>,
}

const SHARED: u32 = 1;

impl Descriptor {
    /// The description that `#[immediate]` writes.
    #[must_use]
    pub const fn new<T: ImmediateValue>(
        initial: extern "C" fn() -> Bits,
        built_in: u128,
        name: &'static str,
        doc: &'static str,
        place: Place,
        is_shared: bool,
    ) -> Self {
        Descriptor {
            kind: T::KIND as u32,
            size: size_of::<T>() as u32,
            flags: if is_shared { SHARED } else { 0 },
            line: place.line,
            column: place.column,
            name: Text::new(name),
            doc: Text::new(doc),
            file: Text::new(place.file),
            built_in: Bits::new(built_in),
            type_name: Some(type_name::<T>),
            initial: Some(initial),
            parse: Some(parse::<T>),
            show: Some(show::<T>),
        }
    }

    /// Whether a copy of this library, or a compiler of C, has written what this one can read.
    pub(crate) fn is_sound(&self) -> bool {
        Kind::from_number(self.kind).is_some() && matches!(self.size, 1 | 2 | 4 | 8 | 16)
    }

    pub(crate) fn name(&self) -> &'static str {
        // SAFETY: D1.
        unsafe { self.name.get() }
    }

    pub(crate) fn doc(&self) -> &'static str {
        // SAFETY: D1.
        unsafe { self.doc.get() }
    }

    pub(crate) fn place(&self) -> Place {
        // SAFETY: D1.
        let file = unsafe { self.file.get() };
        Place { file, line: self.line, column: self.column }
    }

    pub(crate) fn kind(&self) -> Kind {
        Kind::from_number(self.kind).unwrap_or(Kind::Opaque)
    }

    pub(crate) fn size(&self) -> usize {
        self.size as usize
    }

    pub(crate) fn is_pointer(&self) -> bool {
        matches!(self.kind(), Kind::Pointer)
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.flags & SHARED != 0
    }

    pub(crate) fn type_name(&self) -> String {
        match self.type_name {
            Some(write) => Sink::collect(|sink| write(sink)).1,
            None => number::type_name(self.kind(), self.size()).to_string(),
        }
    }

    pub(crate) fn initial(&self) -> u128 {
        match self.initial {
            Some(initial) if self.is_pointer() => initial().get(),
            _ => self.built_in(),
        }
    }

    /// What the built file holds at value sites: an address is not known when the file is built.
    pub(crate) fn built_in(&self) -> u128 {
        self.built_in.get()
    }

    /// The bits of the value that the text says, or what would be valid.
    pub(crate) fn parse(&self, text: &str) -> Result<u128, String> {
        let parse = self.parse.unwrap_or_else(|| number::parse(self.kind(), self.size()));
        let mut bits = Bits::default();
        let (is_good, valid) = Sink::collect(|sink| parse(Text::new(text), sink, &raw mut bits));
        if is_good { Ok(bits.get()) } else { Err(valid) }
    }

    /// The value with these bits, as text.
    pub(crate) fn show(&self, bits: u128) -> String {
        let show = self.show.unwrap_or_else(|| number::show(self.kind(), self.size()));
        Sink::collect(|sink| show(Bits::new(bits), sink)).1
    }
}

impl fmt::Debug for Descriptor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} at {}", self.name(), self.place())
    }
}

extern "C" fn type_name<T>(sink: Sink) {
    sink.put(std::any::type_name::<T>());
}

extern "C" fn parse<T: ImmediateValue>(text: Text, sink: Sink, into: *mut Bits) -> bool {
    // SAFETY: an argument (X1 of `exchange`), and bits of the caller's own.
    let (text, into) = unsafe { (text.get(), &mut *into) };
    match T::from_text(text) {
        Ok(value) => *into = Bits::new(bits(value)),
        Err(valid) => {
            sink.put(&valid);
            return false;
        }
    }
    true
}

extern "C" fn show<T: ImmediateValue>(bits: Bits, sink: Sink) {
    struct Shown<T>(T);
    impl<T: ImmediateValue> fmt::Display for Shown<T> {
        fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.to_text(out)
        }
    }
    // SAFETY: callers pass bits that this variable holds or that `parse` gave.
    sink.put_all(Shown(unsafe { from_bits::<T>(bits.get()) }));
}

mod number {
    //! The numbers that need no functions of their own: those that a header in C describes.

    use super::{Bits, Kind, Sink, Text, parse as parse_as, show as show_as};

    type Parse = extern "C" fn(Text, Sink, *mut Bits) -> bool;
    type Show = extern "C" fn(Bits, Sink);

    macro_rules! numbers {
        ($($kind:ident $size:literal $type:ident),* $(,)?) => {
            pub(super) fn type_name(kind: Kind, size: usize) -> &'static str {
                match (kind, size) {
                    $((Kind::$kind, $size) => stringify!($type),)*
                    _ => "unknown",
                }
            }

            pub(super) fn parse(kind: Kind, size: usize) -> Parse {
                match (kind, size) {
                    $((Kind::$kind, $size) => parse_as::<$type>,)*
                    _ => refuse,
                }
            }

            pub(super) fn show(kind: Kind, size: usize) -> Show {
                match (kind, size) {
                    $((Kind::$kind, $size) => show_as::<$type>,)*
                    _ => show_as::<u128>,
                }
            }
        };
    }

    numbers! {
        Bool 1 bool, Char 4 char, Float 4 f32, Float 8 f64,
        Unsigned 1 u8, Unsigned 2 u16, Unsigned 4 u32, Unsigned 8 u64, Unsigned 16 u128,
        Signed 1 i8, Signed 2 i16, Signed 4 i32, Signed 8 i64, Signed 16 i128,
    }

    extern "C" fn refuse(_: Text, sink: Sink, _: *mut Bits) -> bool {
        sink.put("no text: values of its type are set by the program only");
        false
    }
}
