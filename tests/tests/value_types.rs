//! Every type that a variable can have: at value sites, in memory, in comparisons and tests, and as
//! text. What goes wrong here goes wrong silently: an immediate that is sign-extended, a comparison
//! that takes a negative number for a large one, a pointer of which half is written.

#![allow(unsafe_code)]
// One macro for pointers and `fn` pointers, of which only some could be cast.
#![allow(clippy::transmutes_expressible_as_ptr_casts)]
// Types as long as users write them; the extremes of `usize` and `isize` are those of the target.
#![allow(clippy::type_complexity, clippy::enum_clike_unportable_variant)]

use std::fmt::Debug;
use std::num::NonZero;
use std::ptr::{self, NonNull};

use immediate::{Error, Immediate, ImmediateValue, immediate, immediate_if, immediate_read};
use immediate_arch::isa::imp::MAX_VALUE;

/// Two values are one if their text is: also a NaN and a negative zero.
fn same<T: Debug>(left: T, right: T) -> bool {
    format!("{left:?}") == format!("{right:?}")
}

/// Text of the value goes out through `value()` and comes back through `set_text`.
fn text_comes_back<T: ImmediateValue + Debug>(variable: &Immediate<T>, other: T) {
    let handle = immediate::find(variable.name()).expect("every variable is listed");
    assert_eq!(handle.type_name(), std::any::type_name::<T>());
    let (value, text) = (variable.get(), handle.value());
    variable.set(other).expect("a set");
    handle.set_text(&text).unwrap_or_else(|error| panic!("{error}"));
    assert!(same(variable.get(), value), "{text} came back as {:?}", variable.get());
    assert_eq!(handle.value(), text);
}

/// Text that is no value changes nothing, and the error says what is valid.
fn text_is_refused<T: ImmediateValue + Debug>(variable: &Immediate<T>, bad: &[&str], valid: &str) {
    let handle = immediate::find(variable.name()).expect("every variable is listed");
    let (value, updates) = (variable.get(), handle.updates());
    for text in bad {
        let error = handle.set_text(text).expect_err(text);
        let Error::BadValue { variable: name, type_name, found, valid: says } = &error else {
            panic!("{error:?}")
        };
        assert_eq!((name.as_str(), found.as_str()), (variable.name(), *text));
        assert_eq!((type_name.as_str(), says.as_str()), (handle.type_name(), valid));
        let line = error.to_string();
        assert!(line.ends_with(&format!("give {valid}")) && !line.contains('\n'), "{line}");
        assert!(same(variable.get(), value), "{text:?} changed the value");
        assert_eq!(handle.updates(), updates);
    }
}

