//! Setting many variables at one instant: [`Batch`], and the guard of [`lock`].

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;

use crate::error::Error;
use crate::lock::{self, Locked};
use crate::registry::Entry;
use crate::update::{self, Mode};
use crate::value::{ImmediateValue, Kind, bits};
use crate::variable::{Immediate, Untyped};

/// One variable and its new value.
#[derive(Clone, Copy)]
pub(crate) struct Change<'a> {
    pub(crate) variable: Untyped<'a>,
    pub(crate) bits: u128,
    size: usize,
    is_pointer: bool,
}

impl<'a> Change<'a> {
    pub(crate) fn new<T: ImmediateValue>(variable: &'a Immediate<T>, value: T) -> Self {
        Change {
            variable: Untyped::new(variable),
            bits: bits(value),
            size: size_of::<T>(),
            is_pointer: matches!(T::KIND, Kind::Pointer),
        }
    }

    /// The change of a registered variable to bits that are a value of its type.
    pub(crate) fn of_entry(entry: &Entry, bits: u128) -> Change<'static> {
        let descriptor = entry.descriptor;
        Change {
            variable: entry.variable,
            bits,
            size: descriptor.size(),
            is_pointer: descriptor.is_pointer(),
        }
    }

    /// Stores the backing value; the caller owns the update lock.
    #[allow(unsafe_code)]
    pub(crate) fn commit(&self) {
        // SAFETY: bits, size and kind are of one type, by the constructors.
        unsafe { self.variable.backing(self.size, self.is_pointer).store(self.bits) };
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
        update::apply(lock::lock()?.registry(), &self.changes, Mode::Live)
    }
}

impl fmt::Debug for Batch<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.changes.iter().filter_map(|change| {
            let descriptor = change.variable.descriptor?;
            Some((descriptor.name(), descriptor.show(change.bits)))
        });
        out.debug_map().entries(shown).finish()
    }
}

/// The update lock, held: no other thread sets until it is dropped.
///
/// Setting a variable directly while the guard lives is [`Error::WithinUpdate`]; set through the
/// guard.
pub struct Guard {
    locked: RefCell<Locked>,
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
    match lock::lock() {
        Ok(locked) => Guard { locked: RefCell::new(locked), _not_send: PhantomData },
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
        self.carry_out(&[Change::new(variable, value)])
    }

    /// Sets all variables of a batch.
    ///
    /// # Errors
    ///
    /// As [`Batch::apply`].
    pub fn apply(&self, batch: Batch<'_>) -> Result<(), Error> {
        self.carry_out(&batch.changes)
    }

    fn carry_out(&self, changes: &[Change<'_>]) -> Result<(), Error> {
        // Only a test of the program's own that sets again could find it borrowed.
        let mut locked = self.locked.try_borrow_mut().map_err(|_| Error::WithinUpdate)?;
        update::apply(locked.registry(), changes, Mode::Live)
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Guard")
    }
}
