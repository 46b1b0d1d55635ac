//! The endpoint of a running program: who may connect, what a client cannot do to others, and what
//! becomes of the socket.

mod support;

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;

use immediate::control::{Answer, FaultKind, MAX_CLIENTS, MAX_REQUEST, Request, VERSION};
use support::{IMMEDIATE, Place, Raw, text, wait_for};

const LIMIT: &str = "server::LIMIT";

fn state(raw: &mut Raw) -> immediate::control::State {
    match raw.ask(&Request::Status {}) {
        Answer::Status(state) => state,
        other => panic!("{other:?}"),
    }
}

fn is_refused(path: &Path) -> bool {
    UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

#[test]
fn socket_is_private_and_goes_with_the_program() {
    let place = Place::new();
    let mut server = place.start("server", &[]);
    let socket = fs::symlink_metadata(&server.socket).expect("it is there");
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);
    let directory = fs::symlink_metadata(place.path().join("immediate")).expect("it is there");
    assert_eq!(directory.permissions().mode() & 0o777, 0o700);
    assert_eq!(place.sockets(), [server.socket.clone()], "nothing else is left there");
    match server.connect().ask(&Request::Hello {}) {
        Answer::Program(program) => {
            assert_eq!((program.pid, program.protocol), (server.pid(), VERSION));
        }
        other => panic!("{other:?}"),
    }
    server.end();
    assert!(place.sockets().is_empty());
}

#[test]
fn exit_without_destructors_removes_it() {
    let place = Place::new();
    let mut program = place.start("lifecycle", &["exit"]);
    assert_eq!(place.sockets().len(), 1);
    program.tell();
    program.end();
    assert!(place.sockets().is_empty());
}

#[test]
fn closing_brings_values_back_and_it_can_open_again() {
    let place = Place::new();
    let mut program = place.start("lifecycle", &["close"]);
    program.connect().set(&[("lifecycle::LEVEL", "9")], Some(3_600_000));
    program.tell();
    assert_eq!(program.told("level "), "1");
    assert_eq!(Path::new(&program.told("again at ")), program.socket);
    assert_eq!(program.connect().value("lifecycle::LEVEL"), "1");
    program.tell();
    program.end();
    assert!(place.sockets().is_empty());
}

#[test]
fn child_of_fork_does_not_serve_for_its_parent() {
    let place = Place::new();
    let mut parent = place.start("lifecycle", &["fork"]);
    let mut client = parent.connect();
    assert_eq!(client.value("lifecycle::LEVEL"), "1");
    parent.tell();
    let own = parent.told("child at ");
    // The child has dropped its copy of the guard, and serves at a place of its own.
    assert_ne!(Path::new(&own), parent.socket);
    assert_eq!(place.sockets().len(), 2);
    assert_eq!(client.value("lifecycle::LEVEL"), "1", "the parent goes on");
    Raw::connect(Path::new(&own)).set(&[("lifecycle::LEVEL", "3")], None);
    assert_eq!(client.value("lifecycle::LEVEL"), "1", "they are two programs now");
    // Were a descriptor still open in the child, the client would wait for ever, and a new one too.
    let stdin = parent.child.stdin.take();
    parent.kill();
    assert_eq!(client.line(), None);
    assert!(is_refused(&parent.socket));
    assert_eq!(Raw::connect(Path::new(&own)).value("lifecycle::LEVEL"), "3");
    drop(stdin);
    wait_for("the child's end", || (place.sockets() == [parent.socket.clone()]).then_some(()));
}

#[test]
fn sockets_of_killed_programs_are_removed() {
    let place = Place::new();
    let mut killed = place.start("server", &[]);
    killed.kill();
    assert_eq!(place.sockets(), [killed.socket.clone()]);
    assert!(place.fail(&["list"], 3).contains("no program serves"));
    let server = place.start("server", &[]);
    assert_eq!(place.sockets(), std::slice::from_ref(&server.socket));
}

#[test]
fn directory_of_somebody_else_is_not_used() {
    let place = Place::new();
    let directory = place.path().join("immediate");
    fs::create_dir(&directory).expect("new");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).expect("ours");
    let mut server = place.start("server", &[]);
    let own = fs::metadata(place.path()).expect("ours").uid();
    assert!(server.socket.starts_with(format!("/tmp/immediate-{own}")), "{:?}", server.socket);
    assert_eq!(place.succeed(&["--program", &server.pid().to_string(), "get", LIMIT]), "4096\n");
    server.end();
}

