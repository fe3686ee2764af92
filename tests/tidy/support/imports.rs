//! Rules of how the modules of one crate know each other.

use super::{Found, Tree, code_of, has_word, manifests, numbered, sources::test_lines};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The crate whose modules import each other one way, children of one parent and the parent included.
const ONE_WAY: &str = "actors/src/";

/// Circles that are left, by the sources of their crate and one of their modules, each with its reason. An entry without a circle is an
/// error too.
const LEFT: [(&str, &str, &str); 2] = [
    ("schema/src/", "record", "records name outcomes and reasons of `event`, whose events contain records"),
    (
        "src/store/",
        "embedded::views::staging",
        "a stretch of rows begins in a table of `staging`, which keeps stretches",
    ),
];

/// A name that once held everything that a session has, and was in every signature.
const HELD_EVERYTHING: &str = "Directory";
/// All values of a session, and the only files that may name them: those that make them, and the scheduler, which answers for the
/// whole node. A task of the session is given the values that it needs.
const ALL_VALUES: &str = "SessionHandles";
const MAY_HOLD_ALL: [&str; 4] =
    ["actors/src/handles.rs", "actors/src/wiring.rs", "actors/src/session.rs", "actors/src/scheduler/"];

/// A module by the names on the way to it; the root of the crate has none.
type Module = Vec<String>;
type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// No modules of a crate import each other, but a parent and its children: it may use them, and they may use it and each other one way.
pub fn no_import_circles(tree: &Tree) -> Found {
    let (mut found, mut needed) = (Found::new(), Vec::new());
    let all = manifests::sources(tree);
    for sources in &all {
        let below: Vec<&str> = all.iter().map(String::as_str).filter(|other| *other != sources).collect();
        for (group, circle) in knots(&imports(tree, sources, &below)) {
            let left = LEFT.iter().find(|(of, module, _)| of == sources && group.iter().any(|name| name == module));
            match left {
                Some(entry) => needed.push(entry),
                None => found.push(format!(
                    "{sources}: {} modules import each other, {} -> {}; move what the first needs to a file below",
                    group.len(),
                    circle.join(" -> "),
                    circle.first().map_or("", String::as_str)
                )),
            }
        }
    }
    let idle = LEFT.iter().filter(|entry| tree.exists(entry.0) && !needed.contains(entry));
    found.extend(idle.map(|(of, module, _)| format!("{of}: {module} is in no circle; take its entry out of LEFT")));
    found
}

/// The only circles are those of a parent and its child.
pub fn imports_go_one_way(tree: &Tree) -> Found {
    let imports = imports(tree, ONE_WAY, &[]);
    let edges = imports.iter().flat_map(|(from, all)| all.iter().map(move |to| (from, to)));
    let circles: BTreeSet<Vec<String>> = edges.filter_map(|(from, to)| circle(&imports, from, to)).collect();
    circles
        .into_iter()
        .map(|circle| {
            let way = circle.join(" -> ");
            format!(
                "{ONE_WAY}: the modules {way} -> {} import each other; move what the first needs to a file below",
                circle[0]
            )
        })
        .collect()
}

/// Nothing holds all that a session has and is given to everybody.
pub fn tasks_get_what_they_need(tree: &Tree) -> Found {
    let mut found = Found::new();
    for (path, text) in tree.ending(".rs").filter(|(path, _)| path.starts_with(ONE_WAY)) {
        let may_hold_all = MAY_HOLD_ALL.iter().any(|known| path.starts_with(known));
        for (number, line) in numbered(text).map(|(number, line)| (number, code_of(line))) {
            if has_word(line, HELD_EVERYTHING) {
                found.push(format!("{path}:{number} names {HELD_EVERYTHING}; take the values that are needed instead"));
            }
            if has_word(line, ALL_VALUES) && !may_hold_all {
                found.push(format!("{path}:{number} takes all values of a session; take the ones that are needed"));
            }
        }
    }
    found
}