/// Numbers: all values at several sites, and all comparisons with three constants.
macro_rules! numbers {
    ($($test:ident: $type:ty = $initial:expr, [$($value:expr),* $(,)?],
       against [$a:expr, $b:expr, $c:expr], $bits:ident, refuses [$($bad:expr),* $(,)?], $valid:expr;)*) => { $(
        mod $test {
 use super::*;

#[test]
        fn holds_reads_and_compares() -> Result<(), Error> {
            #[immediate]
            static VARIABLE: Immediate<$type> = Immediate::new($initial);
            type Value = $type;

            #[inline(never)]
            fn far() -> Value {
                immediate_read!(VARIABLE)
            }

            fn check(value: Value) {
                assert!(same(immediate_read!(VARIABLE), value), "at a site");
                assert!(same(far(), value), "at another");
                let all: [Value; 3] = std::array::from_fn(|_| immediate_read!(VARIABLE));
                assert!(all.into_iter().all(|one| same(one, value)), "in a closure");
                assert!(same(VARIABLE.get(), value), "in memory");
                macro_rules! against {
                    ($constant:expr) => {{
                        const CONSTANT: Value = $constant;
                        assert_eq!(immediate_if!(VARIABLE == CONSTANT), value == CONSTANT);
                        assert_eq!(immediate_if!(VARIABLE != CONSTANT), value != CONSTANT);
                        assert_eq!(immediate_if!(VARIABLE < CONSTANT), value < CONSTANT);
                        assert_eq!(immediate_if!(VARIABLE <= CONSTANT), value <= CONSTANT);
                        assert_eq!(immediate_if!(VARIABLE > CONSTANT), value > CONSTANT);
                        assert_eq!(immediate_if!(VARIABLE >= CONSTANT), value >= CONSTANT);
                        assert_eq!(immediate_if!(likely VARIABLE > CONSTANT), value > CONSTANT);
                        let test = immediate_if!(VARIABLE, |one| one >= CONSTANT);
                        assert_eq!(test, value >= CONSTANT);
                    }};
                }
                against!($a);
                against!($b);
                against!($c);
                let odd = immediate_if!(likely VARIABLE, |one| one.$bits().count_ones() % 2 == 1);
                assert_eq!(odd, value.$bits().count_ones() % 2 == 1);
            }

            let initial: Value = $initial;
            let handle = immediate::find(VARIABLE.name()).expect("it is listed");
            assert!(VARIABLE.name().ends_with("::VARIABLE"), "{}", VARIABLE.name());
            assert_eq!(handle.initial(), handle.value());
            check(initial);
            for value in [$($value),*] {
                VARIABLE.set(value)?;
                check(value);
                text_comes_back(&VARIABLE, initial);
                check(value);
            }
            text_is_refused(&VARIABLE, &[$($bad),*], $valid);
            VARIABLE.set(initial)?;
            check(initial);
            if size_of::<Value>() <= MAX_VALUE {
                assert!(VARIABLE.site_count() >= 3 + 3 * 8, "{}", VARIABLE.site_count());
            }
            Ok(())
        }
}
    )* };
}

trait Bits {
    fn bits(self) -> u128;
}

macro_rules! bits {
    ($($type:ty => $one:ident $bits:expr;)*) => { $(
        impl Bits for $type {
            fn bits(self) -> u128 {
                let $one = self;
                $bits
            }
        }
    )* };
}

bits! {
    u8 => one one.into(); u16 => one one.into(); u32 => one one.into(); u64 => one one.into();
    u128 => one one; usize => one one as u128;
    i8 => one one.cast_unsigned().into(); i16 => one one.cast_unsigned().into();
    i32 => one one.cast_unsigned().into(); i64 => one one.cast_unsigned().into();
    i128 => one one.cast_unsigned(); isize => one one as u128;
    bool => one one.into(); char => one u32::from(one).into();
    f32 => one one.to_bits().into(); f64 => one one.to_bits().into();
    NonZero<u8> => one one.get().into(); NonZero<i32> => one one.get().cast_unsigned().into();
    NonZero<u64> => one one.get().into(); NonZero<i128> => one one.get().cast_unsigned();
    Option<NonZero<i8>> => one one.map_or(0, |one| one.get().cast_unsigned().into());
    Option<NonZero<u64>> => one one.map_or(0, |one| one.get().into());
    Option<NonZero<u128>> => one one.map_or(0, NonZero::get);
}

const fn non_zero<T: Copy>(value: Option<T>) -> T {
    value.expect("it is not zero")
}

