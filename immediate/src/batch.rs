//! Setting many variables at one instant: [`Batch`], and the guard of [`lock`].

use std::fmt;
use std::marker::PhantomData;

use immediate_arch::isa::imp;

use crate::descriptor::Descriptor;
use crate::error::Error;
use crate::exchange::Bits;
use crate::registry::{Declaration, Entry};
use crate::runtime::{self, Held};
use crate::update::Mode;
use crate::value::{ImmediateValue, Kind, bits};
use crate::variable::{Immediate, Untyped};

/// One variable and its new value; the same in all copies of this library.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Change<'a> {
    pub(crate) variable: Untyped<'a>,
    bits: Bits,
    size: u32,
    is_pointer: u32,
}

impl<'a> Change<'a> {
    pub(crate) fn new<T: ImmediateValue>(variable: &'a Immediate<T>, value: T) -> Self {
        Change {
            variable: Untyped::new(variable),
            bits: Bits::new(bits(value)),
            size: size_of::<T>() as u32,
            is_pointer: u32::from(matches!(T::KIND, Kind::Pointer)),
        }
    }

    /// The change of a registered variable to bits that are a value of its type.
    pub(crate) fn of_entry(entry: &Entry, bits: u128) -> Change<'static> {
        Self::of(entry.variable, entry.descriptor, bits)
    }

    /// The same for one of the declarations that share a variable.
    pub(crate) fn of_declaration(declaration: &Declaration, bits: u128) -> Change<'static> {
        Self::of(declaration.variable, declaration.descriptor, bits)
    }

    fn of(variable: Untyped<'static>, descriptor: &Descriptor, bits: u128) -> Change<'static> {
        Change {
            variable,
            bits: Bits::new(bits),
            size: descriptor.size() as u32,
            is_pointer: u32::from(descriptor.is_pointer()),
        }
    }

    pub(crate) fn bits(&self) -> u128 {
        self.bits.get()
    }

    /// Whether sites may hold the value.
    pub(crate) fn can_have_sites(&self) -> bool {
        self.size as usize <= imp::MAX_VALUE
    }

    /// Stores the backing value; the caller owns the registry's lock.
    #[allow(unsafe_code)]
    pub(crate) fn commit(&self) {
        let backing = self.variable.backing(self.size as usize, self.is_pointer != 0);
        // SAFETY: bits, size and kind are of one type, by the constructors.
        unsafe { backing.store(self.bits()) };
    }
}

/// Sets many variables together: one round of synchronisation, one instant, all or nothing.
///
/// ```
/// use immediate::{Batch, Immediate, immediate, immediate_read};
///
/// #[immediate]
/// static WIDTH: Immediate<u32> = Immediate::new(80);
/// #[immediate]
/// static WRAP: Immediate<bool> = Immediate::new(false);
///
/// Batch::new().set(&WIDTH, 120).set(&WRAP, true).apply()?;
/// assert_eq!((immediate_read!(WIDTH), immediate_read!(WRAP)), (120, true));
/// # Ok::<(), immediate::Error>(())
/// ```
#[derive(Clone, Default)]
#[must_use = "a batch changes nothing until it is applied"]
pub struct Batch<'a> {
    changes: Vec<Change<'a>>,
}

impl<'a> Batch<'a> {
    /// A batch that changes nothing.
    pub fn new() -> Self {
        Batch::default()
    }

    /// Adds a variable and its new value. Of several values for one variable the last counts.
    pub fn set<T: ImmediateValue>(mut self, variable: &'a Immediate<T>, value: T) -> Self {
        self.changes.push(Change::new(variable, value));
        self
    }

    /// How many values have been added.
    ///
    /// ```
    /// assert_eq!(immediate::Batch::new().len(), 0);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether nothing has been added.
    ///
    /// ```
    /// assert!(immediate::Batch::new().is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Sets all of the variables.
    ///
    /// # Errors
    ///
    /// Why none of them was set.
    pub fn apply(self) -> Result<(), Error> {
        runtime::apply(&self.changes, Mode::Live)
    }
}

impl fmt::Debug for Batch<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.changes.iter().filter_map(|change| {
            let descriptor = change.variable.descriptor?;
            Some((descriptor.name(), descriptor.show(change.bits())))
        });
        out.debug_map().entries(shown).finish()
    }
}

/// The update lock, held: no other thread sets until it is dropped, in any module. Loading and
/// unloading modules goes on.
///
/// Setting a variable directly while the guard lives is [`Error::WithinUpdate`]; set through the
/// guard.
pub struct Guard {
    held: Held,
    /// The lock belongs to the thread that took it.
    _not_send: PhantomData<*const ()>,
}

/// Takes the update lock, to read, decide and set without another setter between.
///
/// ```
/// use immediate::{Immediate, immediate};
///
/// #[immediate]
/// static COUNT: Immediate<u32> = Immediate::new(0);
///
/// let guard = immediate::lock();
/// let next = COUNT.get() + 1;
/// guard.set(&COUNT, next)?;
/// # assert_eq!(COUNT.get(), 1);
/// # Ok::<(), immediate::Error>(())
/// ```
///
/// # Panics
///
/// If this thread holds the lock already: waiting for itself would never end.
#[must_use = "the lock is held as long as the guard lives"]
pub fn lock() -> Guard {
    match runtime::hold() {
        Ok(held) => Guard { held, _not_send: PhantomData },
        Err(error) => panic!("{error}"),
    }
}

impl Guard {
    /// Sets a variable.
    ///
    /// # Errors
    ///
    /// As [`Immediate::set`].
    pub fn set<T: ImmediateValue>(&self, variable: &Immediate<T>, value: T) -> Result<(), Error> {
        self.held.apply(&[Change::new(variable, value)])
    }

    /// Sets all variables of a batch.
    ///
    /// # Errors
    ///
    /// As [`Batch::apply`].
    pub fn apply(&self, batch: Batch<'_>) -> Result<(), Error> {
        self.held.apply(&batch.changes)
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Guard")
    }
}
