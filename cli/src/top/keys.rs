//! What keys do.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::state::{Mode, View};

/// What is to be done after a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    Quit,
    Set { name: String, value: String },
}

/// The keys, for the last line of the screen.
pub(super) const HELP: &str = "space toggle  = edit  r initial value  / search  j k move  q quit";

pub(super) fn press(view: &mut View, key: KeyEvent) -> Step {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Step::Quit,
            _ => Step::Nothing,
        };
    }
    match std::mem::replace(&mut view.mode, Mode::Browse) {
        Mode::Browse => browse(view, key.code),
        Mode::Search => {
            search(view, key.code);
            Step::Nothing
        }
        Mode::Edit { name, value } => edit(view, key.code, name, value),
    }
}

fn browse(view: &mut View, key: KeyCode) -> Step {
    view.message = None;
    let page = view.page.max(1);
    match key {
        KeyCode::Char('q') => return Step::Quit,
        // Leaves a search first.
        KeyCode::Esc if view.search.is_empty() => return Step::Quit,
        KeyCode::Esc => view.search.clear(),
        KeyCode::Down | KeyCode::Char('j') => view.select(view.selected + 1),
        KeyCode::Up | KeyCode::Char('k') => view.select(view.selected.saturating_sub(1)),
        KeyCode::PageDown => view.select(view.selected + page),
        KeyCode::PageUp => view.select(view.selected.saturating_sub(page)),
        KeyCode::Home | KeyCode::Char('g') => view.select(0),
        KeyCode::End | KeyCode::Char('G') => view.select(usize::MAX),
        KeyCode::Char('/') => view.mode = Mode::Search,
        KeyCode::Char(' ') | KeyCode::Enter | KeyCode::Char('=') | KeyCode::Char('r') => {
            return change(view, key);
        }
        _ => {}
    }
    Step::Nothing
}

fn change(view: &mut View, key: KeyCode) -> Step {
    let Some(one) = view.current() else { return Step::Nothing };
    let name = one.name.clone();
    let value = match (key, one.value.as_str()) {
        (KeyCode::Char('r'), _) => one.initial.clone(),
        (KeyCode::Char(' ') | KeyCode::Enter, "true") if one.type_name == "bool" => "false".into(),
        (KeyCode::Char(' ') | KeyCode::Enter, _) if one.type_name == "bool" => "true".into(),
        _ => {
            view.mode = Mode::Edit { name, value: String::new() };
            return Step::Nothing;
        }
    };
    Step::Set { name, value }
}

fn search(view: &mut View, key: KeyCode) {
    match key {
        KeyCode::Enter => return,
        KeyCode::Esc => {
            view.search.clear();
            return;
        }
        KeyCode::Char(letter) => view.search.push(letter),
        KeyCode::Backspace => {
            view.search.pop();
        }
        _ => {}
    }
    view.mode = Mode::Search;
    view.select(0);
}

fn edit(view: &mut View, key: KeyCode, name: String, mut value: String) -> Step {
    match key {
        KeyCode::Enter => return Step::Set { name, value },
        KeyCode::Esc => return Step::Nothing,
        KeyCode::Char(letter) => value.push(letter),
        KeyCode::Backspace => {
            value.pop();
        }
        _ => {}
    }
    view.mode = Mode::Edit { name, value };
    Step::Nothing
}
