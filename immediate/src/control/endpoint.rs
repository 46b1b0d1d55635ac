//! The socket's life: opened once in a process, closed by its guard, at exit, and in a child.
//!
//! # Invariants
//!
//! * `E1` `fork` holds the lock of [`STATE`] from before it to behind it, and the descriptors in
//!   `open` are those of this module, no more and no less, whenever the lock is free. So a child
//!   closes exactly them; the thread that owned them does not exist there.
//! * `E2` `HELD` is touched only between `prepare` and the handler on either side, by the thread that
//!   forks.

#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::fs;
use std::io::{self, ErrorKind};
use std::mem;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread::{self, JoinHandle};

use super::directory;
use super::server::Server;
use super::signals;

struct State {
    serving: Option<Serving>,
    /// Every descriptor of this module that is open.
    open: Vec<RawFd>,
}

struct Serving {
    path: PathBuf,
    /// Closed to wake the thread.
    wake: RawFd,
    thread: JoinHandle<()>,
}

static STATE: Mutex<State> = Mutex::new(State { serving: None, open: Vec::new() });

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The list of open descriptors, locked.
pub(super) struct Open(MutexGuard<'static, State>);

impl Open {
    pub(super) fn lock() -> Self {
        Open(state())
    }

    pub(super) fn add(&mut self, descriptor: RawFd) {
        self.0.open.push(descriptor);
    }

    pub(super) fn remove(&mut self, descriptor: RawFd) {
        self.0.open.retain(|one| *one != descriptor);
    }
}

/// The open endpoint; closes when it is dropped, and when the process exits.
///
/// Values that were set for a time come back when it is dropped.
#[derive(Debug)]
#[must_use = "the endpoint closes when this is dropped: bind it for as long as it shall serve"]
pub struct Endpoint {
    path: PathBuf,
    /// The process that opened it.
    pid: u32,
}

impl Endpoint {
    /// The path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Opens the endpoint: a socket in the user's runtime directory, and the thread that serves it.
///
/// # Errors
///
/// What stopped it, in one line; the program can go on without. A process has one endpoint: a second
/// one is [`ErrorKind::AlreadyExists`].
///
/// ```
/// let control = immediate::control::serve()?;
/// assert!(control.path().exists());
/// let path = control.path().to_path_buf();
/// drop(control);
/// assert!(!path.exists());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn serve() -> io::Result<Endpoint> {
    watch();
    let mut state = state();
    if let Some(serving) = &state.serving {
        return Err(io::Error::new(
            ErrorKind::AlreadyExists,
            format!("this process already serves at {}", serving.path.display()),
        ));
    }
    let program = std::env::current_exe().ok();
    let name = program.as_deref().and_then(Path::file_name).unwrap_or("program".as_ref());
    let path = directory::place(&name.to_string_lossy()).map_err(|error| {
        io::Error::new(error.kind(), format!("there is no place for the control socket: {error}"))
    })?;
    let listener = listen(&path).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot serve at {}: {error}", path.display()))
    })?;
    let started = UnixStream::pair().and_then(|(wake, woken)| {
        let open = [listener.as_raw_fd(), wake.as_raw_fd(), woken.as_raw_fd()];
        let server = Server::new(listener, woken);
        let run = move || {
            signals::leave_to_the_program();
            server.run();
        };
        let thread = thread::Builder::new().name("immediate".into()).spawn(run)?;
        Ok((open, wake, thread))
    });
    match started {
        Ok((open, wake, thread)) => {
            state.open.extend(open);
            state.serving = Some(Serving { path: path.clone(), wake: wake.into_raw_fd(), thread });
            Ok(Endpoint { path, pid: std::process::id() })
        }
        Err(error) => {
            let _ = fs::remove_file(&path);
            Err(error)
        }
    }
}

/// A listener that gets its name only when it listens, so that whoever finds one that refuses knows
/// that its program is gone.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let unfinished = path.with_file_name(format!(".{}", std::process::id()));
    let _ = fs::remove_file(&unfinished);
    let listener = UnixListener::bind(&unfinished)?;
    let named = fs::set_permissions(&unfinished, fs::Permissions::from_mode(0o600))
        .and_then(|()| listener.set_nonblocking(true))
        .and_then(|()| fs::rename(&unfinished, path));
    if let Err(error) = named {
        let _ = fs::remove_file(&unfinished);
        return Err(error);
    }
    Ok(listener)
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            return;
        }
        let Some(serving) = state().serving.take() else { return };
        let _ = fs::remove_file(&serving.path);
        {
            let mut open = Open::lock();
            open.remove(serving.wake);
            // SAFETY: E1; nobody else has this descriptor. Its peer, in the thread, becomes readable.
            unsafe { libc::close(serving.wake) };
        }
        // It panics nowhere, and if it did there is nobody to tell.
        let _ = serving.thread.join();
    }
}

/// Makes `exit` remove the socket and `fork` leave it to the parent, from now on.
fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // The functions must be there as long as the process is.
        crate::module::stay();
        // SAFETY: functions that live as long as the process. Without memory for the registration
        // the socket stays behind, and the next program that serves removes it.
        unsafe {
            libc::pthread_atfork(Some(prepare), Some(release), Some(release_in_child));
            libc::atexit(at_exit);
        }
    });
}

extern "C" fn at_exit() {
    // Were the lock held, its owner would be a thread that is closing the endpoint.
    if let Ok(state) = STATE.try_lock()
        && let Some(serving) = &state.serving
    {
        let _ = fs::remove_file(&serving.path);
    }
}

struct Held(UnsafeCell<Option<MutexGuard<'static, State>>>);

// SAFETY: E2.
unsafe impl Sync for Held {}

static HELD: Held = Held(UnsafeCell::new(None));

extern "C" fn prepare() {
    let guard = state();
    // SAFETY: E2.
    unsafe { *HELD.0.get() = Some(guard) };
}

extern "C" fn release() {
    // SAFETY: E2; the lock is still held here.
    drop(unsafe { (*HELD.0.get()).take() });
}

extern "C" fn release_in_child() {
    // SAFETY: E2; the lock is still held here.
    let Some(mut state) = (unsafe { (*HELD.0.get()).take() }) else { return };
    for descriptor in mem::take(&mut state.open) {
        // SAFETY: E1.
        unsafe { libc::close(descriptor) };
    }
    // Its thread does not exist here, so it can be neither joined nor let go of.
    mem::forget(state.serving.take());
}