#[test]
fn other_users_are_refused() {
    let place = Place::new();
    let server = place.start("server", &[]);
    if fs::metadata(place.path()).expect("ours").uid() != 0 {
        println!("skipped: only root can become another user");
        return;
    }
    // Everything is opened, so that nothing but the credentials is in the way.
    let directory = place.path().join("immediate");
    for path in [place.path(), &directory, &server.socket] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("ours");
    }
    let command = place.path().join("command");
    fs::copy(IMMEDIATE, &command).expect("a copy that anybody can run");
    let mut other = std::process::Command::new(command);
    other.arg("--socket").arg(&server.socket).args(["set", "server::LIMIT=1"]);
    let output = other.uid(65534).gid(65534).output().expect("it starts");
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{err}");
    assert!(err.contains("user 65534 may not operate this program"), "{err}");
    assert_eq!(server.connect().value(LIMIT), "4096");
}

#[test]
fn half_lines_and_silence_keep_nobody_waiting() {
    let place = Place::new();
    let server = place.start("server", &[]);
    let mut silent: Vec<Raw> = (0..MAX_CLIENTS + 8).map(|_| server.connect()).collect();
    let mut closed = 0;
    for one in &mut silent {
        // The first have been closed already, for those that came after them.
        closed += usize::from(one.0.get_mut().write_all(b"{\"do\":").is_err());
    }
    let mut ours = server.connect();
    ours.set(&[(LIMIT, "77")], None);
    assert_eq!(ours.value(LIMIT), "77");
    let state = state(&mut ours);
    assert!(state.clients <= MAX_CLIENTS, "{state:?}");
    println!("{closed} were closed before they sent");
}

#[test]
fn answers_that_are_not_taken_are_not_piled_up() {
    let place = Place::new();
    let server = place.start("server", &[]);
    let mut greedy = server.connect();
    let stream = greedy.0.get_mut();
    stream.set_nonblocking(true).expect("a socket");
    let mut sent = 0;
    let is_full = wait_for("the socket to be full", || {
        match stream.write(b"{\"do\":\"list\"}\n{\"do\":\"status\"}\n") {
            Ok(count) => {
                sent += count;
                assert!(sent < 64 << 20, "requests are taken for which no answer was");
                None
            }
            Err(error) => Some(error.kind() == ErrorKind::WouldBlock),
        }
    });
    assert!(is_full);
    assert_eq!(server.connect().value(LIMIT), "4096", "nobody else is kept waiting");
}

#[test]
fn requests_that_are_none() {
    let place = Place::new();
    let server = place.start("server", &[]);
    let mut raw = server.connect();
    let names: Vec<String> = (0..300).map(|number| format!("n{number}")).collect();
    for (line, part) in [
        ("", "this is no request"),
        ("hello", "this is no request"),
        ("[]", "this is no request"),
        ("{\"do\":\"dance\"}", "unknown variant `dance`, expected one of `hello`"),
        ("{\"do\":\"get\",\"name\":\"x\"}", "unknown field `name`, expected `names`"),
        ("{\"do\":\"get\",\"names\":[]}", "names no variable"),
        (&format!("{{\"do\":\"get\",\"names\":{names:?}}}"), "name at most 256"),
        ("{\"do\":\"set\",\"values\":[[\"a\"]]}", "this is no request"),
        ("{\"do\":\"set\",\"values\":[[\"server::LIMIT\",\"1\"]],\"for_ms\":-1}", "no request"),
        (
            "{\"do\":\"set\",\"values\":[[\"server::LIMIT\",\"1\"]],\"for_ms\":18446744073709551615}",
            "for_ms is at most 31536000000, a year",
        ),
    ] {
        let fault = raw.fault(line);
        assert_eq!(fault.kind, FaultKind::BadRequest, "{line}: {fault:?}");
        assert!(fault.message.contains(part), "{line}: {fault:?}");
        assert!(!fault.message.contains('\n'), "one line: {fault:?}");
    }
    raw.send(b"\xff\xfe\n");
    assert!(raw.line().expect("an answer").contains("bad_request"));
    // Several at once, and in pieces.
    raw.send(b"{\"do\":\"hello\"}\r\n{\"do\":\"hello\"}\n{\"do\":");
    raw.send(b"\"hello\"}\n");
    for _ in 0..3 {
        assert!(raw.line().expect("an answer").starts_with("{\"ok\":{\"program\":"));
    }
    assert_eq!(raw.value(LIMIT), "4096", "the connection goes on");
    let _ = raw.0.get_mut().write_all(&vec![b'x'; MAX_REQUEST + 1000]);
    assert!(raw.line().expect("an answer").contains("longer than 65536 bytes"));
    assert_eq!(raw.line(), None, "closed: where the next request begins is not known");
}

