//! What a declaration tells the macros, and the functions that their expansions call.
//!
//! Not part of the interface: only the macros of this crate name it.

use immediate_arch::isa::imp;

use crate::comparison::{self, Operator, compare};
use crate::descriptor::Descriptor;
use crate::exchange::Bits;
use crate::value::{ImmediateValue, Kind, constant_bits, from_bits};
use crate::variable::Immediate;

pub use immediate_macros::{branch, read};

/// The type that stands beside a variable, under the same name.
#[diagnostic::on_unimplemented(
    message = "this path does not name an immediate variable",
    label = "not declared with `#[immediate]`",
    note = "declare it as `#[immediate] static NAME: Immediate<T> = Immediate::new(value);`"
)]
pub trait Declared {
    /// The type of its value.
    type Value: ImmediateValue;
    /// The bits of the initial value; 0 for a pointer.
    const BITS: u128;
}

/// `Immediate<T>`, to get at `T` by a path.
#[diagnostic::on_unimplemented(
    message = "an immediate variable has the type `Immediate<T>`, not `{Self}`",
    label = "write `Immediate<…>` here"
)]
pub trait IsImmediate {
    /// `T`.
    type Value: ImmediateValue;
}

impl<T: ImmediateValue> IsImmediate for Immediate<T> {
    type Value = T;
}

/// `bool`, which can be tested without a comparison.
#[diagnostic::on_unimplemented(
    message = "only a variable of type `bool` can be tested alone, this one is `{Self}`",
    note = "compare it with a constant, `immediate_if!(NAME != 0)`, or give a test, \
            `immediate_if!(NAME, |value| …)`"
)]
pub trait IsBool {}

impl IsBool for bool {}

/// The type of a variable's value.
pub type Value<V> = <V as Declared>::Value;

/// Checks that the variable is a `bool`.
#[inline(always)]
pub const fn require_bool<V: Declared>()
where
    V::Value: IsBool,
{
}

/// Whether reads of this variable are sites: its value fits an instruction of the target.
#[must_use]
#[allow(clippy::absurd_extreme_comparisons)] // plain loads: no value does
pub const fn has_sites<V: Declared>() -> bool {
    size_of::<V::Value>() <= imp::MAX_VALUE
}

/// Whether a comparison is decided from bits.
#[must_use]
pub const fn compares_by_bits<V: Declared>() -> bool {
    has_sites::<V>() && comparison::is_by_bits::<V::Value>()
}

/// Size of the value in bytes.
#[must_use]
pub const fn size<V: Declared>() -> u32 {
    size_of::<V::Value>() as u32
}

/// The bits that the built file holds at a value site.
#[must_use]
pub const fn built_in<V: Declared>() -> u64 {
    V::BITS as u64
}

/// The bits of the constant side of a comparison.
#[must_use]
pub const fn constant<V: Declared>(constant: V::Value) -> u64 {
    comparison::comparand(constant)
}

/// Whether a branch site of a `bool` is built taken (1) or not (0).
#[must_use]
pub const fn is_built_taken<V: Declared>(kind: u32) -> u32 {
    ((V::BITS != 0) == (kind == 1)) as u32
}

/// Whether the branch site of a comparison is built taken (1) or not (0).
#[must_use]
pub const fn is_comparison_built_taken<V: Declared>(
    kind: u32,
    operator: Operator,
    constant: V::Value,
) -> u32 {
    if !compares_by_bits::<V>() {
        // Evaluated in every function that has the comparison, although no site comes of it.
        return 0;
    }
    let outcome = compare(
        <V::Value as ImmediateValue>::KIND,
        size_of::<V::Value>(),
        V::BITS as u64,
        operator,
        comparison::comparand(constant),
    );
    (outcome == (kind == 1)) as u32
}

/// The value in a register that a value site has loaded.
#[inline(always)]
#[must_use]
#[allow(unsafe_code)]
pub fn decode<V: Declared>(bits: u64) -> V::Value {
    if matches!(<V::Value as ImmediateValue>::KIND, Kind::Bool) {
        // SAFETY: a `bool` is 0 or 1; said here, it saves an instruction at the site.
        unsafe { std::hint::assert_unchecked(bits <= 1) };
    }
    // SAFETY: a site of this variable holds bits of a value of its type: built in or set.
    unsafe { from_bits(bits.into()) }
}

/// The backing value.
#[inline(always)]
#[must_use]
pub fn load<V: Declared>(variable: &Immediate<V::Value>) -> V::Value {
    variable.get()
}

/// Gives a closure its argument's type.
#[inline(always)]
pub const fn test<V: Declared, F: Fn(V::Value) -> bool + Copy>(test: F) -> F {
    test
}

/// Evaluates the test `F` on the bits of a value.
#[allow(unsafe_code)]
pub extern "C" fn evaluate<V: Declared, F: Fn(V::Value) -> bool + Copy>(bits: u64) -> bool {
    const { assert!(size_of::<F>() == 0, "a test captures nothing") };
    // SAFETY: `F` has no bytes and is `Copy`, and the macro made a value of it at the site.
    let test: F = unsafe { std::mem::transmute_copy(&()) };
    test(decode::<V>(bits))
}

/// Describes the variable that `#[immediate]` declares.
#[must_use]
pub const fn describe<T: ImmediateValue>(
    variable: Immediate<T>,
    descriptor: &'static Descriptor,
) -> Immediate<T> {
    variable.described(descriptor)
}

/// The bits of the initial value, as far as a constant can hold them.
#[must_use]
pub const fn initial_constant<T: ImmediateValue>(variable: Immediate<T>) -> u128 {
    constant_bits(variable.into_initial())
}

/// The bits of the initial value.
#[must_use]
pub fn initial<T: ImmediateValue>(variable: Immediate<T>) -> Bits {
    Bits::new(crate::value::bits(variable.get()))
}

/// What the taken side of a branch does first: nothing at run time.
///
/// The branch is out of the way, and what it reads is not read before the branch.
#[doc(hidden)]
#[macro_export]
macro_rules! __on_taken {
    () => {
        ::core::hint::cold_path();
        ::core::sync::atomic::compiler_fence(::core::sync::atomic::Ordering::Acquire)
    };
}
