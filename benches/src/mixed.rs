//! Pseudo-random numbers without a dependency of the measured code on anything in memory.

/// The next of a sequence (Knuth's MMIX generator); the upper half is the better one.
#[inline(always)]
#[must_use]
pub fn next(number: u64) -> u64 {
    number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
}
