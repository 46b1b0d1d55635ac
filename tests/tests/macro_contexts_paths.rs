//! How a variable is named: imported, renamed, re-exported, declared by a macro or in a function
//! body, in another crate. A variable is a static and a type of one name; where a path carried one
//! without the other, the program would not build, and where two variables of one name were mixed
//! up, it would read the wrong one.

// Visibility is what is tested.
#![allow(unreachable_pub, missing_docs)]

use immediate::{Batch, Error, Immediate, immediate, immediate_if, immediate_read};

// The crate under another name, as after `cargo add immediate --rename`.
extern crate immediate as imm;

mod config {
    pub mod limits {
        use immediate::{Immediate, immediate};

        #[immediate]
        pub static LIMIT: Immediate<u32> = Immediate::new(1);
        #[immediate]
        pub(in crate::config) static HIDDEN: Immediate<u32> = Immediate::new(2);
        #[immediate]
        pub(crate) static OPEN: Immediate<bool> = Immediate::new(false);
        #[immediate]
        static OWN: Immediate<u32> = Immediate::new(3);

        pub fn own() -> u32 {
            immediate::immediate_read!(OWN) + immediate::immediate_read!(self::OWN)
        }
    }

    pub mod nested {
        pub use super::limits::{LIMIT as CEILING, *};

        pub fn hidden() -> u32 {
            immediate::immediate_read!(super::limits::HIDDEN)
        }
        pub fn ceiling() -> u32 {
            immediate::immediate_read!(super::super::config::limits::LIMIT)
        }
    }
}

pub use config::limits::LIMIT as TOP;

#[test]
fn imported_renamed_and_exported_again() -> Result<(), Error> {
    use config::nested::*;
    use config::nested::{self, CEILING as LOCAL};

    let all = || {
        [
            immediate_read!(LIMIT),
            immediate_read!(LOCAL),
            immediate_read!(CEILING),
            immediate_read!(TOP),
            immediate_read!(crate::TOP),
            immediate_read!(nested::CEILING),
            immediate_read!(nested::LIMIT),
            immediate_read!(self::config::limits::LIMIT),
            nested::ceiling(),
        ]
    };
    assert_eq!(all(), [1; 9]);
    TOP.set(10)?;
    assert_eq!(all(), [10; 9]);
    assert_eq!((nested::hidden(), config::limits::own()), (2, 6));
    assert_eq!(TOP.name(), "macro_contexts_paths::config::limits::LIMIT");
    assert!(!immediate_if!(config::nested::OPEN));
    config::limits::OPEN.set(true)?;
    assert!(immediate_if!(nested::OPEN) && immediate_if!(crate::config::limits::OPEN));
    Ok(())
}

/// One name, three variables. (One inside the other's scope is refused by the compiler as ambiguous:
/// an import of a macro's item may not shadow another.)
#[test]
fn declared_in_bodies() -> Result<(), Error> {
    fn first() -> u8 {
        #[immediate(name = "bodies.first")]
        static LEVEL: Immediate<u8> = Immediate::new(1);
        immediate_read!(LEVEL)
    }
    fn second() -> u8 {
        #[immediate(name = "bodies.second")]
        static LEVEL: Immediate<u8> = Immediate::new(2);
        immediate_read!(LEVEL)
    }
    let block = || {
        #[immediate(name = "bodies.block")]
        static LEVEL: Immediate<u8> = Immediate::new(3);
        immediate_read!(LEVEL) * 10
    };
    assert_eq!((first(), second(), block()), (1, 2, 30));
    immediate::lookup("bodies.first")?.set_text("4")?;
    assert_eq!((first(), second(), block()), (4, 2, 30));
    immediate::lookup("bodies.second")?.set_text("5")?;
    immediate::lookup("bodies.block")?.set_text("6")?;
    assert_eq!((first(), second(), block()), (4, 5, 60));
    Ok(())
}

