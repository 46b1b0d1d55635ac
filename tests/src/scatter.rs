//! Values that tell of a mixture: each generation's differs from the one before in every byte.
//!
//! Each byte holds the generation's parity in its highest bit, and seven bits of the generation
//! below. A value of which some bytes are of one generation and some of the next has bytes of both
//! parities. Eight bytes hold the generation twice.

// The types differ from target to target.
#![allow(clippy::useless_conversion)]

/// Generations that four bytes can tell apart.
pub const GENERATIONS: u64 = 1 << 28;

const PARITIES: u64 = 0x8080_8080_8080_8080;

cfg_select! {
    target_arch = "x86" => {
        /// The widest number whose reads are sites on this target.
        pub type Wide = u32;
        /// One that is narrower, if there are two with sites and bytes enough.
        pub type Narrow = u32;
    }
    any(target_arch = "powerpc", target_arch = "powerpc64") => {
        /// The widest number whose reads are sites on this target.
        pub type Wide = u16;
        /// One that is narrower, if there are two with sites and bytes enough.
        pub type Narrow = u16;
    }
    _ => {
        /// The widest number whose reads are sites on this target.
        pub type Wide = u64;
        /// One that is narrower, if there are two with sites and bytes enough.
        pub type Narrow = u32;
    }
}

/// Generations that a [`Wide`] and a [`Narrow`] can tell apart.
pub const WIDE_GENERATIONS: u64 = if size_of::<Wide>() == 2 { 1 << 14 } else { GENERATIONS };

/// The value of a generation.
#[must_use]
pub fn scatter_wide(generation: u64) -> Wide {
    scatter64(generation) as Wide
}

/// The generation of a value, unless it is a mixture.
#[must_use]
pub fn gather_wide(value: Wide) -> Option<u64> {
    let generation = gather_low(value.into());
    (scatter_wide(generation) == value).then_some(generation)
}

/// The value of a generation.
#[must_use]
pub fn scatter_narrow(generation: u64) -> Narrow {
    scatter64(generation) as Narrow
}

/// The generation of a value, unless it is a mixture.
#[must_use]
pub fn gather_narrow(value: Narrow) -> Option<u64> {
    let generation = gather_low(value.into());
    (scatter_narrow(generation) == value).then_some(generation)
}

/// The generation in the lowest four bytes.
fn gather_low(value: u64) -> u64 {
    let digit = |place: u32| ((value >> (8 * place)) & 0x7f) << (7 * place);
    digit(0) | digit(1) | digit(2) | digit(3)
}

/// The value of a generation in eight bytes.
#[must_use]
pub fn scatter64(generation: u64) -> u64 {
    let low = u64::from(scatter32(generation));
    low << 32 | low
}

/// The value of a generation in four bytes.
#[must_use]
pub fn scatter32(generation: u64) -> u32 {
    let digit = |place: u32| ((generation >> (7 * place)) & 0x7f) << (8 * place);
    let parity = if generation % 2 == 1 { PARITIES } else { 0 };
    (digit(0) | digit(1) | digit(2) | digit(3) | parity) as u32
}

/// The value of a generation in two bytes.
#[must_use]
pub fn scatter16(generation: u64) -> u16 {
    scatter32(generation) as u16
}

/// The value of a generation in one byte.
#[must_use]
pub fn scatter8(generation: u64) -> u8 {
    scatter32(generation) as u8
}

/// The generation of a value, unless it is a mixture.
#[must_use]
pub fn gather64(value: u64) -> Option<u64> {
    let generation = gather_low(value);
    (scatter64(generation) == value).then_some(generation)
}

/// The generation of a value, unless it is a mixture.
#[must_use]
pub fn gather32(value: u32) -> Option<u64> {
    gather64(u64::from(value) << 32 | u64::from(value))
}

/// Whether `matches` holds for one of the generations `from..=to`.
///
/// For values too narrow to tell their generation.
pub fn is_one_of(from: u64, to: u64, matches: impl Fn(u64) -> bool) -> bool {
    // A reader may have slept through many; then every value is right.
    to - from > 200 || (from..=to).any(matches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_differ_in_every_byte_and_mixtures_are_seen() {
        for generation in (0..70_000).chain(GENERATIONS - 300..GENERATIONS - 1) {
            let (one, next) = (scatter64(generation), scatter64(generation + 1));
            assert_eq!(gather64(one), Some(generation));
            assert_eq!(gather32(one as u32), Some(generation));
            assert!((one ^ next).to_le_bytes().iter().all(|byte| *byte != 0));
            for byte in 1..8 {
                let mask = u64::MAX << (8 * byte);
                assert_eq!(gather64(one & mask | next & !mask), None);
            }
        }
    }
}
