//! Why the command ends without success, and the exit status that says so.

use immediate::control::{Fault, FaultKind};

#[derive(Debug)]
pub(crate) enum Failure {
    /// The program answered that it could not.
    Fault(Fault),
    /// The arguments, or a file that they name, cannot be used.
    Arguments(String),
    /// There is no such program, or it does not answer.
    Program(String),
    /// The program ended while it was watched.
    Lost(String),
    /// `inspect` has found and told what is wrong.
    Found(String),
    /// Nobody reads the output any more.
    OutputClosed,
}

impl Failure {
    /// As `--help` documents them.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::OutputClosed => 0,
            Failure::Fault(fault) => match fault.kind {
                FaultKind::UnknownName | FaultKind::BadValue | FaultKind::BadRequest => 2,
                FaultKind::NotAllowed => 3,
                _ => 1,
            },
            Failure::Lost(_) | Failure::Found(_) => 1,
            Failure::Arguments(_) => 2,
            Failure::Program(_) => 3,
        }
    }

    /// One line.
    pub(crate) fn message(&self) -> String {
        match self {
            Failure::Fault(Fault {
                kind: FaultKind::UnknownName, item: Some(item), valid, ..
            }) if !valid.is_empty() && valid.len() <= MEANT => {
                format!("no variable is named {item:?}: did you mean {}?", valid.join(" or "))
            }
            Failure::Fault(fault) => fault.message.clone(),
            Failure::Arguments(text)
            | Failure::Program(text)
            | Failure::Lost(text)
            | Failure::Found(text) => text.clone(),
            Failure::OutputClosed => "the output was closed".into(),
        }
    }

    pub(crate) fn report(&self, json: bool) {
        if !json {
            anstream::eprintln!("\x1b[1;31merror:\x1b[0m {}", self.message());
            return;
        }
        let value = match self {
            Failure::Fault(fault) => serde_json::json!({ "error": fault }),
            other => serde_json::json!({ "error": { "message": other.message() } }),
        };
        anstream::eprintln!("{value}");
    }
}

/// With more names than this it is a list and no guess.
const MEANT: usize = 3;
