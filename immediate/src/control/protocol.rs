//! What is said over the socket. Each type documents its JSON by its fields.

use serde::{Deserialize, Serialize};

/// Version of the protocol.
pub const VERSION: u32 = 1;

/// The most variables that one answer lists.
pub const PAGE: usize = 256;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Which program is this?
    Hello {},
    /// Which variables are loaded? Answered by [`Answer::Variables`].
    List {
        /// Patterns for the name, of which one must match; without any, all match.
        #[serde(default)]
        patterns: Vec<String>,
        /// How many of those that match to pass over.
        #[serde(default)]
        from: usize,
    },
    /// These variables, in this order. At most [`PAGE`].
    Get {
        /// Their names.
        names: Vec<String>,
    },
    /// Sets variables: one batch. At most [`PAGE`].
    Set {
        /// Names and values.
        values: Vec<(String, String)>,
        /// After how many milliseconds the old values come back; never without.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        for_ms: Option<u64>,
    },
    /// How is a set carried out?
    Status {},
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The request was carried out.
    Ok(Answer),
    /// It was not, and nothing has changed.
    Error(Fault),
}

/// What a request that was carried out gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::large_enum_variant)]
pub enum Answer {
    /// To [`Request::Hello`].
    Program(Program),
    /// To [`Request::List`] and [`Request::Get`].
    Variables {
        /// The variables.
        variables: Vec<VariableState>,
        /// From where to go on, if there are more.
        next: Option<usize>,
    },
    /// To [`Request::Set`].
    Set(SetState),
    /// To [`Request::Status`].
    Status(State),
}

/// A program that serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The version of the protocol that it speaks.
    pub protocol: u32,
    /// Its process id, as it sees it itself.
    pub pid: u32,
    /// The path of its executable.
    pub program: String,
    /// How many variables it has.
    pub variables: usize,
    /// How many sites it has.
    pub sites: usize,
}

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableState {
    /// Its name.
    pub name: String,
    /// The name of its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its value.
    pub value: String,
    /// Its initial value in the built file.
    pub initial: String,
    /// How many sites read it.
    pub sites: usize,
    /// How often it has been set.
    pub updates: u64,
    /// The path of the module that declares it.
    pub module: String,
    /// Where it is declared: `file:line:column`.
    pub place: String,
    /// The first line of its documentation, or nothing.
    pub doc: String,
    /// Whether the modules that declare it share it.
    pub shared: bool,
    /// After how many milliseconds its old value comes back, if it was set for a time.
    pub restored_in_ms: Option<u64>,
    /// How often what it switches was reached while it was on, where that is counted (feature
    /// `profile`).
    pub hits: Option<u64>,
}

/// What a set did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetState {
    /// Each variable that was set.
    pub set: Vec<Setting>,
    /// After how many milliseconds the old values come back, if they do.
    pub restored_in_ms: Option<u64>,
    /// How long the set took, in microseconds.
    pub micros: u64,
}

/// A variable that was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value before.
    pub old: String,
    /// Its value now.
    pub new: String,
}

/// How a set is carried out: [`status`](crate::status) as text, and what the endpoint saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The instruction set of the sites; `plain` where variables are read by plain loads.
    pub target: String,
    /// The protocol that the next set would take.
    pub protocol: Option<String>,
    /// The writer that the next set of one site would take.
    pub writer: Option<String>,
    /// Whether a set is one instant for all threads, sites and variables.
    pub one_instant: bool,
    /// Each better protocol that cannot be used, and why.
    pub rejected: Vec<String>,
    /// Each writer that cannot be used, and why.
    pub rejected_writers: Vec<String>,
    /// Why nothing can be set, if so.
    pub refusal: Option<String>,
    /// The loaded modules that have variables or sites.
    pub modules: Vec<ModuleState>,
    /// Variables in them.
    pub variables: usize,
    /// Sites in them.
    pub sites: usize,
    /// Sites that still hold a trap after the last set.
    pub trapping: usize,
    /// Sets that succeeded, whoever made them.
    pub updates: u64,
    /// Sets by this endpoint.
    pub cost: Cost,
    /// Variables whose old values will come back.
    pub temporary: usize,
    /// Connections that are open.
    pub clients: usize,
}

/// A loaded module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleState {
    /// Path of its file.
    pub path: String,
    /// Load address.
    pub base: usize,
    /// How many variables it declares.
    pub variables: usize,
    /// How many sites it has.
    pub sites: usize,
}

/// How long sets took that the endpoint carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// How many there were.
    pub sets: u64,
    /// The last one, in microseconds.
    pub last_micros: u64,
    /// The longest one, in microseconds.
    pub longest_micros: u64,
}

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What is wrong, for programs.
    pub kind: FaultKind,
    /// What is wrong and what would be right, in one line.
    pub message: String,
    /// The name that cannot be used, if it is about one.
    #[serde(default)]
    pub item: Option<String>,
    /// What would be valid: similar names, or the one line that describes the values.
    #[serde(default)]
    pub valid: Vec<String>,
}

/// What is wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FaultKind {
    /// It is no request: no JSON, an unknown field, too long. The connection is closed after a line
    /// that is too long.
    BadRequest,
    /// The peer may not connect.
    NotAllowed,
    /// No variable has this name.
    UnknownName,
    /// The text is no value of the variable's type.
    BadValue,
    /// The set was refused.
    Refused,
}
