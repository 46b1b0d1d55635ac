//! Sites in generic code: each instance of a function is a copy of the site with its own record and
//! its own constant. If an instance shared its record with another, or took the other's constant, a
//! set would leave some copies behind, or flip those that should stay.

use std::fmt::Debug;
use std::marker::PhantomData;

use immediate::{Immediate, ImmediateValue, immediate, immediate_if, immediate_read};

fn has_sites() -> bool {
    let has = immediate::status().target != "plain";
    if !has {
        println!("sites not counted: this build has none");
    }
    has
}

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(5);

fn reaches<const N: u8>() -> bool {
    immediate_if!(LEVEL >= N)
}

fn reaches_with_arms<const N: u8>(low: &str) -> String {
    immediate_if!(LEVEL >= N => { format!("{N}") } else { low.to_string() })
}

fn passes<const N: u8>() -> bool {
    immediate_if!(LEVEL > N + 1)
}

fn tests<const N: u8>() -> bool {
    immediate_if!(LEVEL, |level| level % N == 0)
}

#[test]
fn the_constant_is_a_parameter() -> Result<(), immediate::Error> {
    let look = || [reaches::<0>(), reaches::<5>(), reaches::<6>(), reaches::<255>()];
    let passed = || [passes::<3>(), passes::<4>(), passes::<5>()];
    let tested = || [tests::<1>(), tests::<2>(), tests::<3>(), tests::<5>()];
    assert_eq!(look(), [true, true, false, false]);
    assert_eq!(passed(), [true, false, false]);
    assert_eq!(tested(), [true, false, false, true]);
    assert_eq!(reaches_with_arms::<5>("low"), "5");
    assert_eq!(reaches_with_arms::<6>("low"), "low");
    LEVEL.set(6)?;
    assert_eq!(look(), [true, true, true, false]);
    assert_eq!(passed(), [true, true, false]);
    assert_eq!(tested(), [true, true, true, false]);
    assert_eq!(reaches_with_arms::<6>("low"), "6");
    LEVEL.set(255)?;
    assert_eq!(look(), [true; 4]);
    LEVEL.set(0)?;
    assert_eq!(look(), [true, false, false, false]);
    assert_eq!(tested(), [true; 4]);
    if has_sites() {
        assert!(LEVEL.site_count() >= 4 + 3 + 4 + 2, "a site an instance: {}", LEVEL.site_count());
    }
    Ok(())
}

#[immediate]
static QUOTA: Immediate<i32> = Immediate::new(-10);

trait Plan {
    const QUOTA: i32;

    fn allows(&self) -> bool {
        immediate_if!(QUOTA < Self::QUOTA)
    }
}

struct Free;
struct Paid<const N: i32>;

impl Plan for Free {
    const QUOTA: i32 = -20;
}

impl<const N: i32> Plan for Paid<N> {
    const QUOTA: i32 = N * 2;
}

struct Shop<P> {
    _plan: PhantomData<P>,
}

impl<P: Plan> Shop<P> {
    const LIMIT: i32 = P::QUOTA + 1;

    fn sells() -> bool {
        immediate_if!(QUOTA <= Self::LIMIT)
    }

    fn sells_exactly<Q: Plan>() -> bool {
        immediate_if!(QUOTA == <Q as Plan>::QUOTA) || immediate_if!(QUOTA == P::QUOTA)
    }
}

#[test]
fn the_constant_is_associated() -> Result<(), immediate::Error> {
    let look = || [Free.allows(), Paid::<0>.allows(), Paid::<7>.allows()];
    let sells = || [Shop::<Free>::sells(), Shop::<Paid<3>>::sells()];
    assert_eq!((look(), sells()), ([false, true, true], [false, true]));
    QUOTA.set(-21)?;
    assert_eq!((look(), sells()), ([true, true, true], [true, true]));
    QUOTA.set(13)?;
    assert_eq!((look(), sells()), ([false, false, true], [false, false]));
    QUOTA.set(6)?;
    assert!(Shop::<Free>::sells_exactly::<Paid<3>>());
    assert!(Shop::<Paid<3>>::sells_exactly::<Free>());
    assert!(!Shop::<Free>::sells_exactly::<Paid<4>>());
    Ok(())
}

#[immediate]
static SIZE: Immediate<usize> = Immediate::new(3);

fn first<T: Copy>(all: &[T]) -> &[T] {
    &all[..immediate_read!(SIZE).min(all.len())]
}

fn show(all: impl IntoIterator<Item = impl Debug>) -> String {
    let parts: Vec<String> =
        all.into_iter().take(immediate_read!(SIZE)).map(|one| format!("{one:?}")).collect();
    parts.join(" ")
}

