//! From a request to its answer.

use std::time::{Duration, Instant};

use super::pattern::matches;
use super::protocol::{
    Answer, Cost, Fault, FaultKind, ModuleState, PAGE, Program, Reply, Request, SetState, Setting,
    State, VERSION, VariableState,
};
use super::restore::Temporaries;
use crate::error::Error;
use crate::introspect::{Variable, lookup, modules, variables};
use crate::named::set_named;
use crate::status::status;

/// The longest time, in milliseconds, after which old values come back.
const LONGEST: u64 = 365 * 24 * 3_600_000;

/// What the endpoint remembers from one request to the next.
#[derive(Default)]
pub(super) struct Desk {
    pub(super) temporaries: Temporaries,
    cost: Cost,
}

impl Desk {
    /// Answers one line.
    pub(super) fn answer(&mut self, line: &[u8], clients: usize) -> Reply {
        let request = match serde_json::from_slice(line) {
            Ok(request) => request,
            Err(error) => return Reply::Error(bad(format!("this is no request: {error}"))),
        };
        let answer = match request {
            Request::Hello {} => Ok(Answer::Program(program())),
            Request::List { patterns, from } => Ok(self.list(&patterns, from)),
            Request::Get { names } => self.get(&names),
            Request::Set { values, for_ms } => self.set(&values, for_ms),
            Request::Status {} => Ok(Answer::Status(self.state(clients))),
        };
        match answer {
            Ok(answer) => Reply::Ok(answer),
            Err(fault) => Reply::Error(fault),
        }
    }

    fn list(&self, patterns: &[String], from: usize) -> Answer {
        let is_asked = |variable: &Variable| {
            patterns.is_empty() || patterns.iter().any(|one| matches(one, variable.name()))
        };
        let mut found = variables().filter(is_asked).skip(from);
        let page: Vec<_> =
            found.by_ref().take(PAGE).map(|variable| self.describe(&variable)).collect();
        let next = found.next().map(|_| from + page.len());
        Answer::Variables { variables: page, next }
    }

    fn get(&self, names: &[String]) -> Result<Answer, Fault> {
        check_number(names.len())?;
        let found: Result<Vec<_>, Error> = names
            .iter()
            .map(|name| lookup(name).map(|variable| self.describe(&variable)))
            .collect();
        Ok(Answer::Variables { variables: found?, next: None })
    }

    fn set(&mut self, values: &[(String, String)], for_ms: Option<u64>) -> Result<Answer, Fault> {
        check_number(values.len())?;
        if for_ms.is_some_and(|time| time > LONGEST) {
            return Err(bad(format!(
                "for_ms is at most {LONGEST}, a year; leave it out to set for good"
            )));
        }
        let pairs: Vec<_> =
            values.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let begin = Instant::now();
        let set = set_named(&pairs)?;
        let micros = u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.cost.sets += 1;
        self.cost.last_micros = micros;
        self.cost.longest_micros = self.cost.longest_micros.max(micros);
        let until = for_ms.map(|time| Instant::now() + Duration::from_millis(time));
        self.temporaries.note(&set, until);
        let set = set.into_iter().map(|one| Setting {
            name: one.variable.name().to_string(),
            old: one.old,
            new: one.new,
        });
        Ok(Answer::Set(SetState { set: set.collect(), restored_in_ms: for_ms, micros }))
    }

    /// The variable as it was when it was listed.
    fn describe(&self, variable: &Variable) -> VariableState {
        VariableState {
            name: variable.name.clone(),
            type_name: variable.type_name.clone(),
            value: variable.value.clone(),
            initial: variable.initial.clone(),
            sites: variable.sites,
            updates: variable.updates,
            module: variable.module.clone(),
            place: variable.place(),
            doc: variable.doc.clone(),
            shared: variable.is_shared,
            restored_in_ms: self.temporaries.until(variable).map(|until| {
                let left = until.saturating_duration_since(Instant::now());
                u64::try_from(left.as_millis()).unwrap_or(u64::MAX)
            }),
            hits: hits(variable.name()),
        }
    }

    fn state(&self, clients: usize) -> State {
        let status = status();
        State {
            target: status.target.to_string(),
            protocol: status.protocol.map(|protocol| protocol.to_string()),
            writer: status.writer.map(|writer| writer.to_string()),
            one_instant: status.one_instant,
            rejected: status.rejected.iter().map(ToString::to_string).collect(),
            rejected_writers: status.rejected_writers.iter().map(ToString::to_string).collect(),
            refusal: status.refusal.map(|refusal| refusal.to_string()),
            modules: modules()
                .map(|module| ModuleState {
                    path: module.path,
                    base: module.base,
                    variables: module.variables,
                    sites: module.sites,
                })
                .collect(),
            variables: status.variables,
            sites: status.sites,
            trapping: status.last.map_or(0, |last| last.trapping),
            updates: status.updates,
            cost: self.cost,
            temporary: self.temporaries.len(),
            clients,
        }
    }
}

#[cfg(feature = "profile")]
use crate::profile::hits;

#[cfg(not(feature = "profile"))]
fn hits(_: &str) -> Option<u64> {
    None
}

fn program() -> Program {
    let path = std::env::current_exe();
    let status = status();
    Program {
        protocol: VERSION,
        pid: std::process::id(),
        program: path.map_or_else(|_| String::new(), |path| path.display().to_string()),
        variables: status.variables,
        sites: status.sites,
    }
}

fn check_number(number: usize) -> Result<(), Fault> {
    match number {
        0 => Err(bad("the request names no variable".to_string())),
        _ if number > PAGE => {
            Err(bad(format!("the request names {number} variables; name at most {PAGE}")))
        }
        _ => Ok(()),
    }
}

fn bad(message: String) -> Fault {
    Fault { kind: FaultKind::BadRequest, message, item: None, valid: Vec::new() }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        let (kind, item, valid) = match error {
            Error::UnknownName { name, similar } => (FaultKind::UnknownName, Some(name), similar),
            Error::BadValue { variable, valid, .. } => {
                (FaultKind::BadValue, Some(variable), vec![valid])
            }
            _ => (FaultKind::Refused, None, Vec::new()),
        };
        Fault { kind, message, item, valid }
    }
}
