//! What is known of a variable when it is declared.

use std::fmt;

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

/// The description of a variable: constant, one a declaration.
#[derive(Debug)]
pub struct Descriptor {
    name: &'static str,
    doc: &'static str,
    place: Place,
    kind: Kind,
    size: usize,
    is_shared: bool,
    type_name: fn() -> &'static str,
    initial: fn() -> u128,
    /// The bits in the built file: computed once, when it is built. A constant expression that is
    /// computed again when the program runs may differ, in the bits of a NaN.
    built_in: u128,
    parse: fn(&str) -> Result<u128, String>,
    show: fn(u128, &mut fmt::Formatter<'_>) -> fmt::Result,
}

impl Descriptor {
    /// The description that `#[immediate]` writes.
    #[must_use]
    pub const fn new<T: ImmediateValue>(
        initial: fn() -> u128,
        built_in: u128,
        name: &'static str,
        doc: &'static str,
        place: Place,
        is_shared: bool,
    ) -> Self {
        Descriptor {
            name,
            doc,
            place,
            kind: T::KIND,
            size: size_of::<T>(),
            is_shared,
            type_name: std::any::type_name::<T>,
            initial,
            built_in,
            parse: parse::<T>,
            show: show::<T>,
        }
    }

    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn doc(&self) -> &'static str {
        self.doc
    }

    pub(crate) fn place(&self) -> Place {
        self.place
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn is_pointer(&self) -> bool {
        matches!(self.kind, Kind::Pointer)
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.is_shared
    }

    pub(crate) fn type_name(&self) -> &'static str {
        (self.type_name)()
    }

    pub(crate) fn initial(&self) -> u128 {
        if self.is_pointer() { (self.initial)() } else { self.built_in }
    }

    /// What the built file holds at value sites: an address is not known when the file is built.
    pub(crate) fn built_in(&self) -> u128 {
        self.built_in
    }

    pub(crate) fn parse(&self, text: &str) -> Result<u128, String> {
        (self.parse)(text)
    }

    /// The value with these bits, as text.
    pub(crate) fn show(&self, bits: u128) -> String {
        struct Shown<'a>(&'a Descriptor, u128);
        impl fmt::Display for Shown<'_> {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                (self.0.show)(self.1, out)
            }
        }
        Shown(self, bits).to_string()
    }
}

fn parse<T: ImmediateValue>(text: &str) -> Result<u128, String> {
    T::from_text(text).map(bits)
}

#[allow(unsafe_code)]
fn show<T: ImmediateValue>(value: u128, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    // SAFETY: callers pass bits that this variable holds or that `parse` gave.
    unsafe { from_bits::<T>(value) }.to_text(out)
}
