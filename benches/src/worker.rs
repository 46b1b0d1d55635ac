//! A child process that runs contenders on request, and says how long each took.
//!
//! The parent writes a line, the child answers with one. For [`serve`] the line is `CONTENDER
//! ITERATIONS`, and the answer is nanoseconds and whether the work had its processors to itself. Only
//! the work is timed, in the child.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const ROLE: &str = "IMMEDIATE_BENCH_ROLE";

/// The role of this process, if it is a child that [`Worker::start`] made.
#[must_use]
pub fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// Work that can be asked for: so many iterations. It tells whether all threads that belong to it
/// had a processor meanwhile.
pub type Contender<'a> = (&'a str, &'a mut dyn FnMut(u64) -> bool);

/// Serves requests until the parent hangs up. `greeting` is one line that tells the parent what
/// this process is.
///
/// # Errors
///
/// Those of the pipes.
pub fn serve(greeting: &str, contenders: &mut [Contender<'_>]) -> io::Result<()> {
    answer(greeting, |words| {
        let [name, iterations] = words else { return None };
        let (_, work) = contenders.iter_mut().find(|(known, _)| known == name)?;
        let iterations = iterations.parse().ok()?;
        let start = Instant::now();
        let is_whole = work(iterations);
        let elapsed = start.elapsed();
        let state = if is_whole { "whole" } else { "disturbed" };
        Some(format!("{} {state}", elapsed.as_nanos()))
    })
}

/// Answers each request, given in words, with one line, until the parent hangs up.
///
/// # Errors
///
/// Those of the pipes, and a request that has no answer.
pub fn answer(greeting: &str, mut answer: impl FnMut(&[&str]) -> Option<String>) -> io::Result<()> {
    println!("{greeting}");
    for line in io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        match answer(&words) {
            Some(answer) => println!("{answer}"),
            None => return Err(io::Error::new(io::ErrorKind::InvalidInput, line)),
        }
    }
    Ok(())
}

/// A running child.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    greeting: String,
    patience: u32,
    gave_up: u64,
}

/// How often a disturbed run is repeated.
pub const PATIENCE: u32 = 200;

impl Worker {
    /// Starts `program` in a role, with these settings of the library in its environment.
    ///
    /// # Panics
    ///
    /// When it does not start: then there is nothing to measure.
    #[must_use]
    pub fn start(program: &Path, role: &str, environment: &[(&str, &str)]) -> Self {
        let mut child = Command::new(program)
            .env(ROLE, role)
            .env_remove("IMMEDIATE_PROTOCOL")
            .env_remove("IMMEDIATE_WRITER")
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{} does not start: {error}", program.display()));
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("piped above"));
        let mut worker = Worker {
            child,
            requests,
            answers,
            greeting: String::new(),
            patience: PATIENCE,
            gave_up: 0,
        };
        worker.greeting = worker.answer();
        worker
    }

    /// This very program in another role.
    #[must_use]
    pub fn again(role: &str, environment: &[(&str, &str)]) -> Self {
        let own = std::env::current_exe().expect("a running program has a path");
        Worker::start(&own, role, environment)
    }

    /// Repeats a disturbed run so many times at most.
    #[must_use]
    pub fn with_patience(mut self, patience: u32) -> Self {
        self.patience = patience;
        self
    }

    /// What it said of itself.
    #[must_use]
    pub fn greeting(&self) -> &str {
        &self.greeting
    }

    /// How long so many iterations of a contender take. On a busy machine a run that was disturbed
    /// is repeated, [`PATIENCE`] times at most or as often as [`Worker::with_patience`] said.
    ///
    /// # Panics
    ///
    /// When the child has ended.
    pub fn time(&mut self, contender: &str, iterations: u64) -> Duration {
        let mut tries = 0;
        loop {
            let answer = self.ask(&format!("{contender} {iterations}"));
            let (time, state) = answer.split_once(' ').expect("the child answers with two words");
            tries += 1;
            if state == "whole" || tries == self.patience {
                self.gave_up += u64::from(state != "whole");
                return Duration::from_nanos(time.parse().expect("the first is a number"));
            }
        }
    }

    /// The answer to a request, one line each.
    ///
    /// # Panics
    ///
    /// When the child has ended.
    pub fn ask(&mut self, request: &str) -> String {
        let requests = self.requests.as_mut().expect("open until dropped");
        writeln!(requests, "{request}").expect("the child reads its requests");
        self.answer()
    }

    /// The answer to a request, which is a number.
    ///
    /// # Panics
    ///
    /// When the child has ended, or answers something else.
    pub fn number(&mut self, request: &str) -> f64 {
        let answer = self.ask(request);
        answer.parse().unwrap_or_else(|_| panic!("{request:?} is answered with {answer:?}"))
    }

    /// How many times were taken although the run was disturbed.
    #[must_use]
    pub fn gave_up(&self) -> u64 {
        self.gave_up
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        let length = self.answers.read_line(&mut line).expect("the child answers");
        assert!(length > 0, "the child has ended: {:?}", self.child.wait());
        line.truncate(line.trim_end().len());
        line
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.requests = None;
        let _ = self.child.wait();
    }
}
