//! A child process that runs contenders on request, and says how long each took.
//!
//! The parent writes a line `CONTENDER ITERATIONS`, the child answers with nanoseconds and whether
//! the work had its processors to itself. Only the work is timed, in the child.

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
    println!("{greeting}");
    for line in io::stdin().lock().lines() {
        let line = line?;
        let request = line.split_once(' ').and_then(|(name, iterations)| {
            let work = contenders.iter_mut().find(|(known, _)| *known == name)?;
            Some((&mut work.1, iterations.parse::<u64>().ok()?))
        });
        let Some((work, iterations)) = request else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, line));
        };
        let start = Instant::now();
        let is_whole = work(iterations);
        let elapsed = start.elapsed();
        println!("{} {}", elapsed.as_nanos(), if is_whole { "whole" } else { "disturbed" });
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
        let mut worker = Worker { child, requests, answers, greeting: String::new(), gave_up: 0 };
        worker.greeting = worker.answer();
        worker
    }

    /// This very program in another role.
    #[must_use]
    pub fn again(role: &str, environment: &[(&str, &str)]) -> Self {
        let own = std::env::current_exe().expect("a running program has a path");
        Worker::start(&own, role, environment)
    }

    /// What it said of itself.
    #[must_use]
    pub fn greeting(&self) -> &str {
        &self.greeting
    }

    /// How long so many iterations of a contender take. On a busy machine a run that was disturbed
    /// is repeated, [`PATIENCE`] times at most.
    ///
    /// # Panics
    ///
    /// When the child has ended.
    pub fn time(&mut self, contender: &str, iterations: u64) -> Duration {
        let mut tries = 0;
        loop {
            let requests = self.requests.as_mut().expect("open until dropped");
            writeln!(requests, "{contender} {iterations}").expect("the child reads its requests");
            let answer = self.answer();
            let (time, state) = answer.split_once(' ').expect("the child answers with two words");
            tries += 1;
            if state == "whole" || tries == PATIENCE {
                self.gave_up += u64::from(state != "whole");
                return Duration::from_nanos(time.parse().expect("the first is a number"));
            }
        }
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
