//! Counters of 64 bits where the target has such atomics; elsewhere of its word, which suffices for what a
//! test counts.

cfg_select! {
    target_has_atomic = "64" => { pub use std::sync::atomic::AtomicU64; }
    _ => {
        use std::sync::atomic::{AtomicUsize, Ordering};

        /// As the one of the standard library.
        #[derive(Debug, Default)]
        pub struct AtomicU64(AtomicUsize);

        impl AtomicU64 {
            /// With a value.
            #[must_use]
            pub const fn new(value: u64) -> Self {
                AtomicU64(AtomicUsize::new(value as usize))
            }

            /// The value.
            pub fn load(&self, order: Ordering) -> u64 {
                self.0.load(order) as u64
            }

            /// Replaces the value.
            pub fn store(&self, value: u64, order: Ordering) {
                self.0.store(value as usize, order);
            }

            /// Adds to the value; gives the value before.
            pub fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
                self.0.fetch_add(value as usize, order) as u64
            }

            /// Raises the value; gives the value before.
            pub fn fetch_max(&self, value: u64, order: Ordering) -> u64 {
                self.0.fetch_max(value as usize, order) as u64
            }

            /// The value.
            #[must_use]
            pub fn into_inner(self) -> u64 {
                self.0.into_inner() as u64
            }
        }
    }
}
