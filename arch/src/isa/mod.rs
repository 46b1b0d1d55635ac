//! Instruction sets: one file a target, chosen here and nowhere else.
//!
//! # The contract
//!
//! Every target file offers, as safe pure functions over bytes and numbers that compile and are
//! tested on every host:
//!
//! | name | what it is |
//! | --- | --- |
//! | `NAME` | the target's name |
//! | `MAX_VALUE` | the widest value, in bytes, that a value site can hold; 0 if the target has no sites |
//! | `LONGEST` | the longest instruction of a site, in bytes |
//! | `TRAP` | the bytes that are put over the first bytes of a site while it changes |
//! | `TRAP_ADVANCE` | how far past the trap's first byte the program counter stands in the handler |
//! | `decode(code)` | the instruction at a site, or `None` |
//! | `value_poke(…)`, `branch_poke(…)` | a checked [`Poke`](crate::Poke) from a site's bytes |
//! | `probe(store)` | proves a text writer on a site of our own |
//! | `effect(poke, field)` | what the instruction does, for the trap handler |
//!
//! and, as macros that a program's own crate expands because a site's variable is a symbol of
//! that crate, the templates `value_site!`, `branch_site!`, `comparison_site!`, `test_site!`,
//! `variable_record!`, and `select!`, which tells the crate `immediate` whether there are any. A
//! template and its encoder share one length constant.

pub mod i386;
pub mod plain;
mod x86;
pub mod x86_64;

// The one place where a target is chosen: a line each.
cfg_select! {
    all(target_arch = "x86_64", target_pointer_width = "64", target_os = "linux") => { pub use x86_64 as native; }
    all(target_arch = "x86", target_os = "linux") => { pub use i386 as native; }
    _ => { pub use plain as native; }
}

// Sites are instructions, unless the build says otherwise.
cfg_select! {
    any(not(feature = "patching"), immediate_no_patching, miri) => { pub use plain as imp; }
    _ => { pub use native as imp; }
}

// The records of variables are data: they serve listing and setting by name where patching is off
// as well.
cfg_select! {
    miri => { pub use plain as records; }
    _ => { pub use native as records; }
}

/// What an instruction does to a thread that has trapped on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// The general register, by its number in the instruction set, that receives a value.
    pub register: Option<(u8, u64)>,
    /// Where the thread goes on.
    pub next: usize,
}