numbers! {
    unsigned_8: u8 = 0x80, [0, 1, 0x7f, 0x80, 0xff], against [0, 0x80, 0xff],
        bits, refuses ["256", "-1", "", " 1", "1 ", "0x100", "true", "1.0"], "a number from 0 to 255";
    unsigned_16: u16 = 0xff, [0, 0x7fff, 0x8000, 0xffff], against [0, 0x8000, 0xffff],
        bits, refuses ["65536", "-1"], "a number from 0 to 65535";
    unsigned_32: u32 = u32::MAX, [0, 0x7fff_ffff, 0x8000_0000, 0xcccc_cccc, u32::MAX],
        against [0, 0x8000_0000, u32::MAX],
        bits, refuses ["4294967296", "0x1_0000_0000"], "a number from 0 to 4294967295";
    unsigned_64: u64 = 0xffff_ffff, [0, 0x1_0000_0000, i64::MAX as u64, 1 << 63, u64::MAX],
        against [0, 0x8000_0000, 1 << 63],
        bits, refuses ["18446744073709551616"], "a number from 0 to 18446744073709551615";
    unsigned_128: u128 = 1 << 64, [0, u64::MAX.into(), 1 << 127, u128::MAX],
        against [0, 1 << 64, u128::MAX],
        bits, refuses ["-0x1"], "a number from 0 to 340282366920938463463374607431768211455";
    unsigned_of_the_machine: usize = 0, [1, usize::MAX >> 1, usize::MAX], against [0, 1, usize::MAX],
        bits, refuses ["-1"], &format!("a number from 0 to {}", usize::MAX);
    signed_8: i8 = -1, [0, 1, 127, -128], against [-128, -1, 127],
        bits, refuses ["128", "-129", "0x80"], "a number from -128 to 127";
    signed_16: i16 = i16::MIN, [0, -1, i16::MAX, 0x80, -0x80], against [i16::MIN, 0, i16::MAX],
        bits, refuses ["32768", "--1"], "a number from -32768 to 32767";
    signed_32: i32 = 0x80, [0, -1, i32::MIN, i32::MAX, -0x8000], against [i32::MIN, -1, 0],
        bits, refuses ["2147483648"], "a number from -2147483648 to 2147483647";
    signed_64: i64 = -1, [0, i64::MIN, i64::MAX, -0x8000_0000, 0x8000_0000],
        against [i64::MIN, -0x8000_0000, i64::MAX],
        bits, refuses ["9223372036854775808"],
        "a number from -9223372036854775808 to 9223372036854775807";
    signed_128: i128 = -1, [0, i128::MIN, i128::MAX, i64::MIN.into()], against [i128::MIN, -1, 0],
        bits, refuses ["one"], &format!("a number from {} to {}", i128::MIN, i128::MAX);
    signed_of_the_machine: isize = isize::MIN, [0, -1, isize::MAX], against [isize::MIN, -1, 0],
        bits, refuses ["1e3"], &format!("a number from {} to {}", isize::MIN, isize::MAX);
    truth: bool = true, [false, true, false], against [false, true, false],
        bits, refuses ["True", "2", "", "yes"], "true or false (also on, off, 1, 0)";
    letter: char = 'é', ['\0', 'a', '\u{d7ff}', '\u{e000}', '\u{10ffff}', ',', '='],
        against ['a', '\u{d7ff}', '\u{10ffff}'], bits, refuses ["", "ab"], "one character";
    float_32: f32 = -0.0, [0.0, 1.5, f32::MIN, f32::MAX, f32::NAN, f32::INFINITY,
        f32::NEG_INFINITY, f32::MIN_POSITIVE, f32::EPSILON, 1.0e-45], against [0.0, -1.5, f32::INFINITY],
        bits, refuses ["", "1,5", "0x10"], "a decimal number such as 0.5, inf or NaN";
    float_64: f64 = f64::NAN, [0.0, -0.0, 1.0 / 3.0, f64::MIN, f64::MAX, f64::INFINITY,
        f64::NEG_INFINITY, 5e-324], against [0.0, f64::NAN, -1e300],
        bits, refuses ["one"], "a decimal number such as 0.5, inf or NaN";
    non_zero_unsigned: NonZero<u8> = NonZero::<u8>::MAX, [NonZero::<u8>::MIN, non_zero(NonZero::new(0x80))],
        against [NonZero::<u8>::MIN, non_zero(NonZero::new(0x80)), NonZero::<u8>::MAX],
        bits, refuses ["0", "256"], "a number from 0 to 255 except 0";
    non_zero_signed: NonZero<i32> = non_zero(NonZero::new(-1)), [NonZero::<i32>::MIN, NonZero::<i32>::MAX],
        against [NonZero::<i32>::MIN, non_zero(NonZero::new(-1)), NonZero::<i32>::MAX],
        bits, refuses ["0", "-0"], "a number from -2147483648 to 2147483647 except 0";
    non_zero_wide: NonZero<u64> = NonZero::<u64>::MAX, [NonZero::<u64>::MIN, non_zero(NonZero::new(1 << 63))],
        against [NonZero::<u64>::MIN, non_zero(NonZero::new(1 << 63)), NonZero::<u64>::MAX],
        bits, refuses ["0x0"], "a number from 0 to 18446744073709551615 except 0";
    non_zero_widest: NonZero<i128> = NonZero::<i128>::MIN, [NonZero::<i128>::MAX, non_zero(NonZero::new(-1))],
        against [NonZero::<i128>::MIN, non_zero(NonZero::new(-1)), NonZero::<i128>::MAX],
        bits, refuses ["None"], &format!("a number from {} to {} except 0", i128::MIN, i128::MAX);
    optional_signed: Option<NonZero<i8>> = None, [NonZero::new(-128), NonZero::new(127), None, NonZero::new(-1)],
        against [None, NonZero::new(-1), NonZero::new(1)],
        bits, refuses ["0", "none", ""], "None or a number from -128 to 127 except 0";
    optional_wide: Option<NonZero<u64>> = NonZero::new(u64::MAX), [None, NonZero::new(1), NonZero::new(1 << 63)],
        against [None, NonZero::new(1), NonZero::new(u64::MAX)],
        bits, refuses ["Some(1)"], "None or a number from 0 to 18446744073709551615 except 0";
    optional_widest: Option<NonZero<u128>> = None, [NonZero::new(1), NonZero::new(u128::MAX), None],
        against [None, NonZero::new(1), NonZero::new(u128::MAX)],
        bits, refuses ["0"], &format!("None or a number from 0 to {} except 0", u128::MAX);
}

