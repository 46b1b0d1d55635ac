//! `top` in a pseudo-terminal, its screen read back from what it draws.

mod support;

use std::io::{Read, Write};
use std::num::NonZero;
use std::sync::{Arc, Mutex};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use support::{IMMEDIATE, Place, wait_for};

const SIZE: PtySize = PtySize { rows: 14, cols: 130, pixel_width: 0, pixel_height: 0 };

struct Screen {
    parser: Arc<Mutex<vt100::Parser>>,
    keys: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    terminal: Box<dyn MasterPty + Send>,
}

impl Screen {
    fn start(place: &Place, arguments: &[&str]) -> Self {
        let pair = native_pty_system().openpty(SIZE).expect("a pseudo-terminal");
        let mut command = CommandBuilder::new(IMMEDIATE);
        command.args(arguments);
        command.env("XDG_RUNTIME_DIR", place.path());
        command.env("TERM", "xterm-256color");
        let child = pair.slave.spawn_command(command).expect("it starts");
        let mut output = pair.master.try_clone_reader().expect("a reader");
        let keys = pair.master.take_writer().expect("a writer");
        let [rows, columns] = [SIZE.rows, SIZE.cols].map(|one| NonZero::new(one).expect("not 0"));
        let parser = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let screen = Arc::clone(&parser);
        // Ends with the command, whose end closes the terminal.
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                screen.lock().expect("no panic").process(&bytes[..count]);
            }
        });
        Screen { parser, keys, child, terminal: pair.master }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("it reads");
    }

    fn text(&self) -> String {
        self.parser.lock().expect("no panic").screen().contents()
    }

    /// Waits for a screen of which `is` holds.
    #[track_caller]
    fn shows(&self, what: &str, is: impl Fn(&str) -> bool) -> String {
        wait_for(what, || Some(self.text()).filter(|text| is(text)))
    }

    fn row(&self, part: &str) -> Option<String> {
        self.text().lines().find(|line| line.contains(part)).map(ToString::to_string)
    }

    /// The row that is marked.
    fn marked(&self) -> Option<String> {
        let parser = self.parser.lock().expect("no panic");
        let screen = parser.screen();
        let is_marked = |row: u16| screen.cell(row, 0).is_some_and(vt100::Cell::inverse);
        let row = (0..SIZE.rows).find(|row| is_marked(*row))?;
        screen.rows(0, SIZE.cols).nth(row.into())
    }

    #[track_caller]
    fn marks(&self, name: &str) {
        wait_for(name, || self.marked().filter(|row| row.starts_with(name)));
    }

    fn end(&mut self) -> u32 {
        let status = wait_for("its end", || self.child.try_wait().expect("ours"));
        status.exit_code()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn values_are_live_and_set_by_keys() {
    let place = Place::new();
    let server = place.start("server", &[]);
    let mut raw = server.connect();
    let mut screen = Screen::start(&place, &["top", "--every", "20ms"]);
    let first = screen.shows("the table", |text| text.contains("server::TRACE"));
    assert!(first.starts_with(&format!("{} server  4 variables", server.pid())), "{first}");
    assert!(
        first.contains("NAME") && first.contains("VALUE") && first.contains("q quit"),
        "{first}"
    );
    screen.marks("server::LIMIT");

    // Live.
    raw.set(&[("server::LIMIT", "1234")], None);
    screen.shows("the new value", |text| text.contains("1234"));

    // Toggled by key.
    screen.press("G");
    screen.marks("server::TRACE");
    screen.press(" ");
    screen.shows("what was done", |text| text.contains("server::TRACE  false -> true"));
    assert_eq!(raw.value("server::TRACE"), "true");
    screen.press("r");
    screen.shows("the initial value", |text| text.contains("server::TRACE  true -> false"));
    assert_eq!(raw.value("server::TRACE"), "false");

    // Edited, wrong first.
    screen.press("g=70000");
    screen.shows("the line", |text| text.contains("server::LIMIT=70000"));
    screen.press("\r");
    screen.shows("the error", |text| text.contains("give a number from 0 to 65535"));
    assert_eq!(raw.value("server::LIMIT"), "1234");
    screen.press("=70000\x7f\x7f\r");
    screen.shows("what was done", |text| text.contains("server::LIMIT  1234 -> 700"));
    assert_eq!(raw.value("server::LIMIT"), "700");

    screen.press("q");
    assert_eq!(screen.end(), 0);
}

#[test]
fn counted_variable_shows_its_hits() {
    let place = Place::new();
    let server = place.start("server", &[]);
    let mut screen = Screen::start(&place, &["top", "--every", "20ms"]);
    let first = screen.shows("the table", |text| text.contains("server::TRACE"));
    assert!(!first.contains('█'), "{first}");
    screen.press("G ");
    wait_for("a bar", || screen.row("server::TRACE").filter(|row| row.contains('█')));
    assert!(screen.row("server::LIMIT").is_some_and(|row| !row.contains('█')), "{}", screen.text());
    let hits = || server.connect().variable("server::TRACE").hits.expect("counted");
    let before = hits();
    wait_for("more hits", || (hits() > before).then_some(()));
}

#[test]
fn search_narrows_the_table() {
    let place = Place::new();
    let _server = place.start("server", &[]);
    let mut screen = Screen::start(&place, &["top", "--every", "20ms"]);
    screen.shows("the table", |text| text.contains("server::TRACE"));
    screen.press("/mode");
    screen.shows("one row", |text| text.contains("4 variables, 1 shown") && text.contains("/mode"));
    assert!(screen.row("server::TRACE").is_none(), "{}", screen.text());
    screen.press("\r");
    screen.marks("server::MODE");
    // The terminal becomes small, and large again.
    screen.terminal.resize(PtySize { rows: 5, cols: 20, ..SIZE }).expect("a terminal");
    screen.terminal.resize(SIZE).expect("a terminal");
    screen.press("\x1b");
    screen.shows("all rows", |text| text.contains("server::TRACE"));
    screen.press("/none\r");
    screen.shows("no row", |text| text.contains("no variable matches"));
    screen.press(" \x03");
    assert_eq!(screen.end(), 0);
}

#[test]
fn program_that_ends_is_told() {
    let place = Place::new();
    let mut server = place.start("server", &[]);
    let mut screen = Screen::start(&place, &["top", "--every", "20ms"]);
    screen.shows("the table", |text| text.contains("server::TRACE"));
    server.end();
    assert_eq!(screen.end(), 1);
    screen.shows("why", |text| text.contains("does not answer"));
}

#[test]
fn colours_only_on_a_terminal() {
    let place = Place::new();
    let _server = place.start("server", &[]);
    let screen = Screen::start(&place, &["list"]);
    screen.shows("the list", |text| text.contains("server::TRACE"));
    let is_bold = || {
        let parser = screen.parser.lock().expect("no panic");
        parser.screen().cell(0, 0).is_some_and(vt100::Cell::bold)
    };
    assert!(is_bold(), "{}", screen.text());
    assert!(place.fail(&["top"], 2).contains("top needs a terminal"));
}
