//! Two locks: one for who sets, one for the registry.
//!
//! * The *setters' lock* is held from before a set until after it, and by a
//!   [`Guard`](crate::Guard) for as long as the program likes. The program's own code may run
//!   meanwhile, and load a module.
//! * The *registry's lock* is held for moments, for one step: to register a module, to list, to carry
//!   out one set. The registry is reached only through it.
//!
//! Order: the setters' lock, then the registry's.
//!
//! # The dynamic loader
//!
//! A module's constructor and destructor run while the loader's lock is held. They take the registry's
//! lock and never the setters', so that they wait for nobody who may be waiting for the loader; and
//! whoever holds the registry's lock calls nothing that may want the loader's: no `dlopen`, no
//! `dl_iterate_phdr`, no standard error (its lock may belong to somebody who is setting), no
//! thread-local of a library (its first use asks the loader for memory).
//!
//! A thread that asks for a lock while it holds it is told so instead of waiting for itself.
//!
//! # Fork
//!
//! `fork` takes both first and lets go of them on both sides, so that the child never inherits a
//! half-done batch or a lock whose owner does not exist there (`pthread_atfork(3)`).

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Error;
use crate::registry::Registry;

static SETTERS: Mutex<()> = Mutex::new(());
static REGISTRY: Mutex<Registry> = Mutex::new(Registry::new());
/// The kernel's id of the thread that holds the setters' lock; 0 if none does. Only compared with
/// one's own.
static SETTER: AtomicI32 = AtomicI32::new(0);
/// The same for the registry's lock.
static OWNER: AtomicI32 = AtomicI32::new(0);

/// The setters' lock, held.
pub(crate) struct Setters {
    _held: MutexGuard<'static, ()>,
}

impl Drop for Setters {
    fn drop(&mut self) {
        // The guard, a field, is dropped after this.
        SETTER.store(0, Ordering::Relaxed);
    }
}

impl Setters {
    /// Waits for the registry's lock.
    pub(crate) fn registry(&self) -> Result<Locked, Error> {
        lock()
    }
}

/// The registry's lock, held.
pub(crate) struct Locked(MutexGuard<'static, Registry>);

impl Locked {
    pub(crate) fn registry(&mut self) -> &mut Registry {
        &mut self.0
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // The guard, a field, is dropped after this.
        OWNER.store(0, Ordering::Relaxed);
    }
}

/// Waits for the setters' lock.
pub(crate) fn setters() -> Result<Setters, Error> {
    let own = thread_id();
    // A test of the program's own runs under the registry's lock and may not set.
    if SETTER.load(Ordering::Relaxed) == own || OWNER.load(Ordering::Relaxed) == own {
        return Err(Error::WithinUpdate);
    }
    let guard = SETTERS.lock().unwrap_or_else(PoisonError::into_inner);
    SETTER.store(own, Ordering::Relaxed);
    Ok(Setters { _held: guard })
}

/// Waits for the registry's lock.
pub(crate) fn lock() -> Result<Locked, Error> {
    let own = thread_id();
    if OWNER.load(Ordering::Relaxed) == own {
        return Err(Error::WithinUpdate);
    }
    // A panic of another holder leaves the registry whole: everything that can fail comes before
    // the first change.
    let guard = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    OWNER.store(own, Ordering::Relaxed);
    Ok(Locked(guard))
}

cfg_select! {
    all(target_os = "linux", not(miri)) => {
        #[allow(unsafe_code)]
        fn thread_id() -> i32 {
            // SAFETY: always succeeds. No thread-local: those of a library may not be made yet.
            unsafe { libc::syscall(libc::SYS_gettid) as i32 }
        }
    }
    _ => {
        fn thread_id() -> i32 {
            use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
            let id = std::thread::current().id();
            BuildHasherDefault::<DefaultHasher>::default().hash_one(id) as i32 | 1
        }
    }
}

cfg_select! {
    all(unix, not(miri)) => { pub(crate) use fork::watch as watch_fork; }
    _ => { pub(crate) fn watch_fork() {} }
}

#[cfg(all(unix, not(miri)))]
mod fork {
    //! # Invariants
    //!
    //! * `F1` `HELD` is touched only between `prepare` and the handler on either side, by the
    //!   thread that forks, which holds the lock meanwhile.

    #![allow(unsafe_code)]

    use std::cell::UnsafeCell;
    use std::sync::Once;
    use std::sync::atomic::Ordering;

    use super::{Locked, OWNER, SETTER, Setters, lock, setters, thread_id};

    /// The registry's lock is let go first.
    type Both = (Option<Locked>, Option<Setters>);

    struct Held(UnsafeCell<Both>);

    // SAFETY: F1.
    unsafe impl Sync for Held {}

    static HELD: Held = Held(UnsafeCell::new((None, None)));

    extern "C" fn prepare() {
        // A thread that forks while it holds a lock keeps it, on both sides.
        let setters = setters().ok();
        let registry = lock().ok();
        if setters.is_some() || registry.is_some() {
            // SAFETY: F1.
            unsafe { *HELD.0.get() = (registry, setters) };
        }
    }

    extern "C" fn release() {
        // SAFETY: F1; a lock is still held here, or nothing is kept.
        drop(unsafe { std::mem::take(&mut *HELD.0.get()) });
    }

    extern "C" fn release_in_child() {
        release();
        for owner in [&SETTER, &OWNER] {
            if owner.load(Ordering::Relaxed) != 0 {
                // The thread that forked held the lock and goes on holding it, under another id here.
                owner.store(thread_id(), Ordering::Relaxed);
            }
        }
    }

    /// Makes `fork` take the locks, from now on.
    pub(crate) fn watch() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: the three functions are sound at any fork. Without memory for the
            // registration `fork` goes on as it would without us.
            unsafe { libc::pthread_atfork(Some(prepare), Some(release), Some(release_in_child)) };
        });
    }
}
