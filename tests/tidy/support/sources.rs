//! Rules of the source files.

use super::{Found, Tree, code_of, has_word, numbered};

/// Lines of a file that a person reads in one sitting. Aim at 300.
const LONGEST: usize = 500;

/// Files that may be longer, each with its reason. An entry that is not needed any more is an error too.
const LONG: [(&str, &str); 0] = [];

/// A sleep in a test is the pause of a poll or the length of a body: one of these stands at most so many lines above it.
/// Anything else hopes that something has happened meanwhile.
const SLEEP_FOR: [&str; 4] = ["loop", "while", "handler", "any_handler"];
const ABOVE: usize = 12;

/// Polls of tests that have no runtime: the only places that may block a thread, each with its reason. An entry that sleeps
/// no more is an error too.
const THREADS_SLEEP: [(&str, &str); 4] = [
    ("src/store/embedded/tests/bench.rs", "a benchmark that paces flushes as a node does; it synchronises nothing"),
    ("tests/support/poll.rs", "`eventually` polls with a deadline"),
    ("tests/rpc/foreign.rs", "polls a process that ends, with a deadline"),
    ("tests/node/frozen.rs", "the time for which a node is stopped is the input of the test"),
];

/// The only places where a file gets its name by a rename, each with what makes that durable. An entry that renames no more is an
/// error too.
const RENAMES: [(&str, &str); 3] = [
    ("actors/ports/private.rs", "put_file syncs the file, and then its directory"),
    ("src/store/file/real.rs", "stores sync the directory, and the crash disk forgets the names of those that do not"),
    ("src/store/embedded/views/open.rs", "puts damaged logs aside; after a power cut it is done again"),
];

/// What the pure crates never touch, with the reason.
const IMPURE: [(&str, &str); 12] = [
    ("std::fs", "I/O"),
    ("std::net", "I/O"),
    ("std::process", "I/O"),
    ("std::env", "the environment"),
    ("std::thread", "threads"),
    ("SystemTime", "a clock"),
    ("Instant::now", "a clock"),
    ("Timestamp::now", "a clock"),
    ("Zoned::now", "a clock"),
    ("async", "waiting"),
    ("await", "waiting"),
    ("println", "I/O"),
];
const PURE: [&str; 2] = ["actors/core/src/", "schema/src/"];

/// Crates with fault hooks, by their sources.
const WITH_FAULTS: [&str; 4] = ["actors/core/src/", "actors/ports/", "actors/src/", "src/"];
/// What only a fault hook says.
const FAULT_SIGNS: [&str; 3] = ["faults::", "CAMPANILE_FAULT", "CAMPANILE_CLOCK_OFFSET"];
/// Scripted answers of the store in memory: part of that store, which no node uses.
const NOT_HOOKS: &str = "src/store/memory/";
const GATES: [&str; 2] = ["#[cfg(feature = \"faults\")]", "#[cfg(any(test, feature = \"faults\"))]"];

/// What one of a limit is.
const UNITS: [&str; 22] = [
    "byte",
    "bytes",
    "character",
    "characters",
    "microsecond",
    "microseconds",
    "millisecond",
    "milliseconds",
    "second",
    "seconds",
    "minute",
    "minutes",
    "day",
    "days",
    "count",
    "KiB",
    "MiB",
    "levels",
    "slots",
    "instants",
    "items",
    "points",
];
/// Units that a sentence about a limit may name as the thing counted.
const COUNTED: [&str; 6] = ["ids", "runs", "rows", "frames", "lines", "jobs"];

/// In pieces, so that this file keeps its own rule.
fn markers() -> [String; 5] {
    [("to", "do!"), ("unimplem", "ented!"), ("FIX", "ME"), ("XX", "X"), ("db", "g!")].map(|(a, b)| format!("{a}{b}"))
}

fn is_test_file(path: &str) -> bool {
    path.starts_with("tests/")
        || path.contains("/tests/")
        || path.contains("/conformance/")
        || path.ends_with("tests.rs")
}

