//! [`Immediate`], the type of a variable, and the part of it that has no type.
//!
//! # Invariants
//!
//! * `I1` A [`Head`] is the first field of an `Immediate<T>` and is followed, at
//!   [`BACKING_OFFSET`], by its `Backing<T>`; its descriptor tells size and kind of `T`.
//! * `I2` A head with a descriptor lies in a `static` that `#[immediate]` declared: it lives as long
//!   as its module is loaded.

#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use crate::backing::{Backing, RawBacking};
use crate::batch::Change;
use crate::descriptor::Descriptor;
use crate::error::Error;
use crate::runtime;
use crate::update::Mode;
use crate::value::ImmediateValue;

/// A variable that lives in the instruction stream.
///
/// Declare it with [`#[immediate]`](macro@crate::immediate), read it with
/// [`immediate_read!`](crate::immediate_read) and [`immediate_if!`](crate::immediate_if), set it
/// with [`set`](Immediate::set) or, together with others, with a [`Batch`](crate::Batch).
///
/// ```
/// use immediate::{Immediate, immediate, immediate_if, immediate_read};
///
/// /// Verbosity of the request log.
/// #[immediate]
/// pub static VERBOSITY: Immediate<u8> = Immediate::new(0);
///
/// assert_eq!(immediate_read!(VERBOSITY), 0);
/// VERBOSITY.set(2)?;
/// assert!(immediate_if!(VERBOSITY >= 2));
/// # Ok::<(), immediate::Error>(())
/// ```
#[repr(C)]
pub struct Immediate<T> {
    pub(crate) head: Head,
    backing: Backing<T>,
}

/// The part of a variable that is the same for all types.
#[repr(C)]
pub(crate) struct Head {
    pub(crate) descriptor: Option<&'static Descriptor>,
    /// Place in the registry plus one; 0 before registration. Written under the update lock.
    pub(crate) entry: AtomicU32,
}

/// Where the backing lies in an `Immediate<T>`, for every `T`: its alignment is always 16.
pub(crate) const BACKING_OFFSET: usize = offset_of!(Immediate<u8>, backing);
const _: () = assert!(BACKING_OFFSET == offset_of!(Immediate<u128>, backing));

/// A variable without its type: a reference to the whole `Immediate<T>`, of which the head can be
/// seen.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Untyped<'a> {
    head: NonNull<Head>,
    lives: PhantomData<&'a Head>,
}

// SAFETY: as a shared reference to a head and a backing, which are both `Sync`.
unsafe impl Send for Untyped<'_> {}

impl<'a> Untyped<'a> {
    pub(crate) fn new<T: ImmediateValue>(variable: &'a Immediate<T>) -> Self {
        Untyped { head: NonNull::from(variable).cast(), lives: PhantomData }
    }

    /// # Safety
    ///
    /// `head` is null or the address of an `Immediate<T>` that lives for `'a`.
    pub(crate) unsafe fn from_address(head: *const Head) -> Option<Self> {
        NonNull::new(head.cast_mut()).map(|head| Untyped { head, lives: PhantomData })
    }

    /// The backing value, which has `size` bytes and `is_pointer` or not.
    pub(crate) fn backing(self, size: usize, is_pointer: bool) -> RawBacking<'a> {
        // SAFETY: I1; callers take size and kind from the variable's type or descriptor.
        unsafe {
            let start = self.head.cast::<u8>().add(BACKING_OFFSET);
            RawBacking::at(start.as_ptr(), size, is_pointer)
        }
    }
}

impl Deref for Untyped<'_> {
    type Target = Head;

    fn deref(&self) -> &Head {
        // SAFETY: I1; lives for `'a`.
        unsafe { self.head.as_ref() }
    }
}

impl<T: ImmediateValue> Immediate<T> {
    /// A variable with this initial value.
    ///
    /// Without [`#[immediate]`](macro@crate::immediate) on its `static` it is an atomic in memory:
    /// it can be read with [`get`](Immediate::get) and set, but has no sites and is not listed.
    #[must_use]
    pub const fn new(initial: T) -> Self {
        const {
            assert!(
                matches!(size_of::<T>(), 1 | 2 | 4 | 8 | 16),
                "the size of an immediate value is 1, 2, 4, 8 or 16 bytes"
            );
        }
        Immediate {
            head: Head { descriptor: None, entry: AtomicU32::new(0) },
            backing: Backing::new(initial),
        }
    }

