//! Scenarios that need a process of their own: one that starts with one thread, or that may die.
//!
//! The test program runs itself again with a scenario's name in the environment. A constructor
//! that stands behind ours in `.init_array` carries the scenario out and ends the process, before
//! the test harness makes its threads. Where the kernel cannot run the program itself, the
//! environment variable `IMMEDIATE_TEST_RUNNER` holds the words of the command that does.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SCENARIO: &str = "IMMEDIATE_TEST_SCENARIO";
/// The longest that a scenario may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// Declares the scenarios of a test program: functions without arguments.
#[macro_export]
macro_rules! scenarios {
    ($($name:ident),+ $(,)?) => {
        #[used]
        #[unsafe(link_section = ".init_array")]
        static SCENARIOS: extern "C" fn() = {
            extern "C" fn start() {
                $crate::child::start(&[$((stringify!($name), $name as fn())),+]);
            }
            start
        };
    };
}

/// How a scenario ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit status, if it exited.
    pub code: Option<i32>,
    /// The signal that killed it, if one did.
    pub signal: Option<i32>,
    /// What it printed.
    pub out: String,
    /// What it reported.
    pub err: String,
}

/// Carries out the scenario that the environment names, if any; does not return then.
pub fn start(scenarios: &[(&str, fn())]) {
    let Ok(asked) = std::env::var(SCENARIO) else { return };
    let Some((_, scenario)) = scenarios.iter().find(|(name, _)| *name == asked) else {
        eprintln!("no scenario {asked}");
        std::process::exit(2);
    };
    let code = if std::panic::catch_unwind(scenario).is_ok() { 0 } else { 101 };
    std::process::exit(code);
}

/// The command that runs this program again.
///
/// # Panics
///
/// If the path of the program is not known.
#[must_use]
pub fn again() -> Command {
    let program = std::env::current_exe().expect("the path of this program");
    let runner = std::env::var("IMMEDIATE_TEST_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace();
    match words.next() {
        None => Command::new(program),
        Some(emulator) => {
            let mut command = Command::new(emulator);
            command.args(words).arg(program);
            command
        }
    }
}

/// Runs a scenario of this test program to its end, with additions to the environment.
///
/// # Panics
///
/// If it does not end in time; it is killed first.
#[must_use]
pub fn run(scenario: &str, environment: &[(&str, &str)]) -> Ended {
    let mut child = again()
        .env(SCENARIO, scenario)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("this program runs again");
    let out = collect(child.stdout.take().expect("piped"));
    let err = collect(child.stderr.take().expect("piped"));
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait().expect("the child is ours") {
            Some(status) => break status,
            None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
            None => {
                child.kill().expect("the child is ours");
                child.wait().expect("the child is ours");
                let (out, err) = (out.join().expect("reader"), err.join().expect("reader"));
                panic!("{scenario} did not end\n{out}{err}");
            }
        }
    };
    let (out, err) = (out.join().expect("reader"), err.join().expect("reader"));
    Ended { code: status.code(), signal: status.signal(), out, err }
}

/// Runs a scenario and shows what it printed.
///
/// # Panics
///
/// If the scenario does, or is killed.
pub fn succeed(scenario: &str, environment: &[(&str, &str)]) {
    let ended = run(scenario, environment);
    print!("{}", ended.out);
    assert_eq!(ended.code, Some(0), "{scenario} {environment:?}: {ended:#?}");
}

fn collect(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