/// Which modules each module of a crate names, without its tests. `others`: the sources of other crates, which may lie below its own.
fn imports(tree: &Tree, sources: &str, others: &[&str]) -> Imports {
    let files: BTreeMap<Module, (&str, &str)> = tree
        .ending(".rs")
        .filter(|(path, _)| !path.ends_with("tests.rs"))
        .filter(|(path, _)| !others.iter().any(|other| other.starts_with(sources) && path.starts_with(other)))
        .filter_map(|(path, text)| Some((module_of(path.strip_prefix(sources)?), (path, text))))
        .collect();
    let mut imports = Imports::new();
    for (module, (path, text)) in files.iter().filter(|(module, _)| !module.is_empty()) {
        let tested = test_lines(path, text).first().map_or(usize::MAX, |(number, _)| *number);
        let lines = numbered(text).filter(|(number, _)| *number < tested).map(|(_, line)| code_of(line));
        let code = lines.collect::<Vec<_>>().join("\n");
        let children: Vec<&str> = files
            .keys()
            .filter(|other| is_child(other, module))
            .filter_map(|other| other.last())
            .map(String::as_str)
            .collect();
        let known = |path: Vec<String>| {
            let path = absolute(module, path)?;
            let ends = (1..=path.len()).rev().map(|end| &path[..end]);
            ends.map(<[String]>::to_vec).find(|module| files.contains_key(module)).filter(|other| other != module)
        };
        imports.insert(module.clone(), paths(&code, &children).into_iter().filter_map(known).collect());
    }
    imports
}

fn module_of(path: &str) -> Module {
    let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
    path.split('/').filter(|name| *name != "lib").map(str::to_owned).collect()
}

fn is_child(module: &[String], parent: &[String]) -> bool {
    module.len() == parent.len() + 1 && module.starts_with(parent)
}

/// A path from the root of the crate; None: it leads out of the crate.
fn absolute(module: &[String], path: Vec<String>) -> Option<Module> {
    let mut at = module.to_vec();
    let mut rest = path.into_iter().peekable();
    match rest.peek().map(String::as_str) {
        Some("crate") => {
            rest.next();
            at.clear();
        }
        Some("self") => drop(rest.next()),
        Some("super") => {
            while rest.next_if(|name| name == "super").is_some() {
                at.pop()?;
            }
        }
        Some(_) => {}
        None => return None,
    }
    at.extend(rest);
    Some(at)
}

/// Paths in code that lead into this crate: from its root, from a parent, or from one of the module's children.
fn paths(code: &str, children: &[&str]) -> Vec<Vec<String>> {
    let roots = ["crate", "super", "self"].into_iter().chain(children.iter().copied());
    let roots: BTreeSet<&str> = roots.collect();
    let (mut found, mut rest) = (Vec::new(), String::new());
    for statement in code.split_inclusive(';') {
        match statement.rsplit_once("use ").filter(|(before, _)| begins_statement(before)) {
            Some((before, tree)) => {
                rest.push_str(before);
                expand(tree.trim_end_matches(';'), &[], &mut found);
            }
            None => rest.push_str(statement),
        }
    }
    found.retain(|path| path.first().is_some_and(|first| roots.contains(first.as_str())));
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    for (at, _) in rest.match_indices("::") {
        let begin = rest[..at].rfind(|c| !is_name(c)).map_or(0, |before| before + 1);
        if roots.contains(&rest[begin..at]) && !rest[..begin].ends_with(':') {
            let end = rest[begin..].find(|c| !is_name(c) && c != ':').map_or(rest.len(), |end| begin + end);
            found.push(rest[begin..end].split("::").map(str::to_owned).collect());
        }
    }
    found
}

/// Whether `use` behind this text begins a statement: at most its visibility stands before it on its line.
fn begins_statement(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default().trim();
    line.is_empty() || line.starts_with("pub") && !line.contains(' ')
}

/// The paths that a tree of imports names: `a::{b, c::d as e}` is `a::b` and `a::c::d`.
fn expand(tree: &str, before: &[String], found: &mut Vec<Vec<String>>) {
    let (head, inner) = tree.split_once('{').map_or((tree, None), |(head, inner)| (head, inner.rsplit_once('}')));
    let head = head.split(" as ").next().unwrap_or_default();
    let names = head.split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
    let path: Vec<String> = before.iter().cloned().chain(names).collect();
    let Some((inner, _)) = inner else { return found.push(path) };
    let (mut depth, mut begin) = (0, 0);
    for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !inner[begin..at].trim().is_empty() {
                    expand(&inner[begin..at], &path, found);
                }
                begin = at + 1;
            }
            _ => {}
        }
    }
}