/// Addresses: at sites, in memory, in tests; a pointer is set by the program only.
macro_rules! addresses {
    ($($test:ident: $type:ty = $initial:expr, [$($value:expr),* $(,)?];)*) => { $(
        mod $test {
 use super::*;

#[test]
        fn holds_reads_and_compares() -> Result<(), Error> {
            #[immediate]
            static VARIABLE: Immediate<$type> = Immediate::new($initial);
            type Value = $type;

            #[inline(never)]
            fn far() -> Value {
                immediate_read!(VARIABLE)
            }

            fn check(value: Value) {
                let shown = |value: Value| format!("{value:?}");
                assert_eq!(shown(immediate_read!(VARIABLE)), shown(value), "at a site");
                assert_eq!(shown(far()), shown(value), "at another");
                assert_eq!(shown(VARIABLE.get()), shown(value), "in memory");
                // SAFETY: an address has the size of a number, and its bits are initialised.
                let address = |value: Value| unsafe { std::mem::transmute::<Value, usize>(value) };
                let text = immediate::find(VARIABLE.name()).expect("it is listed").value();
                assert_eq!(text, format!("{:#x}", address(value)));
                assert_eq!(
                    immediate_if!(VARIABLE, |one| {
                        // SAFETY: as above.
                        unsafe { std::mem::transmute::<Value, usize>(one) == 0 }
                    }),
                    address(value) == 0,
                    "in a test"
                );
            }

            // The initial address is not in the built file: it came when the module registered.
            let initial: Value = $initial;
            check(initial);
            let values: [Value; _] = [$($value),*];
            for value in values {
                VARIABLE.set(value)?;
                check(value);
            }
            text_is_refused(
                &VARIABLE,
                &["0", "0x1000", "", "null"],
                "an address, which only the program itself can set",
            );
            VARIABLE.set(initial)?;
            check(initial);
            if size_of::<Value>() <= MAX_VALUE {
                assert!(VARIABLE.site_count() >= 3, "{}", VARIABLE.site_count());
            }
            Ok(())
        }
}
    )* };
}

static FIRST: u32 = 1;
static SECOND: u32 = 2;
static TABLE: [u8; 4] = [1, 2, 3, 4];

