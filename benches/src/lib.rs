//! What the benchmarks and the report share.
//!
//! A question is answered by contenders that run alternately, so that whatever drifts on the
//! machine (clock, temperature, neighbours) hits all alike, and by the median over many rounds of
//! the ratio inside one round ([`alternate`]). Criterion shows the times of each contender beside
//! it.
//!
//! Contenders that set variables run in a child process ([`worker`]): criterion's analysis leaves
//! threads behind, and whether a process has threads decides how a variable is set.

pub mod alternate;
pub mod checks;
pub mod cycles;
pub mod markers;
pub mod memory_hit;
pub mod mixed;
pub mod one_site;
pub mod others;
pub mod pressure;
pub mod processors;
pub mod system_calls;
pub mod warm;
pub mod worker;