#[test]
fn types_are_parameters() -> Result<(), immediate::Error> {
    assert_eq!(first(&[1_u8, 2, 3, 4]), [1, 2, 3]);
    assert_eq!(first(&["a", "b", "c", "d"]), ["a", "b", "c"]);
    assert_eq!(show([1.5, 2.5, 3.5, 4.5]), "1.5 2.5 3.5");
    SIZE.set(1)?;
    assert_eq!(first(&[1_u8, 2, 3, 4]), [1]);
    assert_eq!(first(&["a", "b", "c", "d"]), ["a"]);
    assert_eq!(show(['x', 'y']), "'x'");
    if has_sites() {
        assert!(SIZE.site_count() >= 4, "a site an instance: {}", SIZE.site_count());
    }
    Ok(())
}

/// A variable as a parameter: generic code reads it by `get`.
fn doubled<T: ImmediateValue + std::ops::Add<Output = T>>(variable: &Immediate<T>) -> T {
    variable.get() + variable.get()
}

#[immediate]
static PORTION: Immediate<i16> = Immediate::new(21);

#[test]
fn a_variable_is_a_parameter() -> Result<(), immediate::Error> {
    assert_eq!(doubled(&PORTION), 42);
    PORTION.set(-4)?;
    assert_eq!(doubled(&PORTION), -8);
    Ok(())
}

struct Matrix<const ROWS: usize, T>([T; ROWS]);

impl<const ROWS: usize, T: Copy + Into<u64>> Matrix<ROWS, T> {
    /// The loop has a constant length, so an optimising compiler makes a copy of the site for each
    /// round.
    #[inline]
    fn sum(&self) -> u64 {
        let mut sum = 0;
        for row in 0..ROWS {
            if immediate_if!(WEIGHTED) {
                sum += self.0[row].into() * immediate_read!(WEIGHT);
            } else {
                sum += self.0[row].into();
            }
        }
        sum
    }
}

#[immediate]
static WEIGHTED: Immediate<bool> = Immediate::new(false);
#[immediate]
static WEIGHT: Immediate<u64> = Immediate::new(0x1_0000_0000);

#[test]
fn loops_are_unrolled() -> Result<(), immediate::Error> {
    let small = Matrix([1_u8, 2, 3]);
    let large = Matrix([10_u32; 16]);
    assert_eq!((small.sum(), large.sum()), (6, 160));
    WEIGHTED.set(true)?;
    assert_eq!((small.sum(), large.sum()), (6 << 32, 160 << 32));
    WEIGHT.set(2)?;
    assert_eq!((small.sum(), large.sum()), (12, 320));
    WEIGHTED.set(false)?;
    assert_eq!((small.sum(), large.sum()), (6, 160));
    Ok(())
}

trait Service {
    fn answer(&self) -> impl Iterator<Item = u32>;
    fn name(&self) -> String {
        if immediate_if!(VERBOSE) { "a long name".into() } else { "name".into() }
    }
}

struct Echo;

impl Service for Echo {
    fn answer(&self) -> impl Iterator<Item = u32> {
        (0..).map(|n| n + immediate_read!(OFFSET)).take_while(|n| *n < 12)
    }
}

#[immediate]
static VERBOSE: Immediate<bool> = Immediate::new(true);
#[immediate]
static OFFSET: Immediate<u32> = Immediate::new(10);

struct Loud<'a>(&'a mut Vec<u32>);

impl Drop for Loud<'_> {
    fn drop(&mut self) {
        self.0.push(immediate_read!(OFFSET));
        immediate_if!(VERBOSE => { self.0.push(0); });
    }
}

#[test]
fn methods_default_methods_opaque_types_and_drop() -> Result<(), immediate::Error> {
    let dropped = || {
        let mut seen = Vec::new();
        drop(Loud(&mut seen));
        seen
    };
    let dynamic: Box<dyn Fn() -> u32> = Box::new(|| immediate_read!(OFFSET) + 1);
    let answer: fn() -> u32 = || immediate_read!(OFFSET) * 2;
    assert_eq!(Echo.answer().collect::<Vec<_>>(), [10, 11]);
    assert_eq!((Echo.name().as_str(), dropped()), ("a long name", vec![10, 0]));
    assert_eq!((dynamic(), answer()), (11, 20));
    OFFSET.set(11)?;
    VERBOSE.set(false)?;
    assert_eq!(Echo.answer().collect::<Vec<_>>(), [11]);
    assert_eq!((Echo.name().as_str(), dropped()), ("name", vec![11]));
    assert_eq!((dynamic(), answer()), (12, 22));
    Ok(())
}