/// The lines of a file that only tests compile: all of a test file, otherwise what follows `#[cfg(test)] mod NAME {`.
pub fn test_lines<'t>(path: &str, text: &'t str) -> Vec<(usize, &'t str)> {
    if is_test_file(path) {
        return numbered(text).collect();
    }
    let opens = |line: &str| line.starts_with("mod ") && line.ends_with('{');
    let lines: Vec<_> = numbered(text).collect();
    let begin = lines.windows(2).position(|pair| pair[0].1 == "#[cfg(test)]" && opens(pair[1].1));
    begin.map_or_else(Vec::new, |at| lines[at..].to_vec())
}

/// A file that is put in place by a rename is durable only when its directory is synced too: one function does it for everybody.
pub fn renames_are_durable(tree: &Tree) -> Found {
    let of_node = |path: &str| path.starts_with("src/") || path.starts_with("actors/") || path.starts_with("client/");
    let mut found = Found::new();
    let mut renaming = Vec::new();
    for (path, text) in tree.ending(".rs").filter(|(path, _)| of_node(path)) {
        let tests: Vec<usize> = test_lines(path, text).iter().map(|(number, _)| *number).collect();
        for (number, _) in numbered(text).filter(|(_, line)| code_of(line).contains("fs::rename(")) {
            let listed = RENAMES.iter().any(|(listed, reason)| *listed == path && !reason.is_empty());
            if listed {
                renaming.push(path);
            } else if !tests.contains(&number) {
                found.push(format!("{path}:{number}: put the file in place with campanile_ports::private::put_file"));
            }
        }
    }
    let idle = RENAMES.iter().filter(|(listed, _)| tree.exists(listed) && !renaming.contains(listed));
    found.extend(idle.map(|(listed, _)| format!("{listed}: renames nothing; take its entry out of RENAMES")));
    found
}

/// Files that a person reads in one sitting.
pub fn files_are_short(tree: &Tree) -> Found {
    let mut found = Found::new();
    for (path, text) in tree.ending(".rs") {
        let lines = text.lines().count();
        let excused = LONG.iter().any(|(long, reason)| *long == path && !reason.is_empty());
        if lines > LONGEST && !excused {
            found.push(format!("{path}: {lines} lines; at most {LONGEST}: is it one concept?"));
        }
        if lines <= LONGEST && excused {
            found.push(format!("{path}: {lines} lines only; take its entry out of LONG"));
        }
    }
    found
}

/// Nothing was left for later in the code.
pub fn no_markers(tree: &Tree) -> Found {
    let markers = markers();
    let mut found = Found::new();
    for (path, text) in tree.ending(".rs") {
        for (number, line) in numbered(text) {
            for marker in markers.iter().filter(|marker| has_word(line, marker)) {
                found.push(format!("{path}:{number}: {marker} was left behind"));
            }
        }
    }
    found
}

/// Every crate root forbids unsafe code by itself, so that nobody has to look at the manifests.
pub fn no_unsafe(tree: &Tree) -> Found {
    let roots = tree.ending(".rs").filter(|(path, _)| {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        // A crate that is a folder of another one has its root beside its manifest.
        let beside = tree.exists(&format!("{directory}/Cargo.toml"));
        (directory == "src" || directory.ends_with("/src") || beside) && (name == "lib.rs" || name == "main.rs")
    });
    let without = roots.filter(|(_, text)| !text.contains("#![forbid(unsafe_code)]"));
    without.map(|(path, _)| format!("{path}: write #![forbid(unsafe_code)]")).collect()
}

/// Every limit has a doc comment that names its unit.
pub fn limits_have_units(tree: &Tree) -> Found {
    let mut found = Found::new();
    let of_limits = |path: &str| path.ends_with("/limits.rs") || path.contains("/limits/");
    for (path, text) in tree.ending(".rs").filter(|(path, _)| of_limits(path)) {
        let mut comment = String::new();
        for (number, line) in numbered(text) {
            if let Some(words) = line.strip_prefix("///") {
                comment += words;
                continue;
            }
            if let Some(rest) = line.strip_prefix("pub const ") {
                let name = rest.split(':').next().unwrap_or_default();
                let named =
                    UNITS.iter().chain(&COUNTED).any(|unit| has_word(&comment.to_lowercase(), &unit.to_lowercase()));
                if !named {
                    found.push(format!("{path}:{number}: the comment of {name} names no unit"));
                }
            }
            comment.clear();
        }
    }
    found
}

