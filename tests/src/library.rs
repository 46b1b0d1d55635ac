//! Libraries that a test loads and unloads by itself, with nothing between it and the loader.

use std::ffi::{CStr, CString, c_void};
use std::path::Path;

/// A library that is loaded.
#[derive(Debug)]
pub struct Library(*mut c_void);

// SAFETY: a handle, which every thread may use.
#[allow(unsafe_code)]
unsafe impl Send for Library {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Library {}

fn last_error() -> String {
    // SAFETY: the loader's own text, or null.
    #[allow(unsafe_code)]
    unsafe {
        let text = libc::dlerror();
        if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into() }
    }
}

#[allow(unsafe_code)]
impl Library {
    /// Loads a library.
    ///
    /// # Errors
    ///
    /// What the loader says.
    pub fn load(path: &Path) -> Result<Self, String> {
        let path = CString::new(path.to_str().expect("UTF-8")).expect("no zero inside");
        // SAFETY: loads a library of the tests.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        if handle.is_null() { Err(last_error()) } else { Ok(Library(handle)) }
    }

    /// Unloads it.
    pub fn unload(self) {
        // SAFETY: opened by `load`, closed once.
        assert_eq!(unsafe { libc::dlclose(self.0) }, 0, "{}", last_error());
    }

    /// Whether a library is still loaded.
    #[must_use]
    pub fn is_loaded(path: &Path) -> bool {
        let path = CString::new(path.to_str().expect("UTF-8")).expect("no zero inside");
        // SAFETY: loads nothing.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
        if !handle.is_null() {
            // SAFETY: counted by the call above.
            unsafe { libc::dlclose(handle) };
        }
        !handle.is_null()
    }

    fn symbol(&self, name: &str) -> *mut c_void {
        // A name of its own: the C library exports `read` as well, and comes first.
        let name = CString::new(format!("plugin_{name}")).expect("no zero inside");
        // SAFETY: asks the loader.
        let found = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        assert!(!found.is_null(), "{name:?} is exported");
        found
    }

    /// A function of the fixtures that takes nothing.
    #[must_use]
    pub fn call(&self, name: &str) -> u64 {
        self.function(name)()
    }

    /// The same, to be called often.
    #[must_use]
    pub fn function(&self, name: &str) -> extern "C" fn() -> u64 {
        // SAFETY: fixtures export functions of this type under the names that tests pass here.
        unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> u64>(self.symbol(name)) }
    }

    /// A function of the fixtures that takes a number.
    #[must_use]
    pub fn call_with(&self, name: &str, number: u64) -> u64 {
        let symbol = self.symbol(name);
        // SAFETY: as above; a result of one byte lies in the lowest one.
        unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(u64) -> u64>(symbol)(number) }
    }

    /// A function that takes a number and tells whether it succeeded.
    #[must_use]
    pub fn succeeds(&self, name: &str, number: u64) -> bool {
        let symbol = self.symbol(name);
        // SAFETY: as above.
        unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(u64) -> bool>(symbol)(number) }
    }

    /// The address of a symbol.
    #[must_use]
    pub fn address(&self, name: &str) -> usize {
        self.symbol(name) as usize
    }
}
