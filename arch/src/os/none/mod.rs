//! An operating system without a file of its own: nothing can be changed, and each part says so.
//!
//! Every read is a plain load there, so no batch ever holds a poke.

/// A system call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Name of the call.
    pub call: &'static str,
    /// `errno`.
    pub errno: i32,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}: {}", self.call, std::io::Error::from_raw_os_error(self.errno))
    }
}

const UNSUPPORTED: Failure =
    Failure { call: "changing code, which is not supported on this system", errno: 0 };

/// No barrier.
pub mod barrier {
    use super::{Failure, UNSUPPORTED};

    /// Nothing was ever prepared.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Surroundings;

    /// Nowhere.
    #[must_use]
    pub fn surroundings() -> Surroundings {
        Surroundings
    }

    /// Always refuses.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn prepare() -> Result<(), Failure> {
        Err(UNSUPPORTED)
    }

    /// Always refuses.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn synchronise() -> Result<(), Failure> {
        Err(UNSUPPORTED)
    }
}

/// No code is stored.
pub mod flush {
    use crate::poke::Poke;

    /// Does nothing.
    pub fn flush(_: &[Poke]) {}
}

/// No writer.
pub mod text {
    use super::{Failure, UNSUPPORTED};
    use crate::known::KnownText;
    use crate::poke::Poke;
    use crate::status::Reason;

    /// An executable segment.
    #[derive(Debug)]
    pub struct Segment(KnownText);

    impl Segment {
        /// A segment that is never written.
        #[must_use]
        pub fn new(range: KnownText) -> Self {
            Segment(range)
        }

        /// Its addresses.
        #[must_use]
        pub fn range(&self) -> KnownText {
            self.0
        }
    }

    /// Never exists.
    #[derive(Debug)]
    pub enum Span {}

    /// There are none.
    ///
    /// # Errors
    ///
    /// The first address of a poke.
    pub fn spans(_: &[Option<Segment>], pokes: &[Poke]) -> Result<Vec<Span>, usize> {
        pokes.first().map_or(Ok(Vec::new()), |poke| Err(poke.address))
    }

    /// Always refuses.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn open(_: Vec<Span>) -> Result<OpenText<'static>, Failure> {
        Err(UNSUPPORTED)
    }

    /// Never exists.
    #[derive(Debug)]
    pub struct OpenText<'a>(std::convert::Infallible, std::marker::PhantomData<&'a ()>);

    /// The memory of the process, which is never written.
    #[derive(Debug, Default)]
    pub struct Memory;

    impl Memory {
        /// Not open.
        #[must_use]
        pub const fn new() -> Self {
            Memory
        }

        /// Always refuses.
        ///
        /// # Errors
        ///
        /// Always.
        pub fn prove(&mut self) -> Result<OpenMemory, Reason> {
            Err(Reason::Failed(UNSUPPORTED))
        }
    }

    /// Protections, which are never changed.
    #[derive(Debug, Default)]
    pub struct Protection;

    impl Protection {
        /// Not proven.
        #[must_use]
        pub const fn new() -> Self {
            Protection
        }

        /// Always refuses.
        ///
        /// # Errors
        ///
        /// Always.
        pub fn prove(&mut self, _: &[Option<Segment>]) -> Result<(), Reason> {
            Err(Reason::Failed(UNSUPPORTED))
        }
    }

    /// Always refuses.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn try_open(_: &[Option<Segment>]) -> Result<(), Failure> {
        Err(UNSUPPORTED)
    }

    /// Never exists.
    #[derive(Debug)]
    pub enum OpenMemory {}

    impl OpenMemory {
        /// Never called.
        #[must_use]
        pub fn open<'a>(self) -> OpenText<'a> {
            match self {}
        }
    }

    #[allow(unsafe_code)]
    impl OpenText<'_> {
        /// Never called.
        #[must_use]
        pub fn can_fail(&self) -> bool {
            match self.0 {}
        }

        /// Never called.
        ///
        /// # Errors
        ///
        /// None.
        pub fn close(self, _: bool) -> Result<(), Failure> {
            match self.0 {}
        }

        /// Never called.
        ///
        /// # Errors
        ///
        /// None.
        ///
        /// # Safety
        ///
        /// None is needed.
        pub unsafe fn store_byte(&self, _: usize, _: u8) -> Result<(), Failure> {
            match self.0 {}
        }

        /// Never called.
        ///
        /// # Errors
        ///
        /// None.
        ///
        /// # Safety
        ///
        /// None is needed.
        pub unsafe fn store_aligned(&self, _: usize, _: u64) -> Result<(), Failure> {
            match self.0 {}
        }

        /// Never called.
        ///
        /// # Errors
        ///
        /// None.
        ///
        /// # Safety
        ///
        /// None is needed.
        pub unsafe fn store_four(&self, _: usize, _: u32) -> Result<(), Failure> {
            match self.0 {}
        }
    }
}

/// Threads that cannot be seen.
pub mod threads {
    use super::UNSUPPORTED;
    use crate::status::Reason;

    /// It cannot be known.
    #[must_use]
    pub fn is_alone() -> bool {
        false
    }

    /// It cannot be known.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn can_all_trap(_: bool) -> Result<Option<i32>, Reason> {
        Err(Reason::Failed(UNSUPPORTED))
    }
}

/// Signals are not held back.
pub mod mask {
    /// Holds back nothing.
    #[derive(Debug)]
    pub struct HeldBack;

    /// Holds back nothing.
    #[must_use]
    pub fn hold_back() -> HeldBack {
        HeldBack
    }
}

/// Nobody is stopped.
pub mod stop {
    use std::time::Duration;

    use super::UNSUPPORTED;
    use crate::status::Reason;

    /// Never waited for.
    pub const BOUND: Duration = Duration::ZERO;

    /// Stops nothing.
    #[derive(Debug, Default)]
    pub struct Stopper;

    /// Never exists.
    #[derive(Debug)]
    pub enum Stopped {}

    impl Stopper {
        /// Stops nothing.
        #[must_use]
        pub const fn new() -> Self {
            Stopper
        }

        /// Always refuses.
        ///
        /// # Errors
        ///
        /// Always.
        pub fn stop(&mut self, _: i32, _: Duration) -> Result<Stopped, Reason> {
            Err(Reason::Failed(UNSUPPORTED))
        }
    }

    /// Always refuses.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn take_signal(_: Option<i32>) -> Result<i32, Reason> {
        Err(Reason::Failed(UNSUPPORTED))
    }

    /// Always refuses.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn look(_: Option<i32>) -> Result<(), Reason> {
        Err(Reason::Failed(UNSUPPORTED))
    }
}

/// No handler.
pub mod trap {
    use super::UNSUPPORTED;
    use crate::status::Reason;

    /// Always refuses.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn look() -> Result<(), Reason> {
        Err(Reason::Failed(UNSUPPORTED))
    }

    /// Always refuses.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn install() -> Result<(), Reason> {
        Err(Reason::Failed(UNSUPPORTED))
    }
}
