//! Finding programs, and talking to one.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use immediate::control::{Answer, Program, Reply, Request, VERSION, VariableState, directories};

use crate::arguments::Target;
use crate::failure::Failure;

/// How long a program may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest answer that is read.
const LONGEST: u64 = 64 << 20;

/// A program that serves, connected.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) program: Program,
    stream: BufReader<UnixStream>,
}

impl Client {
    fn connect(path: &Path) -> Result<Self, Failure> {
        let stream = UnixStream::connect(path)
            .and_then(|stream| {
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                Ok(stream)
            })
            .map_err(|error| {
                let why = match error.kind() {
                    ErrorKind::NotFound => "there is no such socket".to_string(),
                    ErrorKind::ConnectionRefused => "its program is gone".to_string(),
                    _ => error.to_string(),
                };
                Failure::Program(format!("cannot connect to {}: {why}", path.display()))
            })?;
        let mut client = Client {
            program: Program {
                protocol: 0,
                pid: 0,
                program: path.display().to_string(),
                variables: 0,
                sites: 0,
            },
            stream: BufReader::new(stream),
        };
        let Answer::Program(program) = client.ask(&Request::Hello {})? else {
            return Err(client.unexpected());
        };
        if program.protocol != VERSION {
            return Err(Failure::Program(format!(
                "{} speaks version {} of the protocol, this command version {VERSION}; use the \
                 command of the program's version",
                program.program, program.protocol
            )));
        }
        client.program = program;
        Ok(client)
    }

    pub(crate) fn ask(&mut self, request: &Request) -> Result<Answer, Failure> {
        let mut line =
            serde_json::to_string(request).map_err(|error| self.lost(&error.to_string()))?;
        line.push('\n');
        // A program that refuses us may have closed already; what it said can still be read.
        let sent = self.stream.get_mut().write_all(line.as_bytes());
        let mut reply = String::new();
        let read = (&mut self.stream).take(LONGEST).read_line(&mut reply);
        match (read, sent) {
            (Ok(0), _) => return Err(self.lost("it closed the connection")),
            (Err(error), _) | (Ok(_), Err(error)) if reply.is_empty() => {
                let why = match error.kind() {
                    ErrorKind::WouldBlock => format!("no answer for {} s", PATIENCE.as_secs()),
                    _ => error.to_string(),
                };
                return Err(self.lost(&why));
            }
            _ => {}
        }
        match serde_json::from_str(&reply) {
            Ok(Reply::Ok(answer)) => Ok(answer),
            Ok(Reply::Error(fault)) => Err(Failure::Fault(fault)),
            Err(_) => Err(self.unexpected()),
        }
    }

    fn lost(&self, why: &str) -> Failure {
        Failure::Program(format!("{} does not answer: {why}", self.title()))
    }

    pub(crate) fn unexpected(&self) -> Failure {
        Failure::Program(format!("{} gave an answer that is not of the protocol", self.title()))
    }

    /// Process id and name of the program.
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.program.pid, name(&self.program.program))
    }

    /// All variables whose names match, by name.
    pub(crate) fn variables(&mut self, patterns: &[String]) -> Result<Vec<VariableState>, Failure> {
        let mut all = Vec::new();
        let mut from = 0;
        loop {
            let request = Request::List { patterns: patterns.to_vec(), from };
            let Answer::Variables { variables, next } = self.ask(&request)? else {
                return Err(self.unexpected());
            };
            all.extend(variables);
            match next {
                Some(next) if next > from => from = next,
                _ => break,
            }
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }
}

/// The name of the file.
fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The sockets in the user's directories.
fn sockets() -> Vec<PathBuf> {
    let mut list: Vec<PathBuf> = directories()
        .iter()
        .filter_map(|directory| fs::read_dir(directory).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "sock"))
        .collect();
    list.sort();
    list
}

/// All programs that the arguments mean; all that serve when they name none.
pub(crate) fn all(target: &Target) -> Result<Vec<Client>, Failure> {
    if let Some(path) = &target.socket {
        return Ok(vec![Client::connect(path)?]);
    }
    // A socket at which nobody answers belongs to a program that was killed, or to another user.
    let mut found: Vec<Client> =
        sockets().iter().filter_map(|path| Client::connect(path).ok()).collect();
    found.sort_by_key(|client| client.program.pid);
    let Some(wanted) = &target.program else { return Ok(found) };
    let titles: Vec<String> = found.iter().map(Client::title).collect();
    found.retain(|client| {
        wanted.parse() == Ok(client.program.pid) || name(&client.program.program) == wanted
    });
    if found.is_empty() {
        let which = if titles.is_empty() {
            "no program serves".to_string()
        } else {
            format!("those that serve are {}", titles.join(", "))
        };
        return Err(Failure::Program(format!("no program {wanted:?} serves: {which}")));
    }
    Ok(found)
}

/// The one program that the arguments mean.
pub(crate) fn one(target: &Target) -> Result<Client, Failure> {
    let mut found = all(target)?;
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => {
            let places: Vec<String> =
                directories().iter().map(|path| path.display().to_string()).collect();
            Err(Failure::Program(format!(
                "no program serves in {}; a program serves when it calls \
                 immediate::control::serve()",
                places.join(" or ")
            )))
        }
        _ => {
            let titles: Vec<String> = found.iter().map(Client::title).collect();
            Err(Failure::Arguments(format!(
                "several programs serve ({}); name one with --program",
                titles.join(", ")
            )))
        }
    }
}
