//! What a workload file must hold to besides its form. The first rule that is broken is told with the path of the value.

use super::{Arrivals, Expect, Limits, Load, LoadKind, Scenario, jobs::CRON_EVERY_S, words::closest};
use crate::limits::{EXECUTORS, GROUPS, LOAD_JOBS, LOAD_RATE, PHASES, RUN_SECONDS};
use campanile_schema::limits::{EXECUTOR_SLOTS_MAX, PRIORITY_MAX};

type Broken = Option<(String, String)>;

/// The path of the value and what it must be; None: all holds.
pub(super) fn broken(s: &Scenario) -> Broken {
    let word = |name: &str| {
        !name.is_empty() && name.len() <= 40 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let not = |fine: bool, path: &str, message: &str| (!fine).then(|| (path.to_owned(), message.to_owned()));
    let name_rule = "a name is 1 to 40 letters, digits and '-'";
    not(word(&s.name), "name", name_rule)
        .or_else(|| length(s))
        .or_else(|| {
            let count = s.executors.count;
            not((1..=EXECUTORS).contains(&count), "executors.count", &format!("executors.count is 1 to {EXECUTORS}"))
        })
        .or_else(|| {
            let slots = s.executors.slots;
            let rule = format!("executors.slots is 1 to {EXECUTOR_SLOTS_MAX}");
            not((1..=EXECUTOR_SLOTS_MAX).contains(&slots), "executors.slots", &rule)
        })
        .or_else(|| not(!s.loads.is_empty(), "name", "a workload needs at least one [[load]]"))
        .or_else(|| not(s.loads.len() <= GROUPS, "load", &format!("at most {GROUPS} loads")))
        .or_else(|| not(s.calls.len() <= GROUPS, "call", &format!("at most {GROUPS} calls")))
        .or_else(|| {
            s.phases.iter().enumerate().find_map(|(n, p)| {
                let at = |field: &str| format!("phase.{n}.{field}");
                let fine = p.executors.is_none_or(|count| (1..=EXECUTORS).contains(&count));
                let twice = s.phases[..n].iter().any(|other| other.name == p.name);
                not(!p.name.is_empty() && !twice, &at("name"), "a phase needs a name of its own")
                    .or_else(|| not(p.seconds > 0, &at("seconds"), "a phase takes at least a second"))
                    .or_else(|| not(fine, &at("executors"), &format!("executors is 1 to {EXECUTORS}")))
            })
        })
        .or_else(|| {
            s.loads.iter().enumerate().find_map(|(n, load)| {
                let twice = s.loads[..n].iter().any(|other| other.name == load.name);
                not(word(&load.name), &format!("load.{n}.name"), name_rule)
                    .or_else(|| not(!twice, &format!("load.{n}.name"), "two loads have this name"))
                    .or_else(|| of_load(s, n, load))
            })
        })
        .or_else(|| {
            s.calls.iter().enumerate().find_map(|(n, call)| {
                let fine = call.rate > 0.0 && call.rate <= LOAD_RATE;
                let taken = s.calls[..n]
                    .iter()
                    .map(|c| &c.name)
                    .chain(s.loads.iter().map(|l| &l.name))
                    .any(|name| *name == call.name);
                not(word(&call.name), &format!("call.{n}.name"), name_rule)
                    .or_else(|| not(!taken, &format!("call.{n}.name"), "another call or load has this name"))
                    .or_else(|| {
                        not(fine, &format!("call.{n}.rate"), &format!("rate is above 0 and at most {LOAD_RATE}"))
                    })
                    .or_else(|| phases_known(s, &call.phases, &format!("call.{n}.phases")))
            })
        })
        .or_else(|| expectations(s, "expect", &s.expect))
        .or_else(|| expectations(s, "target", &s.target))
}

fn length(s: &Scenario) -> Broken {
    let wrong = |path: &str, message: String| Some((path.to_owned(), message));
    let ways = usize::from(s.seconds > 0) + usize::from(!s.phases.is_empty()) + usize::from(s.ramp.is_some());
    if ways != 1 {
        let path = if s.ramp.is_some() {
            "ramp"
        } else if s.seconds > 0 {
            "seconds"
        } else {
            "name"
        };
        return wrong(path, "say how long it takes in one way: seconds, [[phase]] or [ramp]".to_owned());
    }
    if s.phases.len() > PHASES || s.ramp.as_ref().is_some_and(|ramp| ramp.rates.len() > PHASES) {
        return wrong(if s.ramp.is_some() { "ramp.rates" } else { "phase" }, format!("at most {PHASES} of them"));
    }
    if let Some(ramp) = &s.ramp {
        let rising = ramp.rates.windows(2).all(|pair| pair[0] < pair[1]);
        if ramp.rates.is_empty() || !rising || ramp.rates[0] <= 0.0 || ramp.rates.iter().any(|r| *r > LOAD_RATE) {
            return wrong("ramp.rates", format!("ramp.rates rise, from above 0 to at most {LOAD_RATE}"));
        }
        if ramp.step_s == 0 {
            return wrong("ramp.step_s", "a step takes at least a second".to_owned());
        }
    }
    let total = s.length_s();
    let path = if s.seconds > 0 { "seconds" } else { "phase" };
    (total > RUN_SECONDS).then(|| (path.to_owned(), format!("a run takes at most {RUN_SECONDS} s")))
}

fn of_load(s: &Scenario, n: usize, load: &Load) -> Broken {
    let not = |fine: bool, field: &str, message: String| (!fine).then(|| (format!("load.{n}.{field}"), message));
    let ramp = s.ramp.is_some();
    let kind = match load.kind {
        LoadKind::Rate | LoadKind::Trigger => {
            not(load.rate > 0.0 && load.rate <= LOAD_RATE, "rate", format!("rate is above 0 and at most {LOAD_RATE}"))
        }
        LoadKind::Ramp => not(ramp, "kind", "kind \"ramp\" needs a [ramp] table".to_owned())
            .or_else(|| not(load.phases.is_empty(), "phases", "a ramp is due in all phases".to_owned())),
        LoadKind::Herd => not(load.jobs > 0, "jobs", "a herd needs jobs".to_owned())
            .or_else(|| not(load.phases.len() <= 1, "phases", "a herd is due in one phase".to_owned()))
            .or_else(|| not(load.at_s < phase_length(s, load), "at_s", "at_s lies within its phase".to_owned())),
        LoadKind::Idle => not(load.jobs > 0, "jobs", "idle jobs need a number: jobs".to_owned()),
    };
    kind.or_else(|| not(load.jobs <= LOAD_JOBS, "jobs", format!("at most {LOAD_JOBS} jobs")))
        .or_else(|| {
            let fine = load.arrivals != Arrivals::Cron || load.kind == LoadKind::Rate;
            not(fine, "arrivals", "arrivals \"cron\" is for kind \"rate\"".to_owned())
        })
        .or_else(|| {
            let fine = load.arrivals != Arrivals::Cron || load.jobs == 0;
            let rule = "with arrivals \"cron\" each job is due once a minute, so the rate says how many there are: leave jobs out";
            not(fine, "jobs", rule.to_owned())
        })
        .or_else(|| {
            let fine = load.arrivals != Arrivals::Cron || load.rate * CRON_EVERY_S as f64 <= LOAD_JOBS as f64;
            let rule = format!("with arrivals \"cron\" there are {CRON_EVERY_S} jobs for each due instant a second, and at most {LOAD_JOBS}");
            not(fine, "rate", rule)
        })
        .or_else(|| not(load.fail_percent <= 100, "fail_percent", "fail_percent is 0 to 100".to_owned()))
        .or_else(|| not(load.max_attempts > 0, "max_attempts", "max_attempts counts the first try".to_owned()))
        .or_else(|| not(load.retry_delay_s >= 0.0, "retry_delay_s", "retry_delay_s is 0 or more".to_owned()))
        .or_else(|| not(load.priority <= PRIORITY_MAX, "priority", format!("priority is 0 to {PRIORITY_MAX}")))
        .or_else(|| not((1..=1_000).contains(&load.tenants), "tenants", "tenants is 1 to 1000".to_owned()))
        .or_else(|| phases_known(s, &load.phases, &format!("load.{n}.phases")))
}

/// Of the phase in which a herd is due, seconds.
fn phase_length(s: &Scenario, load: &Load) -> u64 {
    let stretches = s.stretches();
    match load.phases.first() {
        Some(name) => stretches.iter().find(|p| p.name == *name).map_or(u64::MAX, |p| p.seconds),
        None => stretches.first().map_or(0, |p| p.seconds),
    }
}

fn unknown(what: &str, name: &str, known: &[String]) -> String {
    match closest(name, known.iter().map(String::as_str)) {
        Some(meant) => format!("there is no {what} \"{name}\"; did you mean \"{meant}\"?"),
        None => format!("there is no {what} \"{name}\"; there are: {}", known.join(", ")),
    }
}

fn phases_known(s: &Scenario, used: &[String], path: &str) -> Broken {
    let known: Vec<String> = s.stretches().into_iter().map(|phase| phase.name).collect();
    let stray = used.iter().find(|name| !known.contains(name));
    stray.map(|name| (path.to_owned(), unknown("phase", name, &known))).or_else(|| {
        let joined = known.windows(used.len().max(1)).any(|next| next.iter().all(|name| used.contains(name)));
        (!used.is_empty() && !joined)
            .then(|| (path.to_owned(), "its phases follow one another without a gap".to_owned()))
    })
}

/// Of `[expect]` and `[target]`, by the table's name.
fn expectations(s: &Scenario, of: &str, limits: &Expect) -> Broken {
    let phases: Vec<String> = s.stretches().into_iter().map(|phase| phase.name).collect();
    let groups: Vec<String> = s.loads.iter().map(|load| load.name.clone()).collect();
    let by_hand = s.loads.iter().filter(|load| load.kind == LoadKind::Trigger).map(|load| &load.name);
    let calls: Vec<String> = s.calls.iter().map(|call| &call.name).chain(by_hand).cloned().collect();
    let stray = |table: &str, what: &str, mut used: Vec<&String>, known: &[String]| {
        used.retain(|name| !known.contains(name));
        used.first().map(|name| (format!("{of}.{table}.{name}"), unknown(what, name, known)))
    };
    let never: fn(&Limits) -> bool = |limits| *limits == Limits::default();
    stray("group", "load", limits.groups.keys().collect(), &groups)
        .or_else(|| stray("phase", "phase", limits.phases.keys().collect(), &phases))
        .or_else(|| stray("call", "call", limits.calls.keys().collect(), &calls))
        .or_else(|| {
            let empty = limits.groups.iter().find(|(_, limits)| never(limits));
            empty.map(|(name, _)| (format!("{of}.group.{name}"), "nothing is expected here".to_owned()))
        })
        .or_else(|| {
            limits.compare.iter().enumerate().find_map(|(n, compare)| {
                let at = |field: &str| format!("{of}.compare.{n}.{field}");
                if !groups.contains(&compare.group) {
                    return Some((at("group"), unknown("load", &compare.group, &groups)));
                }
                let names = [("phase", &compare.phase), ("with", &compare.with)];
                let stray = names.into_iter().find(|(_, name)| !phases.contains(name));
                stray.map(|(field, name)| (at(field), unknown("phase", name, &phases)))
            })
        })
        .or_else(|| {
            let asked = limits.ceiling_at_least.is_some() && s.ramp.is_none();
            asked.then(|| (format!("{of}.ceiling_at_least"), "a ceiling is found by a [ramp] only".to_owned()))
        })
        .or_else(|| {
            let named = [("restart_s", limits.restart_s), ("restart_rss_mb", limits.restart_rss_mb)];
            let asked = named.into_iter().find(|(_, limit)| limit.is_some());
            let none = s.phases.iter().all(|phase| phase.restart.is_none());
            asked
                .filter(|_| none)
                .map(|(name, _)| (format!("{of}.{name}"), "no [[phase]] restarts the node".to_owned()))
        })
}
