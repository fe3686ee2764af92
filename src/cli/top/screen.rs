//! The board on a terminal, drawn anew with every look, until `q`, Esc or Ctrl-C.

use super::board::{Board, Section};
use crate::cli::failure::Failure;
use ratatui::{
    Frame,
    crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers},
    layout::{Constraint, Layout, Rect},
    style::{Style, Stylize},
    text::{Line, Span},
    widgets::{Block, Paragraph, Row, Table},
};
use std::{
    sync::mpsc::{Receiver, TryRecvError},
    time::Duration,
};

/// Between two looks at the keyboard.
const KEYS: Duration = Duration::from_millis(100);
/// Widest name of the head.
const NAMES: usize = 10;

/// What the one who looks at the node has to say.
pub(super) enum News {
    Board(Board),
    /// It does not answer; what was seen last stays.
    Away(String),
    /// It refuses: no more comes.
    Refused(Failure),
}

/// Shows what comes until the user has seen enough, or nothing more comes.
pub(super) fn show(news: &Receiver<News>) -> Result<(), Failure> {
    let trouble = |error: std::io::Error| Failure::here(format!("the terminal: {error}"));
    let mut terminal = ratatui::try_init().map_err(trouble)?;
    let shown = (|| {
        let (mut board, mut away) = (None, None);
        loop {
            match news.try_recv() {
                Ok(News::Board(newest)) => (board, away) = (Some(newest), None),
                Ok(News::Away(why)) => away = Some(why),
                Ok(News::Refused(failure)) => return Err(failure),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Ok(()),
            }
            terminal.draw(|frame| draw(frame, board.as_ref(), away.as_deref())).map_err(trouble)?;
            if event::poll(KEYS).map_err(trouble)? && ends(&event::read().map_err(trouble)?) {
                return Ok(());
            }
        }
    })();
    // Also when it could not be drawn: the user's terminal must be usable.
    ratatui::restore();
    shown
}

fn ends(event: &Event) -> bool {
    let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) = event else { return false };
    match code {
        KeyCode::Char('q') | KeyCode::Esc => true,
        KeyCode::Char('c') => modifiers.contains(KeyModifiers::CONTROL),
        _ => false,
    }
}

fn draw(frame: &mut Frame<'_>, board: Option<&Board>, away: Option<&str>) {
    let Some(board) = board else {
        let text = away.map_or("asking the node...".to_owned(), |why| format!("no answer, asking again: {why}"));
        return frame.render_widget(Paragraph::new(text), frame.area());
    };
    let head = u16::try_from(board.head.len()).unwrap_or(u16::MAX).saturating_add(2);
    let [top, lists, foot] =
        Layout::vertical([Constraint::Length(head), Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
    let lines: Vec<Line<'_>> = board.head.iter().map(|(name, value)| told(name, value)).collect();
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" campanile top ")), top);
    for (section, area) in board.sections.iter().zip(places(board, lists)) {
        frame.render_widget(list(section), area);
    }
    let last = match away {
        Some(why) => Line::from(format!("no answer, asking again: {why}")).red(),
        None => Line::from("q ends").dim(),
    };
    frame.render_widget(last, foot);
}

fn told<'a>(name: &'a str, value: &'a str) -> Line<'a> {
    let is_bad = value.starts_with("NOT ") || value.contains(" NOT READY");
    let value = if is_bad { Span::raw(value).red().bold() } else { Span::raw(value) };
    Line::from(vec![Span::raw(format!("{name:<NAMES$} ")).bold(), value])
}

/// Lists below each other, or two beside each other where the terminal is wide.
fn places(board: &Board, area: Rect) -> Vec<Rect> {
    const WIDE: u16 = 140;
    let rows =
        |section: &Section| Constraint::Fill(u16::try_from(section.rows.len()).unwrap_or(u16::MAX).saturating_add(3));
    if area.width < WIDE {
        return Layout::vertical(board.sections.iter().map(rows)).split(area).to_vec();
    }
    let lines = Layout::vertical(board.sections.chunks(2).map(|pair| rows(&pair[0]))).split(area);
    let halves = lines.iter().flat_map(|line| {
        let halves: [Rect; 2] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(*line);
        halves
    });
    halves.collect()
}

fn list(section: &Section) -> Table<'_> {
    let widths = section.widths().into_iter().map(|width| Constraint::Max(u16::try_from(width).unwrap_or(u16::MAX)));
    let rows = section.cells().into_iter().map(Row::new);
    Table::new(rows, widths)
        .header(Row::new(section.columns.iter().copied()).style(Style::new().bold()))
        .column_spacing(2)
        .block(Block::bordered().title(format!(" {} ", section.title)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use ratatui::{Terminal, backend::TestBackend};

    fn board() -> Board {
        let section =
            |title| Section { title, columns: vec!["POOL", "WAITING"], rows: vec![vec!["default".into(), 12.into()]] };
        Board {
            head: vec![("node", "0.1.0 NOT READY: the clock jumped".to_owned()), ("late", "p50 1 ms".to_owned())],
            sections: vec![section("pools"), section("tenants")],
        }
    }

    fn drawn(width: u16, away: Option<&str>) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, 20)).unwrap();
        terminal.draw(|frame| draw(frame, Some(&board()), away)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn a_narrow_terminal_has_the_lists_below_each_other_and_a_wide_one_beside() {
        let line_of = |text: &str, what: &str| text.lines().position(|line| line.contains(what)).unwrap();
        let narrow = drawn(80, None);
        assert!(narrow.contains("NOT READY: the clock jumped"), "{narrow}");
        assert!(narrow.contains("default") && narrow.contains("12"), "{narrow}");
        assert!(line_of(&narrow, " tenants ") > line_of(&narrow, " pools "), "{narrow}");
        let wide = drawn(160, None);
        assert_eq!(line_of(&wide, " tenants "), line_of(&wide, " pools "), "{wide}");
    }

    #[test]
    fn a_node_that_is_away_is_told_below_what_was_seen_last() {
        let shown = drawn(80, Some("connection refused"));
        assert!(shown.contains("no answer, asking again: connection refused"), "{shown}");
        assert!(shown.contains("default"), "{shown}");
    }

    #[test]
    fn q_and_control_c_end_it_and_c_alone_does_not() {
        let key = |code, modifiers| Event::Key(KeyEvent::new(code, modifiers));
        assert!(ends(&key(KeyCode::Char('q'), KeyModifiers::NONE)));
        assert!(ends(&key(KeyCode::Char('c'), KeyModifiers::CONTROL)));
        assert!(!ends(&key(KeyCode::Char('c'), KeyModifiers::NONE)));
        assert!(!ends(&Event::Resize(80, 24)));
    }
}
