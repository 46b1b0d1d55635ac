//! What the macros expand to: sites where there are templates, plain loads elsewhere.
//!
//! A macro that expands in the user's crate sees the user's features, so the choice is made here,
//! when this crate is compiled.

/// Gives the value of a variable, from the instruction itself: `mov reg, imm`.
///
/// The argument is the path of a `static` with [`#[immediate]`](macro@crate::immediate), also
/// imported or renamed.
///
/// ```
/// use immediate::{Immediate, immediate, immediate_read};
///
/// mod config {
///     use immediate::{Immediate, immediate};
///
///     #[immediate]
///     pub static LIMIT: Immediate<u32> = Immediate::new(10);
/// }
///
/// assert_eq!(immediate_read!(config::LIMIT), 10);
/// config::LIMIT.set(20)?;
/// assert_eq!(immediate_read!(config::LIMIT), 20);
/// # Ok::<(), immediate::Error>(())
/// ```
///
/// The read is async-signal-safe and changes nothing but its result. The compiler may move other
/// memory accesses across it, as across a relaxed atomic load; what is reached *through* the value
/// (a pointer) is ordered by that.
#[macro_export]
macro_rules! immediate_read {
    ($($input:tt)*) => { $crate::__private::read! { $crate $($input)* } };
}

/// Tests a variable in the instruction itself: a `nop` or a `jmp`.
///
/// | form | value |
/// | --- | --- |
/// | `immediate_if!(TRACE)`, `immediate_if!(!TRACE)` | the `bool`, or its opposite |
/// | `immediate_if!(LEVEL >= 2)` | the comparison with a constant, decided when the variable is set |
/// | `immediate_if!(MASK, \|mask\| mask & 4 != 0)` | a pure test of the variable, decided when it is set |
/// | `immediate_if!(likely TRACE)` | any of them, laid out for the outcome `true` |
/// | `immediate_if!(TRACE => { … } else { … })` | any of them, with arms |
///
/// It is an expression of type `bool` for `if`, `while`, `&&`; with arms, it has the value of the
/// arm, which may use `return`, `break`, `?` and assign locals.
///
/// ```
/// use immediate::{Immediate, immediate, immediate_if};
///
/// #[immediate]
/// static TRACE: Immediate<bool> = Immediate::new(false);
/// #[immediate]
/// static LEVEL: Immediate<u8> = Immediate::new(1);
///
/// fn cost(size: u32) -> u32 {
///     let mut cost = size;
///     if immediate_if!(TRACE) {
///         cost += 1;
///     }
///     immediate_if!(LEVEL >= 2 => { cost *= 2; } else { cost += 10; });
///     if immediate_if!(LEVEL, |level| level & 4 != 0) {
///         return 0;
///     }
///     cost
/// }
///
/// assert_eq!(cost(5), 15);
/// TRACE.set(true)?;
/// LEVEL.set(2)?;
/// assert_eq!(cost(5), 12);
/// LEVEL.set(4)?;
/// assert_eq!(cost(5), 0);
/// # Ok::<(), immediate::Error>(())
/// ```
///
/// A test by closure runs when a module registers and when the variable is set, under the update
/// lock: it may not set variables, and a panic in it ends the process.
#[macro_export]
macro_rules! immediate_if {
    ($($input:tt)*) => { $crate::__private::branch! { $crate $($input)* } };
}

mod patched;
mod plain;

immediate_arch::isa::imp::select! {
    {
        pub use crate::{
            __patched_branch as site_branch, __patched_comparison as site_comparison,
            __patched_test as site_test, __patched_value as site_value,
        };
    }
    {
        pub use crate::{
            __plain_branch as site_branch, __plain_comparison as site_comparison,
            __plain_test as site_test, __plain_value as site_value,
        };
    }
}