fn length(text: &str) -> usize {
    text.len()
}
fn letters(text: &str) -> usize {
    text.chars().count()
}
fn nothing() {}
fn something() {
    std::hint::black_box(1);
}
unsafe fn careful(value: u8) -> u8 {
    value
}
unsafe fn careless(value: u8) -> u8 {
    value + 1
}
extern "C" fn from_c(value: i32) -> i32 {
    value
}
extern "C" fn twice_from_c(value: i32) -> i32 {
    2 * value
}
unsafe extern "C" fn eight(a: u8, _: u8, _: u8, _: u8, _: u8, _: u8, _: u8, h: u64) -> u64 {
    u64::from(a) + h
}
fn rest(text: &str) -> &str {
    &text[1..]
}
fn fill(bytes: &mut [u8], with: u8) {
    bytes.fill(with);
}

addresses! {
    constant_pointer: *const u32 = &raw const FIRST, [ptr::null(), &raw const SECOND, ptr::dangling()];
    mutable_pointer: *mut u32 = ptr::null_mut(), [
        ptr::without_provenance_mut(usize::MAX), ptr::without_provenance_mut(0x8000_0000)
    ];
    reference: &'static u32 = &FIRST, [&SECOND, &FIRST, &7];
    reference_to_a_wide_one: &'static &'static str = &"a", [&"b"];
    non_null: NonNull<u32> = NonNull::dangling(), [NonNull::from(&FIRST)];
    optional_reference: Option<&'static u32> = None, [Some(&FIRST), None, Some(&SECOND)];
    optional_non_null: Option<NonNull<u64>> = None, [Some(NonNull::dangling()), None];
    function: fn() = nothing, [something, nothing];
    optional_function: Option<fn()> = Some(nothing), [None, Some(something)];
    function_of_borrowed: fn(&str) -> usize = length, [letters, str::len];
    function_that_lends: fn(&str) -> &str = rest, [str::trim];
    function_of_mutable: fn(&mut [u8], u8) = fill, [|bytes, with| bytes[0] = with];
    optional_function_of_borrowed: Option<fn(&str) -> usize> = None, [Some(letters)];
    unsafe_function: unsafe fn(u8) -> u8 = careful, [careless];
    function_of_c: extern "C" fn(i32) -> i32 = from_c, [twice_from_c];
    optional_function_of_c: Option<unsafe extern "C" fn(u8, u8, u8, u8, u8, u8, u8, u64) -> u64> =
        None, [Some(eight)];
}

#[test]
fn functions_and_references_are_used() -> Result<(), Error> {
    #[immediate]
    static MEASURE: Immediate<fn(&str) -> usize> = Immediate::new(length);
    #[immediate]
    static CALLBACK: Immediate<Option<extern "C" fn(i32) -> i32>> = Immediate::new(None);
    #[immediate]
    static ACTIVE: Immediate<&'static [u8; 4]> = Immediate::new(&TABLE);

    let measure = || immediate_read!(MEASURE)("äöü");
    let call = || immediate_read!(CALLBACK).map(|callback| callback(21));
    assert_eq!((measure(), call(), immediate_read!(ACTIVE)[3]), (6, None, 4));
    MEASURE.set(letters)?;
    CALLBACK.set(Some(twice_from_c))?;
    ACTIVE.set(&[9; 4])?;
    assert_eq!((measure(), call(), immediate_read!(ACTIVE)[3]), (3, Some(42), 9));
    Ok(())
}

#[test]
fn lifetimes_are_left_out() -> Result<(), Error> {
    #[immediate]
    static TABLES: Immediate<&[u8; 4]> = Immediate::new(&TABLE);
    #[immediate]
    static NESTED: Immediate<Option<&(&str, fn(&str) -> usize)>> = Immediate::new(None);

    assert_eq!((immediate_read!(TABLES)[1], immediate_read!(NESTED).is_none()), (2, true));
    TABLES.set(&[6; 4])?;
    NESTED.set(Some(&("äb", letters)))?;
    let nested = immediate_read!(NESTED).map(|(text, measure)| measure(text));
    assert_eq!((immediate_read!(TABLES)[1], nested), (6, Some(2)));
    Ok(())
}

#[test]
fn a_comparison_of_addresses_is_a_test() -> Result<(), Error> {
    #[immediate]
    static AT: Immediate<Option<NonNull<u32>>> = Immediate::new(None);
    let is_none = || immediate_if!(AT == None);
    assert!(is_none());
    AT.set(Some(NonNull::from(&FIRST)))?;
    assert!(!is_none() && immediate_if!(AT != None));
    Ok(())
}

