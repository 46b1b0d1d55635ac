//! Loading plugins: shared libraries whose variables and sites register themselves.
//!
//! Any way to load a library does, `dlopen` as well. [`Plugin`] adds an error for each thing that can
//! go wrong, among them that the runtime refused the library.
//!
//! # Invariants
//!
//! * `L1` A handle is that of an open library, until `unload` closes it.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::ptr;

use libloading::os::unix::Library;

use crate::introspect::{Module, modules};
use crate::{lock, runtime};

pub use libloading::Symbol;

/// A library that is loaded.
///
/// When it is dropped, it is unloaded as by [`unload`](Plugin::unload).
///
/// ```no_run
/// use immediate::plugin::Plugin;
///
/// // SAFETY: our own plugin, whose constructors are sound.
/// let plugin = unsafe { Plugin::load("plugins/libfilter.so") }?;
/// // SAFETY: the plugin exports a function of this type by this name.
/// let filter = unsafe { plugin.get::<extern "C" fn(u32) -> bool>("filter") }?;
/// println!("{} {:?}", filter(7), plugin.module());
/// plugin.unload()?;
/// # Ok::<(), immediate::plugin::PluginError>(())
/// ```
#[derive(Debug)]
pub struct Plugin {
    library: libloading::Library,
    path: PathBuf,
    /// Its name for the loader, and its load address.
    name: CString,
    base: usize,
}

/// What went wrong with a plugin, by stage.
#[derive(Debug)]
#[non_exhaustive]
pub enum PluginError {
    /// The file cannot be read.
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The dynamic loader does not load it.
    Load {
        /// The file.
        path: PathBuf,
        /// What the loader says.
        source: libloading::Error,
    },
    /// It was loaded, and the runtime refused its tables. It has been unloaded again.
    Register {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        text: String,
    },
    /// It does not export this symbol.
    Symbol {
        /// The file.
        path: PathBuf,
        /// The symbol.
        name: String,
        /// What the loader says.
        source: libloading::Error,
    },
    /// The dynamic loader does not unload it.
    Unload {
        /// The file.
        path: PathBuf,
        /// What the loader says.
        source: libloading::Error,
    },
}

impl fmt::Display for PluginError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PluginError::File { path, source } => {
                write!(out, "cannot read the plugin {}: {source}", path.display())
            }
            PluginError::Load { path, source } => {
                write!(
                    out,
                    "the loader does not load the plugin {}: {}",
                    path.display(),
                    said(source)
                )
            }
            PluginError::Register { path, text } => {
                write!(out, "the plugin {} was refused: {text}; build it again", path.display())
            }
            PluginError::Symbol { path, name, source } => {
                write!(
                    out,
                    "the plugin {} does not export {name}: {}",
                    path.display(),
                    said(source)
                )
            }
            PluginError::Unload { path, source } => {
                write!(
                    out,
                    "the loader does not unload the plugin {}: {}",
                    path.display(),
                    said(source)
                )
            }
        }
    }
}

/// What the loader says, which the crate's error has behind it.
fn said(error: &libloading::Error) -> String {
    use std::error::Error;
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

impl std::error::Error for PluginError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PluginError::File { source, .. } => Some(source),
            PluginError::Load { source, .. }
            | PluginError::Symbol { source, .. }
            | PluginError::Unload { source, .. } => Some(source),
            PluginError::Register { .. } => None,
        }
    }
}

