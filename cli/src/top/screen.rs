//! From what is known to what is drawn.

use immediate::control::VariableState;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState};

use super::keys::HELP;
use super::state::{HISTORY, Mode, View};
use crate::output::plain;

/// Eight heights of a bar.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

pub(super) fn draw(frame: &mut Frame<'_>, view: &mut View) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(2), Constraint::Length(2)])
            .areas(frame.area());
    view.page = usize::from(body.height.saturating_sub(1));
    let shown = view.shown().count();
    let mut title = format!("{}  {} variables", plain(&view.title), view.total());
    if shown != view.total() {
        title = format!("{title}, {shown} shown");
    }
    frame.render_widget(Paragraph::new(title).bold(), head);

    let rows: Vec<Row<'_>> = view.shown().map(|one| row(view, one)).collect();
    let widest = |cell: fn(&VariableState) -> usize, least: usize| {
        let widths = view.shown().map(cell);
        Constraint::Length(widths.max().unwrap_or(0).clamp(least, 48) as u16)
    };
    let widths = [
        widest(|one| one.name.chars().count(), 8),
        widest(|one| one.value.chars().count(), 8),
        widest(|one| one.initial.chars().count(), 7),
        Constraint::Length(7),
        Constraint::Length(5),
        Constraint::Length(HISTORY as u16),
        Constraint::Fill(1),
    ];
    let heads = ["NAME", "VALUE", "INITIAL", "UPDATES", "SITES", "HITS", "DOC"];
    let table = Table::new(rows, widths)
        .header(Row::new(heads).style(Style::new().add_modifier(Modifier::UNDERLINED)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut selected = TableState::new().with_selected((shown > 0).then_some(view.selected));
    frame.render_stateful_widget(table, body, &mut selected);
    frame.render_widget(Paragraph::new(vec![last_line(view), Line::from(HELP).dim()]), foot);
}

fn row<'a>(view: &View, one: &VariableState) -> Row<'a> {
    let history = view.history(one);
    let mut value = Span::from(plain(&one.value));
    if history.is_some_and(|history| history.has_changed) {
        value = value.yellow().bold();
    } else if one.value != one.initial {
        value = value.green();
    }
    let bars: String =
        history.map(|history| bars(history.rates.iter().copied())).unwrap_or_default();
    Row::new([
        Cell::from(plain(&one.name)),
        Cell::from(value),
        Cell::from(plain(&one.initial)),
        Cell::from(one.updates.to_string()),
        Cell::from(one.sites.to_string()),
        Cell::from(bars),
        Cell::from(plain(&one.doc)),
    ])
}

/// A bar a number, the highest being the largest of them.
fn bars(rates: impl Iterator<Item = u64> + Clone) -> String {
    let most = rates.clone().max().unwrap_or(0).max(1);
    let height =
        |rate: u64| (u128::from(rate) * (BARS.len() as u128 - 1)).div_ceil(u128::from(most));
    rates.map(|rate| BARS[height(rate) as usize]).collect()
}

fn last_line(view: &View) -> Line<'static> {
    match &view.mode {
        Mode::Search => Line::from(format!("/{}", view.search)),
        Mode::Edit { name, value } => Line::from(format!("{}={value}", plain(name))),
        Mode::Browse => match (&view.message, view.current()) {
            (Some(message), _) => Line::from(plain(message)),
            (None, Some(one)) => Line::from(format!("{}  {}", one.type_name, one.place)).dim(),
            (None, None) => Line::from("no variable matches").dim(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::bars;

    #[test]
    fn bars_are_relative_to_the_highest() {
        assert_eq!(bars([0, 1, 7, 14].into_iter()), "▁▂▅█");
        assert_eq!(bars([0, 0].into_iter()), "▁▁");
        assert_eq!(bars([u64::MAX].into_iter()), "█");
        assert_eq!(bars(std::iter::empty()), "");
    }
}
