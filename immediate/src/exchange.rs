//! Texts and bits as they pass between copies of this library, and between Rust and C: `repr(C)`, and
//! without anything that one side allocates and the other frees.
//!
//! # Invariants
//!
//! * `X1` A [`Text`] points to `length` bytes that live as long as whoever passed it promises: a
//!   constant as long as its module, an argument during the call.
//! * `X2` The function of a [`Sink`] takes the sink's own `context`, and a text that lives during the
//!   call.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fmt;

/// Bytes of a text.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Text {
    start: *const u8,
    length: usize,
}

// SAFETY: X1; what it points to is not written.
unsafe impl Send for Text {}
// SAFETY: as above.
unsafe impl Sync for Text {}

impl Text {
    /// A text that is passed on.
    #[must_use]
    pub(crate) const fn new(text: &str) -> Self {
        Text { start: text.as_ptr(), length: text.len() }
    }

    /// The text; what is no UTF-8 is said to be none.
    ///
    /// # Safety
    ///
    /// X1, for `'a`.
    pub(crate) unsafe fn get<'a>(self) -> &'a str {
        if self.length == 0 {
            return "";
        }
        // SAFETY: X1.
        let bytes = unsafe { std::slice::from_raw_parts(self.start, self.length) };
        std::str::from_utf8(bytes).unwrap_or("(no UTF-8)")
    }
}

/// Bits of a value, zero-extended: the lower and the upper half.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    low: u64,
    high: u64,
}

impl Bits {
    pub(crate) const fn new(bits: u128) -> Self {
        Bits { low: bits as u64, high: (bits >> 64) as u64 }
    }

    pub(crate) const fn get(self) -> u128 {
        self.low as u128 | (self.high as u128) << 64
    }
}

/// Where the other side puts a text.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sink {
    write: extern "C" fn(*mut c_void, Text),
    context: *mut c_void,
}

impl Sink {
    /// What `fill` writes into a sink.
    pub(crate) fn collect<R>(fill: impl FnOnce(Sink) -> R) -> (R, String) {
        extern "C" fn append(text: *mut c_void, more: Text) {
            // SAFETY: X2; the context is the text below, which outlives the sink.
            unsafe { (*text.cast::<String>()).push_str(more.get()) };
        }
        let mut text = String::new();
        let result = fill(Sink { write: append, context: (&raw mut text).cast() });
        (result, text)
    }

    pub(crate) fn put(self, text: &str) {
        (self.write)(self.context, Text::new(text));
    }

    pub(crate) fn put_all(self, what: impl fmt::Display) {
        self.put(&what.to_string());
    }
}

/// Calls `each` of the other side for every item, with its context.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Each<T> {
    call: extern "C" fn(*mut c_void, *const T),
    context: *mut c_void,
}

impl<T> Each<T> {
    pub(crate) fn put(&self, item: &T) {
        (self.call)(self.context, item);
    }

    /// The items, each turned into what the caller keeps of it.
    pub(crate) fn collect<R, K>(fill: impl FnOnce(Each<T>) -> R, keep: fn(&T) -> K) -> (R, Vec<K>) {
        struct Kept<T, K> {
            keep: fn(&T) -> K,
            all: Vec<K>,
        }
        extern "C" fn append<T, K>(kept: *mut c_void, item: *const T) {
            // SAFETY: the context is the list below, which outlives the call; the item lives during it.
            let (kept, item) = unsafe { (&mut *kept.cast::<Kept<T, K>>(), &*item) };
            kept.all.push((kept.keep)(item));
        }
        let mut kept = Kept { keep, all: Vec::new() };
        let each = Each { call: append::<T, K>, context: (&raw mut kept).cast() };
        let result = fill(each);
        (result, kept.all)
    }
}
