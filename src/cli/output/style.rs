//! How answers are shown to people: decided once, from the flags and from what stdout is. Nothing of it touches JSON and YAML.

use super::{Format, times::TimeForm};
use std::{
    io::{IsTerminal, stderr, stdout},
    sync::OnceLock,
};

/// Columns of a terminal that does not say how many it has.
const USUAL_COLUMNS: usize = 80;
const USUAL_ROWS: usize = 24;

/// Colours of what people read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum Colour {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

impl Colour {
    /// `no_color`, `term`: variables of the environment.
    fn wanted(self, terminal: bool, no_color: Option<&str>, term: Option<&str>) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => terminal && no_color.is_none_or(str::is_empty) && term != Some("dumb"),
        }
    }
}

/// What every command takes about its output.
#[derive(clap::Args, Clone, Debug)]
pub(in crate::cli) struct Flags {
    /// Colours: auto (on a terminal that NO_COLOR does not forbid them), always or never
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true,
        hide_default_value = true,
        help_heading = "Output"
    )]
    color: Colour,
    /// Instants: relative, local, utc, job (by the job's zone) or a zone [default: utc; on a terminal lists are relative]
    #[arg(long = "time", id = "time_form", global = true, value_name = "FORM", help_heading = "Output")]
    time: Option<TimeForm>,
    /// Tables with all columns in full, also on a terminal that is too narrow
    #[arg(long, global = true, help_heading = "Output")]
    wide: bool,
    /// No progress, no hints
    #[arg(short, long, global = true, help_heading = "Output")]
    quiet: bool,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Style {
    /// Form of answers.
    pub format: Format,
    pub time: Option<TimeForm>,
    pub wide: bool,
    pub quiet: bool,
    pub colours: bool,
    /// stdout is a terminal.
    pub terminal: bool,
}

impl Style {
    fn new(flags: Flags, format: Format) -> Self {
        let terminal = stdout().is_terminal();
        let set = |name: &str| std::env::var(name).ok();
        let colours = flags.color.wanted(terminal, set("NO_COLOR").as_deref(), set("TERM").as_deref());
        Self { format, time: flags.time, wide: flags.wide, quiet: flags.quiet, colours, terminal }
    }

    /// Widest line of a table, columns; None: any. Asked anew each time, because a window may have changed.
    pub fn width(&self) -> Option<usize> {
        (self.terminal && !self.wide).then(|| size().0)
    }

    /// Progress may be drawn.
    pub fn draws(&self) -> bool {
        !self.quiet && stderr().is_terminal()
    }
}

/// Columns and rows of the terminal that stdout or stderr is; `COLUMNS` and `LINES` where it does not say.
pub(in crate::cli) fn size() -> (usize, usize) {
    let told = rustix::termios::tcgetwinsize(stdout()).or_else(|_| rustix::termios::tcgetwinsize(stderr()));
    let told = told.map(|size| (usize::from(size.ws_col), usize::from(size.ws_row))).unwrap_or_default();
    let variable = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let or = |told: usize, name: &str, usual: usize| {
        [Some(told), variable(name)].into_iter().flatten().find(|count| *count > 0).unwrap_or(usual)
    };
    (or(told.0, "COLUMNS", USUAL_COLUMNS), or(told.1, "LINES", USUAL_ROWS))
}

static STYLE: OnceLock<Style> = OnceLock::new();

/// Decides for the process; once, before anything is shown.
pub(in crate::cli) fn decide(flags: Flags, format: Format) {
    let _ = STYLE.set(Style::new(flags, format));
}

pub(in crate::cli) fn style() -> &'static Style {
    STYLE.get_or_init(|| Style {
        format: Format::Table,
        time: None,
        wide: false,
        quiet: false,
        colours: false,
        terminal: false,
    })
}

/// What `--color` says, before the arguments are read as a whole: help and errors about them have colours too.
pub(in crate::cli) fn colour_of(args: impl IntoIterator<Item = String>) -> clap::ColorChoice {
    let mut args = args.into_iter().take_while(|arg| arg != "--");
    while let Some(arg) = args.next() {
        let value = if arg == "--color" { args.next() } else { arg.strip_prefix("--color=").map(str::to_owned) };
        match value.as_deref() {
            Some("always") => return clap::ColorChoice::Always,
            Some("never") => return clap::ColorChoice::Never,
            Some(_) | None => {}
        }
    }
    clap::ColorChoice::Auto
}

/// A state in its colour. What is not known has none: a newer node may have other states.
pub(super) fn painted(state: &str, text: &str) -> String {
    let code = match state {
        "SUCCESS" | "ENABLED" | "ALIVE" | "READY" | "DONE" => "32",
        "FAILED" | "TIMEOUT" | "LOST" | "CLOCK_WRONG" => "31",
        "PAUSED" | "CORDONED" | "SUSPECTED" | "DRAINING" | "NEEDS_CONFIRMATION" | "RETRY_WAIT" | "SUSPECTED_LOST"
        | "SKIPPED" => "33",
        "RUNNING" => "36",
        "DELETED" | "CANCELED" => "2",
        _ => return text.to_owned(),
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

/// The line with titles.
pub(super) fn bold(text: &str) -> String {
    format!("\u{1b}[1m{text}\u{1b}[0m")
}

#[cfg(test)]
mod tests {
    use super::*;
    use campanile_schema::cluster::MemberState;

    #[test]
    fn colours_are_for_terminals_whose_user_wants_them() {
        let auto = |terminal, no_color, term| Colour::Auto.wanted(terminal, no_color, term);
        assert!(auto(true, None, Some("xterm")));
        assert!(auto(true, Some(""), None));
        assert!(!auto(false, None, Some("xterm")));
        assert!(!auto(true, Some("1"), None));
        assert!(!auto(true, None, Some("dumb")));
        assert!(Colour::Always.wanted(false, Some("1"), Some("dumb")));
        assert!(!Colour::Never.wanted(true, None, None));
    }

    #[test]
    fn every_state_of_a_node_has_a_colour() {
        for state in MemberState::ALL {
            assert_ne!(painted(state.as_str(), "it"), "it", "{state:?}");
        }
    }

    #[test]
    fn the_flag_is_found_before_arguments_are_read() {
        let of = |line: &str| colour_of(line.split(' ').map(str::to_owned));
        assert_eq!(of("campanile job list --color never"), clap::ColorChoice::Never);
        assert_eq!(of("campanile --color=always jobs"), clap::ColorChoice::Always);
        assert_eq!(of("campanile job list"), clap::ColorChoice::Auto);
        assert_eq!(of("campanile x -- --color=always"), clap::ColorChoice::Auto);
    }
}