/// Enums of every `repr`, each with its lowest and its highest value.
macro_rules! enums {
    ($($test:ident: $repr:ident [$low:expr, $middle:expr, $high:expr];)*) => { $(
        mod $test {
 use super::*;

#[test]
        fn holds_reads_and_compares() -> Result<(), Error> {
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ImmediateValue)]
            #[repr($repr)]
            enum Choice {
                High = $high,
                Low = $low,
                Middle = $middle,
            }
            #[immediate]
            static CHOICE: Immediate<Choice> = Immediate::new(Choice::High);

            fn check(choice: Choice) {
                assert_eq!(immediate_read!(CHOICE), choice);
                assert_eq!(CHOICE.get(), choice);
                assert_eq!(immediate_if!(CHOICE == Choice::Low), choice == Choice::Low);
                // The type's own order, which is not that of the variants above.
                assert_eq!(immediate_if!(CHOICE < Choice::Middle), choice < Choice::Middle);
                assert_eq!(immediate_if!(CHOICE >= Choice::Middle), choice >= Choice::Middle);
                let number = immediate_if!(CHOICE, |choice| choice as $repr == $middle);
                assert_eq!(number, choice as $repr == $middle);
                assert_eq!(
                    immediate_if!(CHOICE, |choice| matches!(choice, Choice::Low | Choice::High)),
                    choice != Choice::Middle
                );
            }
            check(Choice::High);
            for choice in [Choice::Low, Choice::Middle, Choice::High, Choice::Low] {
                CHOICE.set(choice)?;
                check(choice);
                text_comes_back(&CHOICE, Choice::Middle);
                check(choice);
            }
            let handle = immediate::find(CHOICE.name()).expect("it is listed");
            assert_eq!((handle.initial(), handle.value().as_str()), ("High", "Low"));
            text_is_refused(&CHOICE, &["low", "0", "", "Low "], "High, Low, Middle");
            Ok(())
        }
}
    )* };
}

enums! {
    enum_u8: u8 [0, 0x80, 0xff];
    enum_u16: u16 [0, 0x8000, 0xffff];
    enum_u32: u32 [0, 0x8000_0000, 0xffff_ffff];
    enum_u64: u64 [0, 0x8000_0000_0000_0000, u64::MAX];
    enum_usize: usize [0, 1, usize::MAX];
    enum_i8: i8 [-128, -1, 127];
    enum_i16: i16 [i16::MIN, -1, i16::MAX];
    enum_i32: i32 [i32::MIN, -1, i32::MAX];
    enum_i64: i64 [i64::MIN, -1, i64::MAX];
    enum_isize: isize [isize::MIN, -1, isize::MAX];
}