/// Tests poll with a deadline; they never sleep and hope. They block a thread for it only where that is listed.
pub fn tests_do_not_sleep(tree: &Tree) -> Found {
    let mut found = Found::new();
    let mut blocking = Vec::new();
    for (path, text) in tree.ending(".rs").filter(|(path, _)| !path.starts_with("tests/tidy")) {
        let lines = test_lines(path, text);
        let listed = THREADS_SLEEP.iter().any(|(listed, _)| *listed == path);
        for (at, (number, line)) in lines.iter().enumerate().filter(|(_, (_, line))| code_of(line).contains("sleep(")) {
            let above = &lines[at.saturating_sub(ABOVE)..=at];
            let meant = above.iter().any(|(_, line)| SLEEP_FOR.iter().any(|word| has_word(code_of(line), word)));
            let blocks = has_word(line, "thread::sleep");
            if blocks {
                blocking.push(path);
            }
            if !(listed && blocks) && (!meant || blocks) {
                found.push(format!("{path}:{number}: a test sleeps; poll with a deadline"));
            }
        }
    }
    let idle = THREADS_SLEEP.iter().filter(|(path, _)| tree.text(path).is_some() && !blocking.contains(path));
    found.extend(idle.map(|(path, _)| format!("{path}: blocks no thread; take its entry out of THREADS_SLEEP")));
    found
}

/// Names that the requirement's alerts use stand as they are there; all others say whose they are.
const METRICS_OF_ALERTS: [&str; 9] = [
    "trigger_delay_ms",
    "dispatch_delay_ms",
    "schedule_fires_total",
    "misfire_count",
    "executor_heartbeat_lost",
    "dispatch_queue_lag",
    "retry_queue_depth",
    "runs_ended_total",
    "dead_letters_total",
];
const METRIC_TABLE: &str = "actors/src/measure.rs";

/// A metric has its help text in the one table, and a name that says whose it is and in which unit.
pub fn metrics_are_described(tree: &Tree) -> Found {
    const KINDS: [&str; 3] = ["counter", "gauge", "histogram"];
    let (mut described, mut used, mut found) = (Vec::new(), Vec::new(), Found::new());
    for (path, text) in
        tree.ending(".rs").filter(|(path, _)| path.starts_with("src/") || path.starts_with("actors/src/"))
    {
        for (number, line) in numbered(text) {
            let code = code_of(line).trim_start();
            for kind in KINDS {
                let sign = format!("{kind}!(\"");
                let Some((before, rest)) = code.split_once(&sign) else { continue };
                let name = rest.split('"').next().unwrap_or_default().to_owned();
                if before.ends_with("metrics::") {
                    used.push((format!("{path}:{number}"), kind, name));
                } else if path == METRIC_TABLE {
                    described.push((kind, name));
                }
            }
        }
    }
    for (place, kind, name) in &used {
        if !described.contains(&(*kind, name.clone())) {
            found.push(format!("{place}: the {kind} {name} has no help text in {METRIC_TABLE}"));
        }
    }
    for (kind, name) in &described {
        if !used.iter().any(|(_, used_as, used)| used_as == kind && used == name) {
            found.push(format!("{METRIC_TABLE}: {name} is described and never measured"));
        }
        if METRICS_OF_ALERTS.contains(&name.as_str()) {
            continue;
        }
        let unit = match *kind {
            "counter" => name.ends_with("_total"),
            "histogram" => name.ends_with("_ms") || name.ends_with("_seconds"),
            _ => !name.ends_with("_total"),
        };
        if !name.starts_with("campanile_") || !unit {
            found.push(format!(
                "{METRIC_TABLE}: {name}: write campanile_..., a counter's end _total, a histogram's its unit"
            ));
        }
    }
    found
}