    /// The variable with its description; what `#[immediate]` makes of the initializer.
    pub(crate) const fn described(self, descriptor: &'static Descriptor) -> Self {
        Immediate {
            head: Head { descriptor: Some(descriptor), entry: AtomicU32::new(0) },
            backing: self.backing,
        }
    }

    /// The initial value; for constants, which nobody has set.
    pub(crate) const fn into_initial(self) -> T {
        self.backing.into_first()
    }

    /// Reads the backing value with a plain load, for generic code and where no site is wanted.
    ///
    /// Async-signal-safe. During a [`set`](Immediate::set) it gives the old or the new value; it
    /// is not part of the one instant at which all sites change.
    ///
    /// ```
    /// # use immediate::{Immediate, immediate};
    /// #[immediate]
    /// static LIMIT: Immediate<u32> = Immediate::new(10);
    /// assert_eq!(LIMIT.get(), 10);
    /// ```
    #[must_use]
    pub fn get(&self) -> T {
        self.backing.load()
    }

    /// Sets the variable: patches every site that reads it while all threads go on running.
    ///
    /// When it returns `Ok`, every read that any thread starts afterwards gives this value or a
    /// later one. See the [guarantees](crate#guarantees).
    ///
    /// # Errors
    ///
    /// Nothing has changed, and the error says why in one line.
    ///
    /// ```
    /// # use immediate::{Immediate, immediate, immediate_read};
    /// #[immediate]
    /// static LIMIT: Immediate<u32> = Immediate::new(10);
    /// LIMIT.set(20)?;
    /// assert_eq!(immediate_read!(LIMIT), 20);
    /// # Ok::<(), immediate::Error>(())
    /// ```
    pub fn set(&self, value: T) -> Result<(), Error> {
        runtime::apply(&[Change::new(self, value)], Mode::Live)
    }

    /// Sets the variable while the program starts, without any synchronisation.
    ///
    /// # Errors
    ///
    /// [`Error::NotSingleThreaded`] once the process has a second thread, or where that cannot be
    /// known; otherwise as [`set`](Immediate::set). Nothing has changed.
    ///
    /// ```
    /// # use immediate::{Error, Immediate, immediate};
    /// #[immediate]
    /// static LIMIT: Immediate<u32> = Immediate::new(10);
    /// match LIMIT.set_early(20) {
    ///     Ok(()) => assert_eq!(LIMIT.get(), 20),
    ///     Err(Error::NotSingleThreaded) => assert_eq!(LIMIT.get(), 10),
    ///     Err(other) => panic!("{other}"),
    /// }
    /// ```
    pub fn set_early(&self, value: T) -> Result<(), Error> {
        runtime::apply(&[Change::new(self, value)], Mode::Early)
    }

    /// The variable's name: `module::path::NAME`, or what the attribute's `name` says; empty without
    /// the attribute.
    ///
    /// ```
    /// # use immediate::{Immediate, immediate};
    /// #[immediate(name = "server.limit")]
    /// static LIMIT: Immediate<u32> = Immediate::new(10);
    /// assert_eq!(LIMIT.name(), "server.limit");
    /// ```
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.head.descriptor.map_or("", Descriptor::name)
    }

    /// How many sites of the loaded modules read the variable.
    ///
    /// A site counts once for each copy that the compiler made of it, by inlining or unrolling. 0
    /// where variables are read by plain loads.
    ///
    /// ```
    /// # use immediate::{Immediate, immediate};
    /// #[immediate]
    /// static UNREAD: Immediate<u32> = Immediate::new(10);
    /// assert_eq!(UNREAD.site_count(), 0);
    /// ```
    #[must_use]
    pub fn site_count(&self) -> usize {
        runtime::site_count(Untyped::new(self))
    }
}

impl<T: ImmediateValue + fmt::Debug> fmt::Debug for Immediate<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.get();
        out.debug_struct("Immediate").field("name", &self.name()).field("value", &value).finish()
    }
}
