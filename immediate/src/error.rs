//! What can go wrong.

use std::fmt;

use immediate_arch::{Mismatch, Refusal};

/// Why a variable could not be set. Nothing has changed.
///
/// The text is one line that says what was tried, what stopped it and what to do.
///
/// ```
/// use immediate::{Batch, Error, Immediate, immediate};
///
/// #[immediate]
/// static LIMIT: Immediate<u8> = Immediate::new(1);
///
/// let limit = immediate::find(LIMIT.name()).expect("it is declared");
/// let error = limit.set_text("300").expect_err("300 is no u8");
/// assert!(error.to_string().ends_with("is no value of type u8: give a number from 0 to 255"));
/// assert_eq!(LIMIT.get(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// `set_early` was called although the process has more than one thread, or it is not known how
    /// many it has.
    NotSingleThreaded,
    /// A variable was set, or the lock taken, by a thread that is in the middle of a set or holds the
    /// guard of [`lock`](crate::lock).
    WithinUpdate,
    /// The code at a site is not what its record says.
    Site {
        /// The variable that the site reads.
        variable: String,
        /// What stands there and what should.
        mismatch: Mismatch,
    },
    /// Two variables are read by the same instruction: a linker folded two functions that differ.
    FoldedSites {
        /// Address of the instruction.
        address: usize,
        /// The two variables.
        variables: [String; 2],
    },
    /// The code could not be changed.
    Refused(Refusal),
    /// `configure` was called after the first set.
    ConfiguredTooLate,
    /// No variable has this name.
    UnknownName {
        /// The name.
        name: String,
        /// Names that are similar, or some of those that exist.
        similar: Vec<String>,
    },
    /// The text is no value of the variable's type.
    BadValue {
        /// The variable.
        variable: String,
        /// Its type.
        type_name: String,
        /// The text.
        found: String,
        /// What would be valid.
        valid: String,
    },
    /// The module of the variable has been unloaded.
    Unloaded {
        /// The variable.
        variable: String,
    },
    /// The module of the variable is not registered: it was refused when it was loaded, or is not
    /// loaded completely yet.
    Unregistered {
        /// The variable.
        variable: String,
    },
    /// Another module's copy of this library owns the runtime of the process and reports this.
    Elsewhere {
        /// Its report: one line.
        text: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotSingleThreaded => out.write_str(
                "set_early needs a process that is known to have one thread; use set, which works \
                 in every process",
            ),
            Error::WithinUpdate => out.write_str(
                "this thread is already setting a variable or holds the guard of immediate::lock(); \
                 set through that guard, or after it is dropped",
            ),
            Error::Site { variable, mismatch } => write!(
                out,
                "cannot set {variable}: {mismatch}; something else has changed the program's code"
            ),
            Error::FoldedSites { address, variables: [one, other] } => write!(
                out,
                "cannot set {one}: the instruction at {address:#x} reads {other} as well, because \
                 the linker folded two functions; link with --icf=safe or without --icf"
            ),
            Error::Refused(refusal) => write!(out, "the code was not changed: {refusal}"),
            Error::ConfiguredTooLate => out.write_str(
                "configure comes too late, a variable has already been set; call it before the first \
                 set",
            ),
            Error::UnknownName { name, similar } if similar.is_empty() => {
                write!(out, "no variable is named {name:?}: this program has no variables")
            }
            Error::UnknownName { name, similar } => {
                write!(out, "no variable is named {name:?}: give {}", similar.join(" or "))
            }
            Error::BadValue { variable, type_name, found, valid } => write!(
                out,
                "cannot set {variable}: {found:?} is no value of type {type_name}: give {valid}"
            ),
            Error::Unloaded { variable } => {
                write!(out, "cannot set {variable}: the module that declares it was unloaded")
            }
            Error::Unregistered { variable } => write!(
                out,
                "cannot set {variable}: the module that declares it is not registered; it was refused \
                 when it was loaded, as was reported then, or its constructors have not begun"
            ),
            Error::Elsewhere { text } => out.write_str(text),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Refused(refusal) => Some(refusal),
            Error::Site { mismatch, .. } => Some(mismatch),
            _ => None,
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotSingleThreaded => Error::NotSingleThreaded,
            other => Error::Refused(other),
        }
    }
}