/// Alerts and the manual ask only for metrics that there are.
pub fn alerts_ask_for_what_is_measured(tree: &Tree) -> Found {
    let table = tree.text(METRIC_TABLE).unwrap_or_default();
    // A name that ends in `_` stands for all that begin with it.
    let described = |name: &str| table.contains(&format!("\"{name}{}", if name.ends_with('_') { "" } else { "\"" }));
    let asks = |path: &str| {
        path.starts_with("deploy/prometheus/")
            || path.starts_with("deploy/grafana/")
            || path.starts_with("docs/runbooks/")
            || ["docs/operations.md", "docs/observability.md"].contains(&path)
    };
    let mut found = Found::new();
    for (path, text) in tree.all().filter(|(path, _)| asks(path)) {
        for (number, line) in numbered(text) {
            for name in line.split(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit() && c != '_') {
                let base = ["_bucket", "_sum", "_count"].iter().find_map(|part| name.strip_suffix(part));
                if name.starts_with("campanile_") && !described(name) && !base.is_some_and(described) {
                    found.push(format!("{path}:{number}: {METRIC_TABLE} has no metric {name}"));
                }
            }
        }
    }
    found
}

/// The pure crates do no I/O, read no clock, and wait for nothing.
pub fn the_core_is_pure(tree: &Tree) -> Found {
    let mut found = Found::new();
    for (path, text) in tree.ending(".rs").filter(|(path, _)| PURE.iter().any(|pure| path.starts_with(pure))) {
        let tests = test_lines(path, text).first().map_or(usize::MAX, |(number, _)| *number);
        for (number, line) in numbered(text).take_while(|(number, _)| *number < tests) {
            for (sign, what) in IMPURE.iter().filter(|(sign, _)| has_word(code_of(line), sign)) {
                found.push(format!("{path}:{number}: {sign}: {what}; not in this crate"));
            }
        }
    }
    found
}

/// Lines that are compiled only with the feature: what follows a gate, to the end of its item or statement.
fn gated(text: &str) -> Vec<bool> {
    let lines: Vec<&str> = text.lines().collect();
    let mut inside = vec![false; lines.len()];
    let mut at = 0;
    while at < lines.len() {
        if !GATES.contains(&lines[at].trim()) {
            at += 1;
            continue;
        }
        let mut depth = 0i32;
        while at < lines.len() {
            inside[at] = true;
            let code = code_of(lines[at]);
            depth += code.matches(['{', '(', '[']).count() as i32;
            depth -= code.matches(['}', ')', ']']).count() as i32;
            at += 1;
            let more = code.trim().is_empty() || code.trim_start().starts_with("#[");
            if depth <= 0 && !more && code.trim_end().ends_with([';', '}', ',']) {
                break;
            }
        }
    }
    inside
}

/// Modules of which the whole file is compiled only with the feature.
fn gated_modules(tree: &Tree) -> Vec<String> {
    let mut modules = Vec::new();
    for (path, text) in tree.ending(".rs") {
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        for (line, gated) in text.lines().zip(gated(text)) {
            let declared =
                line.trim().trim_start_matches("pub ").strip_prefix("mod ").and_then(|m| m.strip_suffix(';'));
            if let (Some(module), true) = (declared, gated) {
                modules.extend([format!("{directory}/{module}.rs"), format!("{directory}/{module}/")]);
            }
        }
    }
    modules
}

/// A release has no fault hooks: whatever speaks of them is compiled only with the feature.
pub fn faults_are_gated(tree: &Tree) -> Found {
    let modules = gated_modules(tree);
    let whole = |path: &str| modules.iter().any(|m| m == path || (m.ends_with('/') && path.starts_with(m)));
    let mut found = Found::new();
    let ours = |path: &str| WITH_FAULTS.iter().any(|sources| path.starts_with(sources)) && !path.starts_with(NOT_HOOKS);
    for (path, text) in tree.ending(".rs").filter(|(path, _)| ours(path) && !is_test_file(path) && !whole(path)) {
        for ((number, line), gated) in numbered(text).zip(gated(text)) {
            let sign = FAULT_SIGNS.iter().find(|sign| code_of(line).contains(*sign));
            if let (Some(sign), false) = (sign, gated) {
                found.push(format!("{path}:{number}: {sign} outside of #[cfg(feature = \"faults\")]"));
            }
        }
    }
    found
}