macro_rules! declare {
    ($(#[$attribute:meta])* $visibility:vis $name:ident: $type:ty = $initial:expr) => {
        $(#[$attribute])*
        #[immediate]
        $visibility static $name: Immediate<$type> = Immediate::new($initial);
    };
}

macro_rules! read_path {
    ($path:path) => {
        immediate_read!($path)
    };
}

macro_rules! read_name {
    ($name:ident) => {
        immediate_read!($name)
    };
}

macro_rules! at_least {
    ($path:path, $constant:expr) => {
        immediate_if!($path >= $constant)
    };
}

macro_rules! if_name {
    ($name:ident, $test:expr, $taken:block, $other:block) => {
        immediate_if!($name, $test => $taken else $other)
    };
}

macro_rules! if_all {
    ($($name:ident),*) => { true $(&& immediate_if!(likely $name != 0))* };
}

macro_rules! forward {
    ($($tokens:tt)*) => { immediate_if!($($tokens)*) };
}

/// The macro's own names are not those of the caller.
macro_rules! with_a_variable_of_its_own {
    ($other:ident) => {{
        #[immediate(name = "paths.of_the_macro")]
        static ITS_OWN: Immediate<u64> = Immediate::new(1 << 40);
        immediate_read!(ITS_OWN) + immediate_read!($other)
    }};
}

mod declared {
    use immediate::{Immediate, immediate};

    declare!(
        /// Documented by whoever calls the macro.
        pub COUNT: u16 = 1 + 2
    );
    declare!(pub(super) WORDS: fn(&str) -> usize = str::len);
}

declare!(HIDDEN: u64 = 5);

#[test]
fn through_macros() -> Result<(), Error> {
    use declared::COUNT;

    fn parity(level: u16) -> bool {
        level % 2 == 1
    }
    let all = || {
        (
            read_path!(declared::COUNT),
            read_name!(COUNT),
            at_least!(crate::declared::COUNT, 1 + 2),
            at_least!(COUNT, u16::MAX),
            if_name!(COUNT, parity, { "odd" }, { "even" }),
            if_all!(COUNT, HIDDEN),
            forward!(COUNT >= 4 => { 'm' } else { 'l' }),
            forward!(unlikely declared::COUNT == 4),
        )
    };
    assert_eq!(all(), (3, 3, true, false, "odd", true, 'l', false));
    COUNT.set(4)?;
    assert_eq!(all(), (4, 4, true, false, "even", true, 'm', true));
    COUNT.set(0)?;
    assert_eq!(all(), (0, 0, false, false, "even", false, 'l', false));
    assert_eq!(immediate_read!(declared::WORDS)("four"), 4);
    assert_eq!(with_a_variable_of_its_own!(HIDDEN), (1 << 40) + 5);
    let doc = immediate::lookup(COUNT.name())?.doc().to_string();
    assert_eq!(doc, "Documented by whoever calls the macro.");
    Ok(())
}

mod renamed {
    #[derive(Clone, Copy, Debug, PartialEq, imm::ImmediateValue)]
    #[immediate_value(crate = imm)]
    #[repr(i16)]
    pub enum Mode {
        Slow = -300,
        Fast,
    }

    #[imm::immediate(crate = imm, name = "renamed.mode", shared)]
    pub static MODE: imm::Immediate<Mode> = imm::Immediate::new(Mode::Slow);

    pub fn is_fast() -> bool {
        imm::immediate_if!(MODE == Mode::Fast) && imm::immediate_read!(MODE) == Mode::Fast
    }
}

#[test]
fn the_crate_has_another_name() -> Result<(), Error> {
    assert!(!renamed::is_fast());
    renamed::MODE.set(renamed::Mode::Fast)?;
    assert!(renamed::is_fast());
    assert_eq!(renamed::MODE.name(), "renamed.mode");
    Ok(())
}

// Of two declarations one is compiled, with all that belongs to it.
#[cfg(any())]
#[immediate]
static CHOSEN: Immediate<&'static str> = Immediate::new("no such type");
#[cfg(not(any()))]
#[immediate]
static CHOSEN: Immediate<u8> = Immediate::new(7);
#[cfg_attr(all(), immediate(name = "paths.by_cfg_attr"))]
static BY_CFG_ATTR: Immediate<u8> = Immediate::new(8);
#[immediate]
#[cfg(any())]
static ABSENT: Immediate<u8> = Immediate::new(7);
#[immediate]
#[cfg_attr(all(), cfg(any()))]
static ABSENT_TOO: Immediate<u8> = Immediate::new(7);

#[test]
fn compiled_conditionally() {
    assert_eq!((immediate_read!(CHOSEN), immediate_read!(BY_CFG_ATTR)), (7, 8));
    let mut names = immediate::variables().map(|one| one.name().to_string());
    assert!(!names.any(|name| name.contains("ABSENT")));
}

/// A static is a name like any other: generics and items around it may have it too.
#[test]
#[allow(non_upper_case_globals)]
fn names_do_not_clash() -> Result<(), Error> {
    #[immediate(name = "clash.T")]
    static T: Immediate<u8> = Immediate::new(1);
    #[immediate(name = "clash.F")]
    static F: Immediate<u8> = Immediate::new(2);
    #[immediate(name = "clash.site")]
    static site: Immediate<bool> = Immediate::new(true);

    let read = || [immediate_read!(T), immediate_read!(F)];
    let tests =
        || [immediate_if!(F, |value| value > 1), immediate_if!(T == 1), immediate_if!(site)];
    assert_eq!((read(), tests()), ([1, 2], [true; 3]));
    Batch::new().set(&T, 6).set(&F, 1).set(&site, false).apply()?;
    assert_eq!((read(), tests()), ([6, 1], [false; 3]));
    Ok(())
}

// A user crate may have its own items under names of the prelude.
mod hostile_names {
    #![allow(dead_code, unused_macros, non_camel_case_types)]

    type Option = ();
    type Result = ();
    type String = ();
    struct bool;
    struct u8;
    struct u64;
    struct u128;
    struct usize;
    mod core {}
    mod std {}
    fn drop() {}
    macro_rules! concat {
        ($($any:tt)*) => {
            compile_error!("not the one of core")
        };
    }
    macro_rules! asm {
        ($($any:tt)*) => {
            compile_error!("not the one of core")
        };
    }

    #[::immediate::immediate]
    pub static VALUE: ::immediate::Immediate<i8> = ::immediate::Immediate::new(-7);

    pub fn read() -> i8 {
        ::immediate::immediate_if!(VALUE == -7 => { ::immediate::immediate_read!(VALUE) } else { 0 })
    }
    pub fn test() -> ::core::primitive::bool {
        ::immediate::immediate_if!(VALUE, |value| value < 0)
    }
}

#[test]
fn names_of_the_prelude_may_be_taken() -> Result<(), Error> {
    assert_eq!((hostile_names::read(), hostile_names::test()), (-7, true));
    hostile_names::VALUE.set(7)?;
    assert_eq!((hostile_names::read(), hostile_names::test()), (0, false));
    Ok(())
}
