//! The target without sites: every read is a plain load. Used where a target has no file of its
//! own, where the feature `patching` is off, and under Miri.

use super::Effect;
use crate::os::Failure;
use crate::poke::{Mismatch, Poke};
use crate::status::Reason;

/// Name of the target.
pub const NAME: &str = "plain";
/// No site holds a value.
pub const MAX_VALUE: usize = 0;
/// No site has an instruction.
pub const LONGEST: usize = 0;
/// No trap is ever written.
pub const TRAP: &[u8] = &[];
/// No trap is ever taken.
pub const TRAP_ADVANCE: usize = 0;

/// Of two pieces of code, the one for a target without templates.
#[doc(hidden)]
#[macro_export]
macro_rules! __plain_select {
    ({ $($with:tt)* } { $($without:tt)* }) => { $($without)* };
}

pub use crate::__plain_select as select;

/// No site has a branch.
pub const BRANCH_LENGTH: usize = 0;

/// Bytes of code to read at a value site: none.
#[must_use]
pub fn value_length(_width: u8) -> usize {
    0
}

/// There is no site to try a text writer on.
///
/// # Errors
///
/// [`Reason::NoSites`], always.
pub fn probe(_store: impl Fn(usize, u32) -> Result<(), Failure>) -> Result<(), Reason> {
    Err(Reason::NoSites)
}

fn no_sites(address: usize) -> Box<Mismatch> {
    let expected = "nothing: this build has no sites".into();
    Box::new(Mismatch { address, found: Vec::new(), expected })
}

/// There is no value site to change.
///
/// # Errors
///
/// Always: this target has no sites.
pub fn value_poke(address: usize, _: &[u8], _: u8, _: u64, _: u64) -> Result<Poke, Box<Mismatch>> {
    Err(no_sites(address))
}

/// There is no branch site to change.
///
/// # Errors
///
/// Always: this target has no sites.
pub fn branch_poke(
    address: usize,
    _: &[u8],
    _: usize,
    _: bool,
    _: bool,
) -> Result<Poke, Box<Mismatch>> {
    Err(no_sites(address))
}

/// Never called: no batch has a poke.
#[must_use]
pub fn effect(poke: &Poke, _field: u64) -> Effect {
    Effect { register: None, next: poke.address }
}