/// The shortest circle with this import, from its first name on; None: there is none but that of a parent and its child.
fn circle(imports: &Imports, from: &Module, to: &Module) -> Option<Vec<String>> {
    let of_family = is_child(from, to) || is_child(to, from);
    let mut ways = VecDeque::from([vec![to]]);
    let mut seen = BTreeSet::from([to]);
    while let Some(way) = ways.pop_front() {
        let last = *way.last()?;
        for next in imports.get(last).into_iter().flatten().filter(|next| !of_family || (last, *next) != (to, from)) {
            if next == from {
                let mut circle: Vec<String> = way.iter().chain([&from]).map(|module| module.join("::")).collect();
                let first = circle.iter().enumerate().min_by_key(|(_, name)| (*name).clone()).map_or(0, |(at, _)| at);
                circle.rotate_left(first);
                return Some(circle);
            }
            if seen.insert(next) {
                ways.push_back(way.iter().copied().chain([next]).collect());
            }
        }
    }
    None
}

/// Modules that import each other, by names, with the shortest circle among them.
fn knots(imports: &Imports) -> Vec<(Vec<String>, Vec<String>)> {
    let places = imports.keys().flat_map(|module| (0..=module.len()).map(move |end| &module[..end]));
    let places: BTreeSet<&[String]> = places.collect();
    let mut found = Vec::new();
    for place in places {
        let steps = steps_below(imports, place);
        // The child of the place below which a module is; None: the place itself.
        let branch = |module: &Module| module.get(place.len()).cloned();
        for group in groups(&steps) {
            // A circle among the modules below one child is found at that child.
            if group.iter().any(|module| branch(module) != branch(group[0])) {
                let within = group.iter().flat_map(|from| steps[*from].iter().map(move |to| (*from, to)));
                let across = within.filter(|(from, to)| branch(from) != branch(to));
                let circles = across.filter_map(|(from, to)| circle(&steps, from, to));
                let shortest = circles.min_by_key(Vec::len).unwrap_or_default();
                found.push((group.iter().map(|module| module.join("::")).collect(), shortest));
            }
        }
    }
    found
}

/// The imports among a module and all below it. What it takes from its own children does not count.
fn steps_below(imports: &Imports, place: &[String]) -> Imports {
    let below = imports.iter().filter(|(from, _)| from.starts_with(place));
    let counts = |from: &Module, to: &Module| to.starts_with(place) && (from != place || !is_child(to, from));
    below.map(|(from, all)| (from.clone(), all.iter().filter(|to| counts(from, to)).cloned().collect())).collect()
}

/// The groups of modules each of which leads to all others of its group.
fn groups(steps: &Imports) -> Vec<Vec<&Module>> {
    let ahead: BTreeMap<&Module, BTreeSet<&Module>> = steps.keys().map(|from| (from, reached(steps, from))).collect();
    let leads = |from: &Module, to: &Module| ahead.get(from).is_some_and(|reached| reached.contains(to));
    let (mut found, mut grouped) = (Vec::new(), BTreeSet::new());
    for module in steps.keys().filter(|module| leads(module, module)) {
        if !grouped.contains(module) {
            let group: Vec<&Module> =
                steps.keys().filter(|other| leads(module, other) && leads(other, module)).collect();
            grouped.extend(group.iter().copied());
            found.push(group);
        }
    }
    found
}

/// All that a module leads to; itself only if it stands in a circle.
fn reached<'i>(steps: &'i Imports, from: &Module) -> BTreeSet<&'i Module> {
    let mut reached = BTreeSet::new();
    let mut ahead: Vec<&Module> = steps.get(from).into_iter().flatten().collect();
    while let Some(module) = ahead.pop() {
        if reached.insert(module) {
            ahead.extend(steps.get(module).into_iter().flatten());
        }
    }
    reached
}
