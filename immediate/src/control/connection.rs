//! One client: a line in, an answer out, and nothing that waits.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use super::protocol::{Fault, FaultKind, Reply};

/// The most bytes of a request, with its line end.
pub const MAX_REQUEST: usize = 64 * 1024;
/// Bytes that are read at once.
const CHUNK: usize = 8 * 1024;

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// For a request.
    Request,
    /// For the client to take its answer.
    Answer,
    /// For the client to close: what it still sends is thrown away, so that it can read the last
    /// answer.
    End,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: UnixStream,
    /// When it was last heard of, by the server's count.
    pub(super) heard: u64,
    input: Vec<u8>,
    /// Bytes of the input that hold no line end.
    searched: usize,
    output: Vec<u8>,
    sent: usize,
    /// Whether the answer in `output` is the last.
    ends: bool,
}

/// The client is gone, or cannot be talked to.
pub(super) struct Gone;

impl Connection {
    pub(super) fn new(stream: UnixStream, heard: u64) -> Self {
        Connection {
            stream,
            heard,
            input: Vec::new(),
            searched: 0,
            output: Vec::new(),
            sent: 0,
            ends: false,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        match (self.sent < self.output.len(), self.ends) {
            (true, _) => Phase::Answer,
            (false, true) => Phase::End,
            (false, false) => Phase::Request,
        }
    }

    /// Whether a request has been read that was not answered yet.
    pub(super) fn has_line(&mut self) -> bool {
        if self.phase() != Phase::Request {
            return false;
        }
        match self.input[self.searched..].iter().position(|byte| *byte == b'\n') {
            Some(_) => true,
            None => {
                self.searched = self.input.len();
                false
            }
        }
    }

    /// Does what the socket is ready for, once.
    pub(super) fn turn(&mut self, answer: impl FnOnce(&[u8]) -> Reply) -> Result<(), Gone> {
        match self.phase() {
            Phase::Answer => return self.write(),
            Phase::End => return self.discard(),
            Phase::Request => {}
        }
        if !self.has_line() {
            self.read()?;
        }
        if self.has_line() {
            let end = self.searched
                + self.input[self.searched..].iter().position(|byte| *byte == b'\n').ok_or(Gone)?;
            let line: Vec<u8> = self.input.drain(..=end).collect();
            self.searched = 0;
            if line.len() <= MAX_REQUEST {
                self.say(&answer(line.trim_ascii()));
                return self.write();
            }
        } else if self.input.len() < MAX_REQUEST {
            return Ok(());
        }
        self.end(Fault {
            kind: FaultKind::BadRequest,
            message: format!("the request is longer than {MAX_REQUEST} bytes; send smaller ones"),
            item: None,
            valid: Vec::new(),
        })
    }

    /// Says what is wrong, as the last thing.
    pub(super) fn end(&mut self, fault: Fault) -> Result<(), Gone> {
        self.input = Vec::new();
        self.searched = 0;
        self.ends = true;
        self.say(&Reply::Error(fault));
        self.write()
    }

    fn say(&mut self, reply: &Reply) {
        self.output.clear();
        self.sent = 0;
        // Text, numbers and lists: there is nothing in it that JSON could not hold.
        if serde_json::to_writer(&mut self.output, reply).is_ok() {
            self.output.push(b'\n');
        }
    }

    fn read(&mut self) -> Result<(), Gone> {
        let mut chunk = [0; CHUNK];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err(Gone),
            Ok(count) => {
                self.input.extend_from_slice(&chunk[..count]);
                Ok(())
            }
            Err(error) => later(&error),
        }
    }

    fn discard(&mut self) -> Result<(), Gone> {
        match self.stream.read(&mut [0; CHUNK]) {
            Ok(0) => Err(Gone),
            Ok(_) => Ok(()),
            Err(error) => later(&error),
        }
    }

    fn write(&mut self) -> Result<(), Gone> {
        while self.sent < self.output.len() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(0) => return Err(Gone),
                Ok(count) => self.sent += count,
                Err(error) => return later(&error),
            }
        }
        self.output = Vec::new();
        self.sent = 0;
        if self.ends && self.stream.shutdown(Shutdown::Write).is_err() {
            return Err(Gone);
        }
        Ok(())
    }
}

fn later(error: &io::Error) -> Result<(), Gone> {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(()),
        _ => Err(Gone),
    }
}
