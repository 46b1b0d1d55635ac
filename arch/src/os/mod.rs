//! What the protocols need of the operating system, chosen here and nowhere else.
//!
//! # The contract
//!
//! | module | what it offers |
//! | --- | --- |
//! | `barrier` | `prepare()` and `synchronise()`: every processor that runs the process serialises its instruction stream |
//! | `text` | `Segment`, `open()`: text becomes writable and is put back as it was found |
//! | `flush` | `flush()`: stored code reaches the instruction caches |
//! | `threads` | `is_alone()`, `can_all_trap()`: how many threads there are, and whether each can take a trap |
//! | `trap` | the trap handler: `install()` it, `look()` whether it still is ours; it passes on what is not |
//! | `mask` | `hold_back()`: no signal handler runs on this thread meanwhile |
//! | `stop` | `Stopper`: every other thread waits in a signal handler |
//! | `context` | the registers of a trapped thread |

cfg_select! {
    target_os = "linux" => {
        mod linux;
        #[cfg(feature = "faults")]
        pub use linux::faults;
        pub use linux::{Failure, barrier, context, flush, mask, stop, text, threads, trap};
    }
    _ => {
        mod none;
        pub use none::{Failure, barrier, flush, mask, stop, text, threads, trap};
    }
}
