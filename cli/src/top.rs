//! `top`: live values on the whole terminal.

mod keys;
mod screen;
mod state;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use immediate::control::{Answer, Request};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use crate::arguments::Target;
use crate::client::{self, Client};
use crate::failure::Failure;
use keys::Step;
use state::View;

pub(crate) fn top(target: &Target, patterns: &[String], every: Duration) -> Result<(), Failure> {
    if !std::io::stdout().is_terminal() {
        return Err(Failure::Arguments(
            "top needs a terminal; use `immediate watch` or `immediate list`".into(),
        ));
    }
    let mut client = client::one(target)?;
    let mut terminal = ratatui::try_init()
        .map_err(|error| Failure::Arguments(format!("this terminal cannot be used: {error}")))?;
    let ended = run(&mut terminal, &mut client, patterns, every);
    ratatui::restore();
    ended
}

fn run(
    terminal: &mut DefaultTerminal,
    client: &mut Client,
    patterns: &[String],
    every: Duration,
) -> Result<(), Failure> {
    let terminal_failed =
        |error: std::io::Error| Failure::Arguments(format!("the terminal failed: {error}"));
    let mut view = View::new(client.title());
    let mut next = Instant::now();
    loop {
        if Instant::now() >= next {
            let variables = match client.variables(patterns) {
                Ok(variables) => variables,
                Err(Failure::Program(text)) => return Err(Failure::Lost(text)),
                Err(other) => return Err(other),
            };
            view.update(variables);
            next = Instant::now() + every;
        }
        terminal.draw(|frame| screen::draw(frame, &mut view)).map_err(terminal_failed)?;
        if !event::poll(next.saturating_duration_since(Instant::now())).map_err(terminal_failed)? {
            continue;
        }
        let Event::Key(key) = event::read().map_err(terminal_failed)? else { continue };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        match keys::press(&mut view, key) {
            Step::Nothing => {}
            Step::Quit => return Ok(()),
            Step::Set { name, value } => {
                let request = Request::Set { values: vec![(name, value)], for_ms: None };
                view.message = Some(match client.ask(&request) {
                    Ok(Answer::Set(state)) => {
                        let told = state
                            .set
                            .iter()
                            .map(|one| format!("{}  {} -> {}", one.name, one.old, one.new));
                        told.collect::<Vec<_>>().join(", ")
                    }
                    Ok(_) => return Err(client.unexpected()),
                    Err(Failure::Program(text)) => return Err(Failure::Lost(text)),
                    Err(failure) => failure.message(),
                });
                // What was set is shown at once.
                next = Instant::now();
            }
        }
    }
}
