//! The update lock: one thread at a time sets, registers or lists.
//!
//! The registry is reached only through the guard, which is what functions that need the lock ask
//! for. A thread that asks for the lock while it holds it is told so instead of waiting for itself.
//!
//! No call into the dynamic loader is made under this lock: a module's constructor takes it while
//! the loader's lock is held, so the other order would deadlock.
//!
//! # Fork
//!
//! `fork` takes the lock first and lets go of it on both sides, so that the child never inherits a
//! half-done batch or a lock whose owner does not exist there (`pthread_atfork(3)`).

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Error;
use crate::registry::Registry;

static REGISTRY: Mutex<Registry> = Mutex::new(Registry::new());
/// The kernel's id of the thread that holds the lock; 0 if none does. Only compared with one's own.
static OWNER: AtomicI32 = AtomicI32::new(0);

/// The lock, held.
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

/// Waits for the lock.
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

    use super::{Locked, OWNER, lock, thread_id};

    struct Held(UnsafeCell<Option<Locked>>);

    // SAFETY: F1.
    unsafe impl Sync for Held {}

    static HELD: Held = Held(UnsafeCell::new(None));

    extern "C" fn prepare() {
        // A thread that forks while it holds the lock keeps it, on both sides.
        if let Ok(locked) = lock() {
            // SAFETY: F1.
            unsafe { *HELD.0.get() = Some(locked) };
        }
    }

    extern "C" fn release() {
        // SAFETY: F1; the lock is still held here.
        drop(unsafe { (*HELD.0.get()).take() });
    }

    extern "C" fn release_in_child() {
        release();
        if OWNER.load(Ordering::Relaxed) != 0 {
            // The thread that forked held the lock and goes on holding it, under another id here.
            OWNER.store(thread_id(), Ordering::Relaxed);
        }
    }

    /// Makes `fork` take the lock, from now on.
    pub(crate) fn watch() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: the three functions are sound at any fork. Without memory for the
            // registration `fork` goes on as it would without us.
            unsafe { libc::pthread_atfork(Some(prepare), Some(release), Some(release_in_child)) };
        });
    }
}