#[test]
fn batch_is_set_whole_or_not_at_all() {
    let place = Place::new();
    let server = place.start("server", &[]);
    let mut raw = server.connect();
    let set = |values: &str| format!("{{\"do\":\"set\",\"values\":{values}}}");
    let fault = raw.fault(&set("[[\"server::LIMIT\",\"1\"],[\"server::TRACE\",\"maybe\"]]"));
    assert_eq!(fault.kind, FaultKind::BadValue);
    assert_eq!(fault.item.as_deref(), Some("server::TRACE"));
    let fault = raw.fault(&set("[[\"server::LIMIT\",\"1\"],[\"server::trace\",\"on\"]]"));
    assert_eq!(fault.kind, FaultKind::UnknownName);
    assert_eq!(fault.valid, ["server::TRACE"]);
    assert_eq!(raw.value(LIMIT), "4096");
    assert_eq!(raw.variable(LIMIT).updates, 0);
    raw.set(&[(LIMIT, "1"), ("server::TRACE", "on"), (LIMIT, "2")], None);
    assert_eq!((raw.value(LIMIT), raw.variable(LIMIT).updates), ("2".into(), 1));
}

#[test]
fn old_value_comes_back_although_the_client_is_gone() {
    let place = Place::new();
    let server = place.start("server", &[]);
    let mut gone = server.connect();
    gone.set(&[(LIMIT, "7"), ("server::TRACE", "on")], Some(50));
    drop(gone);
    let mut raw = server.connect();
    wait_for("the old value", || (raw.value(LIMIT) == "4096").then_some(()));
    assert_eq!(raw.value("server::TRACE"), "false", "together");
    assert_eq!(state(&mut raw).temporary, 0);
}

#[test]
fn later_sets_decide_what_comes_back() {
    let place = Place::new();
    let server = place.start("server", &[]);
    let mut raw = server.connect();
    // A set without a time stays.
    raw.set(&[(LIMIT, "7")], Some(3_600_000));
    assert!(raw.variable(LIMIT).restored_in_ms.is_some_and(|left| left > 3_000_000));
    raw.set(&[(LIMIT, "8")], None);
    assert_eq!(raw.variable(LIMIT).restored_in_ms, None);
    // A second one with a time comes back to what was before the first.
    raw.set(&[(LIMIT, "9")], Some(3_600_000));
    raw.set(&[(LIMIT, "10")], Some(1));
    wait_for("the first old value", || (raw.value(LIMIT) == "8").then_some(()));
    assert_eq!(state(&mut raw).temporary, 0);
}

#[test]
fn signal_flips_its_variable() {
    let place = Place::new();
    let server = place.start("server", &[]);
    let mut raw = server.connect();
    let pid = rustix::process::Pid::from_raw(server.pid().cast_signed()).expect("a pid");
    for expected in ["true", "false"] {
        rustix::process::kill_process(pid, rustix::process::Signal::USR1).expect("it runs");
        wait_for("the toggle", || (raw.value("server::PAUSED") == expected).then_some(()));
    }
}

#[test]
fn threads_leave_the_programs_signals_alone_but_not_those_of_a_set() {
    let place = Place::new();
    let server = place.start("server", &[]);
    // It answers, so the thread has begun.
    assert_eq!(server.connect().value(LIMIT), "4096");
    let tasks = fs::read_dir(format!("/proc/{}/task", server.pid())).expect("it runs");
    let status: Vec<String> = tasks
        .map(|task| fs::read_to_string(task.expect("task").path().join("status")).expect("status"))
        .filter(|status| status.starts_with("Name:\timmediate\n"))
        .collect();
    assert_eq!(status.len(), 1);
    let mask = status[0].lines().find_map(|line| line.strip_prefix("SigBlk:\t")).expect("a mask");
    let mask = u64::from_str_radix(mask, 16).expect("hexadecimal");
    let blocks = |signal: i32| mask >> (signal - 1) & 1 == 1;
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGUSR1, libc::SIGCHLD, libc::SIGPIPE] {
        assert!(blocks(signal), "{signal} in {mask:x}");
    }
    for signal in [libc::SIGTRAP, libc::SIGSEGV, libc::SIGRTMIN(), libc::SIGRTMAX()] {
        assert!(!blocks(signal), "{signal} in {mask:x}");
    }
}
