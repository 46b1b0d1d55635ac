//! Switches that the compiler knows: all off, so that no check is left in the code, and all on.

use immediate::Error;

use crate::switches::{Change, HIGH_LIMIT, LOW_LIMIT, Switches};
use crate::table::{FIRST, SECOND, Table};

/// `CompiledOut` with `false`, `CompiledIn` with `true`.
pub(crate) struct Compiled<const ON: bool>;

/// Every check is compiled out. The counts of this one are what all others must count.
pub(crate) type CompiledOut = Compiled<false>;
/// Everything is done always, without a check.
pub(crate) type CompiledIn = Compiled<true>;

impl<const ON: bool> Switches for Compiled<ON> {
    const HAS_SITES: bool = false;

    #[inline(always)]
    fn lines() -> bool {
        ON
    }

    #[inline(always)]
    fn words() -> bool {
        ON
    }

    #[inline(always)]
    fn matches() -> bool {
        ON
    }

    #[inline(always)]
    fn capitals() -> bool {
        ON
    }

    #[inline(always)]
    fn logs_lines() -> bool {
        ON
    }

    #[inline(always)]
    fn logs_matches() -> bool {
        ON
    }

    #[inline(always)]
    fn logs_digests() -> bool {
        ON
    }

    #[inline(always)]
    fn limit() -> u32 {
        if ON { HIGH_LIMIT } else { LOW_LIMIT }
    }

    #[inline(always)]
    fn table() -> &'static Table {
        if ON { &SECOND } else { &FIRST }
    }

    fn apply(_: &[Change]) -> Result<(), Error> {
        Ok(())
    }
}
