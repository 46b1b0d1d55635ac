//! What the test programs share.

pub mod alternate_stack;
pub mod child;
pub mod counter;
pub mod empty_root;
pub mod library;
pub mod maps;
pub mod scatter;
pub mod seccomp;
pub mod signals;
pub mod torture;

/// Whether this build has sites. Where it has not, a test says what it leaves out and goes on with
/// the results, which are the same.
#[must_use]
pub fn has_sites() -> bool {
    let has = immediate_arch::isa::imp::NAME != "plain";
    if !has {
        println!("variables are read by plain loads here: what is about sites is left out");
    }
    has
}