impl Plugin {
    /// Loads a library. Its sites hold the current values before its own constructors run.
    ///
    /// # Errors
    ///
    /// [`PluginError::File`], [`PluginError::Load`] or [`PluginError::Register`]; nothing is loaded
    /// then.
    ///
    /// # Safety
    ///
    /// As for [`libloading::Library::new`]: the library's constructors and destructors run, and are
    /// sound in this process.
    pub unsafe fn load(path: impl AsRef<Path>) -> Result<Self, PluginError> {
        let path = path.as_ref().to_path_buf();
        let opened = std::fs::File::open(&path);
        opened.map_err(|source| PluginError::File { path: path.clone(), source })?;
        // A name without a slash would be searched for elsewhere (`dlopen(3)`).
        let file = std::path::absolute(&path)
            .map_err(|source| PluginError::File { path: path.clone(), source })?;
        let flags = libloading::os::unix::RTLD_NOW | libloading::os::unix::RTLD_LOCAL;
        // SAFETY: by the caller.
        let library = unsafe { Library::open(Some(&file), flags) }
            .map_err(|source| PluginError::Load { path: path.clone(), source })?;
        let (library, name, base) = described(library);
        let plugin = Plugin { library: library.into(), path, name, base };
        match refusal(base) {
            None => Ok(plugin),
            Some(text) => Err(PluginError::Register { path: plugin.path.clone(), text }),
        }
    }

    /// A function or static that it exports.
    ///
    /// # Errors
    ///
    /// [`PluginError::Symbol`].
    ///
    /// # Safety
    ///
    /// As for [`libloading::Library::get`]: the symbol has the type `T`, and copies of it are not used
    /// after the plugin has been unloaded.
    pub unsafe fn get<T>(&self, name: &str) -> Result<Symbol<'_, T>, PluginError> {
        // SAFETY: by the caller.
        unsafe { self.library.get(name.as_bytes()) }.map_err(|source| PluginError::Symbol {
            path: self.path.clone(),
            name: name.to_string(),
            source,
        })
    }

    /// The path that it was loaded by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The module; none if it has neither variables nor sites.
    #[must_use]
    pub fn module(&self) -> Option<Module> {
        modules().find(|module| module.base == self.base)
    }

    /// Unloads it, and tells whether it is gone. A library that somebody else has opened too stays, and
    /// one with a thread-local that has a destructor, until that thread ends; its sites go on
    /// following.
    ///
    /// # Errors
    ///
    /// [`PluginError::Unload`].
    pub fn unload(self) -> Result<bool, PluginError> {
        let Plugin { library, path, name, .. } = self;
        library.close().map_err(|source| PluginError::Unload { path, source })?;
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
        // SAFETY: loads nothing.
        let left = unsafe { libc::dlopen(name.as_ptr(), flags) };
        if !left.is_null() {
            // SAFETY: counted by the call above.
            unsafe { libc::dlclose(left) };
        }
        Ok(left.is_null())
    }
}

/// The library's name for the loader, and its load address.
fn described(library: Library) -> (Library, CString, usize) {
    /// The beginning of the loader's `struct link_map` (`<link.h>`).
    #[repr(C)]
    struct LinkMap {
        address: usize,
        name: *const c_char,
    }
    const LINKMAP: c_int = 2;
    unsafe extern "C" {
        fn dlinfo(handle: *mut c_void, request: c_int, into: *mut c_void) -> c_int;
    }
    let handle = library.into_raw();
    let mut map: *const LinkMap = ptr::null();
    // SAFETY: L1; the request writes a pointer (`dlinfo(3)`).
    let answer = unsafe { dlinfo(handle, LINKMAP, (&raw mut map).cast()) };
    // SAFETY: L1; the loader's own description lives as long as the library is open.
    let (name, base) = match unsafe { map.as_ref() } {
        // SAFETY: as above.
        Some(map) if answer == 0 => (unsafe { CStr::from_ptr(map.name) }.to_owned(), map.address),
        _ => (CString::default(), 0),
    };
    // SAFETY: from `into_raw`.
    (unsafe { Library::from_raw(handle) }, name, base)
}

/// Why the runtime has refused the module at this address, if it has.
fn refusal(base: usize) -> Option<String> {
    match runtime::foreign() {
        Some(there) => there.refusal(base),
        None => lock::lock().ok()?.registry().refusal(base).map(String::from),
    }
}