#[test]
fn enums_with_a_comparison_of_their_own() -> Result<(), Error> {
    /// Compared by how loud it is, which is the other way round.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, ImmediateValue)]
    #[repr(u8)]
    enum Severity {
        Fatal,
        Warning,
        #[allow(non_camel_case_types)]
        r#fn,
    }
    impl PartialOrd for Severity {
        fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
            (*other as u8).partial_cmp(&(*self as u8))
        }
    }
    #[immediate]
    static SEVERITY: Immediate<Severity> = Immediate::new(Severity::Warning);

    assert!(immediate_if!(SEVERITY < Severity::Fatal));
    assert!(immediate_if!(SEVERITY > Severity::r#fn));
    SEVERITY.set(Severity::Fatal)?;
    assert!(!immediate_if!(SEVERITY < Severity::Fatal));
    let handle = immediate::find(SEVERITY.name()).expect("it is listed");
    handle.set_text("fn")?;
    assert_eq!((SEVERITY.get(), handle.value().as_str()), (Severity::r#fn, "fn"));
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, ImmediateValue)]
#[repr(transparent)]
struct Celsius(f64);

#[derive(Clone, Copy, Debug, PartialEq, ImmediateValue)]
#[repr(transparent)]
struct Wrapped<T> {
    inner: T,
}

#[derive(Clone, Copy, Debug, ImmediateValue)]
#[repr(transparent)]
struct Handler(fn(&str) -> usize);

#[derive(Clone, Copy, Debug, PartialEq, ImmediateValue)]
#[repr(transparent)]
struct Table(&'static [u8; 4]);

#[derive(Clone, Copy, Debug, PartialEq, ImmediateValue)]
#[repr(transparent)]
struct Bounded<T: Into<u64> + 'static>(T)
where
    T: Clone;

#[test]
fn new_types_over_numbers() -> Result<(), Error> {
    #[immediate]
    static HEAT: Immediate<Celsius> = Immediate::new(Celsius(-0.0));
    #[immediate]
    static WRAPPED: Immediate<Wrapped<Wrapped<i8>>> =
        Immediate::new(Wrapped { inner: Wrapped { inner: -1 } });
    #[immediate]
    static BOUNDED: Immediate<Bounded<u32>> = Immediate::new(Bounded(u32::MAX));
    #[immediate]
    static WIDE: Immediate<Wrapped<u128>> = Immediate::new(Wrapped { inner: 1 << 100 });

    const HOT: Celsius = Celsius(30.0);
    assert!(immediate_if!(HEAT == Celsius(0.0)) && immediate_if!(HEAT < HOT));
    assert_eq!(immediate_read!(WRAPPED).inner.inner, -1);
    assert_eq!((immediate_read!(BOUNDED).0, immediate_read!(WIDE).inner), (u32::MAX, 1 << 100));
    HEAT.set(Celsius(f64::NAN))?;
    WRAPPED.set(Wrapped { inner: Wrapped { inner: i8::MIN } })?;
    BOUNDED.set(Bounded(7))?;
    WIDE.set(Wrapped { inner: u128::MAX })?;
    assert!(!immediate_if!(HEAT < HOT) && !immediate_if!(HEAT >= HOT));
    assert!(immediate_if!(WRAPPED, |wrapped| wrapped.inner.inner == i8::MIN));
    assert!(immediate_if!(WRAPPED == Wrapped { inner: Wrapped { inner: -128 } }));
    assert!(immediate_if!(BOUNDED == Bounded(7)));
    assert_eq!(immediate_read!(WIDE).inner, u128::MAX);
    text_comes_back(&HEAT, HOT);
    text_comes_back(&WRAPPED, Wrapped { inner: Wrapped { inner: 1 } });
    text_comes_back(&WIDE, Wrapped { inner: 0 });
    text_is_refused(&WRAPPED, &["200", ""], "a number from -128 to 127");
    text_is_refused(&HEAT, &["hot"], "a decimal number such as 0.5, inf or NaN");
    Ok(())
}

#[test]
fn new_types_over_pointers() -> Result<(), Error> {
    #[immediate]
    static HANDLER: Immediate<Handler> = Immediate::new(Handler(length));
    #[immediate]
    static TABLES: Immediate<Table> = Immediate::new(Table(&TABLE));
    #[immediate]
    static OPTIONAL: Immediate<Wrapped<Option<&'static u32>>> =
        Immediate::new(Wrapped { inner: Some(&FIRST) });

    let read = || {
        let Wrapped { inner } = immediate_read!(OPTIONAL);
        (immediate_read!(HANDLER).0("é"), immediate_read!(TABLES).0[0], inner.copied())
    };
    assert_eq!(read(), (2, 1, Some(1)));
    assert!(immediate_if!(OPTIONAL, |optional| optional.inner.is_some()));
    HANDLER.set(Handler(letters))?;
    TABLES.set(Table(&[8; 4]))?;
    OPTIONAL.set(Wrapped { inner: Some(&SECOND) })?;
    assert_eq!(read(), (1, 8, Some(2)));
    OPTIONAL.set(Wrapped { inner: None })?;
    assert_eq!(read(), (1, 8, None));
    assert!(immediate_if!(OPTIONAL == Wrapped { inner: None }));
    let address = "an address, which only the program itself can set";
    text_is_refused(&HANDLER, &["0"], address);
    text_is_refused(&OPTIONAL, &["None"], address);
    Ok(())
}
