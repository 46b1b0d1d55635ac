//! Example programs as child processes, and the real command against them.

#![allow(dead_code, reason = "each test program uses its part")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use immediate::control::{Answer, Fault, Reply, Request, VariableState};

/// The longest that anything here is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const IMMEDIATE: &str = env!("CARGO_BIN_EXE_immediate");

/// Builds the examples, which Cargo does not when it is asked for one test program, and gives the
/// directory in which they lie.
fn examples() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let profile = Path::new(IMMEDIATE).parent().expect("a file has a directory");
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--examples", "--manifest-path"]);
        build.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
        build.arg("--target-dir").arg(profile.parent().expect("the target directory"));
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        assert!(build.status().expect("cargo starts").success(), "the examples do not build");
        profile.join("examples")
    })
}

/// The path of an example.
pub(crate) fn example(name: &str) -> PathBuf {
    examples().join(name)
}

/// Waits until `found` gives something.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A directory for sockets, of this test alone.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        // Short: the path of a socket has 108 bytes.
        Place(tempfile::Builder::new().prefix("imm").tempdir_in("/tmp").expect("/tmp"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The sockets in it.
    pub(crate) fn sockets(&self) -> Vec<PathBuf> {
        let Ok(list) = std::fs::read_dir(self.path().join("immediate")) else { return Vec::new() };
        let mut list: Vec<PathBuf> = list.map(|entry| entry.expect("entry").path()).collect();
        list.sort();
        list
    }

    /// Starts an example that serves here.
    pub(crate) fn start(&self, example: &str, arguments: &[&str]) -> Program {
        let mut child = Command::new(self::example(example))
            .args(arguments)
            .env("XDG_RUNTIME_DIR", self.path())
            .env_remove("IMMEDIATE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the example starts");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let mut program = Program { child, out, socket: PathBuf::new() };
        program.socket = program.told("serving at ").into();
        program
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(IMMEDIATE);
        command.args(arguments).env("XDG_RUNTIME_DIR", self.path()).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the command starts")
    }

    /// What the command prints when it succeeds.
    #[track_caller]
    pub(crate) fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{arguments:?}\n{out}{err}");
        assert_eq!(err, "", "{arguments:?}");
        out
    }

    /// The one line that it prints when it does not, with the status that it must have.
    #[track_caller]
    pub(crate) fn fail(&self, arguments: &[&str], code: i32) -> String {
        let output = self.run(arguments);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{out}{err}");
        assert_eq!(out, "", "{arguments:?}");
        assert_eq!(err.lines().count(), 1, "{err}");
        assert!(!err.contains('\x1b'), "colours in a pipe: {err:?}");
        err
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the output is UTF-8")
}

/// An example that runs.
pub(crate) struct Program {
    pub(crate) child: Child,
    out: BufReader<ChildStdout>,
    pub(crate) socket: PathBuf,
}

impl Program {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The rest of its next line, which begins with `head`.
    #[track_caller]
    pub(crate) fn told(&mut self, head: &str) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("a line");
        line.trim_end().strip_prefix(head).unwrap_or_else(|| panic!("{head}: {line:?}")).into()
    }

    /// Gives it a line.
    pub(crate) fn tell(&mut self) {
        self.child.stdin.as_mut().expect("piped").write_all(b"\n").expect("it reads");
    }

    /// Lets it end.
    pub(crate) fn end(&mut self) {
        drop(self.child.stdin.take());
        let status = self.child.wait().expect("it is our child");
        assert!(status.success(), "{status}");
    }

    /// Kills it as the kernel would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it is our child");
        self.child.wait().expect("it is our child");
    }

    pub(crate) fn connect(&self) -> Raw {
        Raw::connect(&self.socket)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection of our own.
pub(crate) struct Raw(pub(crate) BufReader<UnixStream>);

impl Raw {
    pub(crate) fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).expect("it serves");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Raw(BufReader::new(stream))
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).expect("it reads");
    }

    /// Its next line, or `None` at the end.
    pub(crate) fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line).expect("it answers in time") {
            0 => None,
            _ => Some(line),
        }
    }

    pub(crate) fn reply(&mut self, line: &str) -> Reply {
        self.send(line.as_bytes());
        self.send(b"\n");
        serde_json::from_str(&self.line().expect("an answer")).expect("a reply")
    }

    #[track_caller]
    pub(crate) fn ask(&mut self, request: &Request) -> Answer {
        match self.reply(&serde_json::to_string(request).expect("a request")) {
            Reply::Ok(answer) => answer,
            Reply::Error(fault) => panic!("{request:?}: {fault:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn fault(&mut self, line: &str) -> Fault {
        match self.reply(line) {
            Reply::Error(fault) => fault,
            Reply::Ok(answer) => panic!("{line}: {answer:?}"),
        }
    }

    pub(crate) fn variable(&mut self, name: &str) -> VariableState {
        match self.ask(&Request::Get { names: vec![name.into()] }) {
            Answer::Variables { mut variables, .. } => variables.remove(0),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn value(&mut self, name: &str) -> String {
        self.variable(name).value
    }

    pub(crate) fn set(&mut self, values: &[(&str, &str)], for_ms: Option<u64>) {
        let values = values.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        self.ask(&Request::Set { values: values.collect(), for_ms });
    }
}
