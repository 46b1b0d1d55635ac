//! Cycles of the processor's core.
//!
//! The time stamp counter counts at a rate of its own. How many cycles of the core one of its ticks
//! is, tells a chain of multiplications: on every x86-64 processor of the last fifteen years each of
//! them waits three cycles for the one before. Without such a counter the unit is the nanosecond.

#![allow(unsafe_code)]

cfg_select! {
    target_arch = "x86_64" => {
        use std::arch::x86_64::{__rdtscp, _mm_lfence, _rdtsc};

        /// What is counted.
        pub const UNIT: &str = "cycles";

        /// The counter, when everything before has been done and nothing after has begun.
        #[inline(always)]
        #[must_use]
        pub fn begin() -> u64 {
            // SAFETY: reads a counter that user code may read on Linux.
            unsafe {
                _mm_lfence();
                let ticks = _rdtsc();
                _mm_lfence();
                ticks
            }
        }

        /// The counter, when everything before has been done.
        #[inline(always)]
        #[must_use]
        pub fn end() -> u64 {
            let mut processor = 0;
            // SAFETY: as above; the processor's number goes into a variable of ours.
            unsafe {
                let ticks = __rdtscp(&raw mut processor);
                _mm_lfence();
                ticks
            }
        }

        /// Waits until everything before has been done.
        #[inline(always)]
        pub fn fence() {
            // SAFETY: an instruction that every x86-64 processor has.
            unsafe { _mm_lfence() }
        }

        /// Cycles of the core in one tick, now: the quickest of several chains, since nothing makes
        /// a chain quicker than it is.
        #[must_use]
        pub fn per_tick() -> f64 {
            const CHAIN: u32 = 400;
            const LATENCY: u32 = 3;
            let quickest = (0..15).map(|_| {
                let start = begin();
                // SAFETY: multiplies a register that is declared.
                unsafe {
                    std::arch::asm!(
                        ".rept {chain}",
                        "imul {value}, {value}",
                        ".endr",
                        chain = const CHAIN,
                        value = inout(reg) 3_u64 => _,
                        options(nomem, nostack),
                    );
                }
                end() - start
            });
            // The fences around an empty chain take as long as around a full one.
            let empty = (0..15).map(|_| { let start = begin(); end() - start }).min();
            let ticks = quickest.min().unwrap_or(1).saturating_sub(empty.unwrap_or(0)).max(1);
            f64::from(CHAIN * LATENCY) / ticks as f64
        }
    }
    _ => {
        use std::sync::LazyLock;
        use std::sync::atomic::{Ordering, compiler_fence};
        use std::time::Instant;

        /// What is counted.
        pub const UNIT: &str = "ns";

        static START: LazyLock<Instant> = LazyLock::new(Instant::now);

        /// Nanoseconds since the first call.
        #[must_use]
        pub fn begin() -> u64 {
            START.elapsed().as_nanos() as u64
        }

        /// Nanoseconds since the first call.
        #[must_use]
        pub fn end() -> u64 {
            begin()
        }

        /// Keeps the compiler from moving what is before behind.
        pub fn fence() {
            compiler_fence(Ordering::SeqCst);
        }

        /// One: the unit is the counter's.
        #[must_use]
        pub fn per_tick() -> f64 {
            1.0
        }
    }
}
