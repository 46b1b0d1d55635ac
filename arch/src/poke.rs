//! One change to one site.

use std::fmt;

/// A change of the bytes of one site: where it is, what stands there and what shall.
///
/// All bytes that differ lie in one *field* of at most eight bytes, which begins `field` bytes
/// into the instruction. For a branch the field is the whole instruction; for a load of an
/// immediate it is the immediate, and the opcode before it never changes.
///
/// `old` and `new` hold the field as it lies in memory, the lowest byte first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Poke {
    /// Address of the first byte of the instruction.
    pub address: usize,
    /// The field before the change.
    pub old: u64,
    /// The field after the change.
    pub new: u64,
    /// Where the field begins, in bytes from `address`.
    pub field: u8,
    /// Length of the field in bytes, 1 to 8.
    pub width: u8,
    /// The first two bytes of the instruction as they are before the change.
    pub head: [u8; 2],
}

impl Poke {
    /// Address of the first byte that may change.
    #[must_use]
    #[inline]
    pub fn field_address(&self) -> usize {
        self.address + usize::from(self.field)
    }

    /// Address behind the last byte that may change.
    #[must_use]
    #[inline]
    pub fn end(&self) -> usize {
        self.field_address() + usize::from(self.width)
    }

    /// The first byte of the instruction after the change.
    #[must_use]
    #[inline]
    pub fn new_first_byte(&self) -> u8 {
        if self.field == 0 { self.new.to_le_bytes()[0] } else { self.head[0] }
    }

    /// The first byte of the instruction before the change.
    #[must_use]
    #[inline]
    pub fn old_first_byte(&self) -> u8 {
        if self.field == 0 { self.old.to_le_bytes()[0] } else { self.head[0] }
    }

    /// The same change backwards.
    #[must_use]
    pub fn reversed(&self) -> Poke {
        let mut back = *self;
        std::mem::swap(&mut back.old, &mut back.new);
        back.head = back.old_head();
        back
    }

    /// The first two bytes of the instruction, as `old` says.
    #[must_use]
    pub fn old_head(&self) -> [u8; 2] {
        if self.field == 0 {
            let [first, second, ..] = self.old.to_le_bytes();
            return [first, second];
        }
        self.head
    }

    /// The change when it is over: old as new.
    #[must_use]
    pub fn settled(&self) -> Poke {
        let over = Poke { old: self.new, ..*self };
        Poke { head: over.old_head(), ..over }
    }

    /// Whether the change alters nothing.
    #[must_use]
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.old == self.new
    }
}

/// What a record promised and the code does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Address of the site.
    pub address: usize,
    /// The bytes that stand there.
    pub found: Vec<u8>,
    /// What should stand there, in words.
    pub expected: String,
}

impl std::error::Error for Mismatch {}

impl fmt::Display for Mismatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the code at {:#x} is", self.address)?;
        for byte in &self.found {
            write!(out, " {byte:02x}")?;
        }
        write!(out, ", its record says {}", self.expected)
    }
}
