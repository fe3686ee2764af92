//! Timers of systemd with the services that they start.
//!
//! A timer becomes a job for each `OnCalendar=`, or an interval for `OnUnitActiveSec=` and `OnUnitInactiveSec=`. The service becomes the
//! command. A timer is refused when a setting without a counterpart would change what the command does; the report names the others.
//!
//! Files: `timer` when; `service` what; `calendar` `OnCalendar=`; `exec` `ExecStart=`; `unit` unit files.

mod calendar;
mod exec;
mod service;
mod timer;
mod unit;

use super::{
    ImportError, Options, Place,
    draft::{DEFAULT_TENANT, Draft, Drafts, plain},
    source, text,
};
use campanile_schema::job::ConcurrencyPolicy;
use std::path::{Path, PathBuf};
use unit::Unit;

const LABEL: &str = "systemd.timer";

/// Why something makes no job: where, why, and what to do.
struct Refusal {
    place: Place,
    reason: String,
    advice: String,
}

impl Refusal {
    fn new(place: &Place, reason: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { place: place.clone(), reason: reason.into(), advice: advice.into() }
    }
}

pub fn read(paths: &[PathBuf], options: &Options, drafts: &mut Drafts) -> Result<(), ImportError> {
    let files = source::files(paths, &["timer"])?;
    let is_timer = |path: &&PathBuf| path.extension().is_some_and(|ending| ending == "timer");
    for path in files.iter().filter(is_timer) {
        one(path, &files, options, drafts)?;
    }
    for path in files.iter().filter(|path| !is_timer(path)) {
        // Services are named beside their timers.
        if path.extension().is_none_or(|ending| ending != "service") {
            let place = Place { file: source::shown(path), line: 0 };
            drafts.refuse(&place, "", "is neither a .timer nor a .service", "name the unit files, or their directory");
        }
    }
    drafts.note(
        "systemd starts a timer up to AccuracySec= (1 minute by default) late, so that machines wake up together; here it starts at the \
         instant itself",
    );
    Ok(())
}

fn one(path: &Path, files: &[PathBuf], options: &Options, drafts: &mut Drafts) -> Result<(), ImportError> {
    let name = source::file_name(path);
    let origin = format!("timer {name}");
    let unit = Unit::read(path)?;
    let place = Place { file: source::shown(path), line: 0 };
    for odd in &unit.odd {
        drafts.note(format!("{odd}: is not a setting and is ignored"));
    }
    let made = job(path, &name, &unit, files, options)?;
    match made {
        Ok(jobs) => jobs.into_iter().for_each(|job| drafts.add(Draft { origin: origin.clone(), ..job })),
        Err(refusal) => {
            let at = if refusal.place.file.is_empty() { &place } else { &refusal.place };
            drafts.refuse(at, &origin, text::sentence(&refusal.reason), refusal.advice);
        }
    }
    Ok(())
}

fn job(
    path: &Path,
    name: &str,
    unit: &Unit,
    files: &[PathBuf],
    options: &Options,
) -> Result<Result<Vec<Draft>, Refusal>, ImportError> {
    let base = name.strip_suffix(".timer").unwrap_or(name);
    if base.ends_with('@') {
        let at = Place { file: source::shown(path), line: 0 };
        let advice = format!("link the file as {base}INSTANCE.timer, and import that");
        return Ok(Err(Refusal::new(&at, "it is a template, of which systemd starts only instances", advice)));
    }
    let started = unit.last("Timer", "Unit").map_or_else(|| format!("{base}.service"), |unit| unit.value.clone());
    if !started.ends_with(".service") {
        let at = unit.last("Timer", "Unit").map(|setting| setting.place.clone()).unwrap_or_default();
        return Ok(Err(Refusal::new(&at, format!("it starts {started}, which is not a service"), "")));
    }
    let Some(service) = find(path, &started, files) else {
        let at = Place { file: source::shown(path), line: 0 };
        let reason = format!("its service {started} is neither beside it nor among the paths");
        return Ok(Err(Refusal::new(&at, reason, "name the directory of the service too")));
    };
    let service_unit = Unit::read(&service)?;
    let made = timer::triggers(unit, options).and_then(|timer| {
        let work = service::work(&service, &started, &service_unit, options)?;
        Ok((timer, work))
    });
    let (timer, work) = match made {
        Ok(made) => made,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let tenant = options.tenant.as_deref().unwrap_or(DEFAULT_TENANT);
    let several = timer.triggers.len() > 1;
    let of_trigger = |(index, (trigger, place)): (usize, (_, Place))| {
        let numbered = if index == 0 { base.to_owned() } else { format!("{base}-{}", index + 1) };
        let mut spec = plain(tenant, &text::name(&["systemd", &numbered]), trigger);
        // A service that is active is not started a second time.
        spec.concurrency_policy = ConcurrencyPolicy::Forbid;
        spec.timeout_sec = work.timeout_sec.unwrap_or(spec.timeout_sec);
        spec.action = Some(work.action.clone());
        spec.description = unit_description(&service_unit).or_else(|| unit_description(unit));
        spec.labels.insert(LABEL.to_owned(), text::label(name));
        if let Some(pool) = &options.pool {
            pool.clone_into(&mut spec.executor_selector);
        }
        let mut changed = timer.changed.clone();
        changed.extend(work.changed.iter().cloned());
        if several {
            let told = "the timer has several OnCalendar=: each is a job, and instants that two of them name run twice";
            changed.push(told.to_owned());
        }
        Draft { spec, suspend: None, place, origin: String::new(), changed }
    };
    Ok(Ok(timer.triggers.into_iter().enumerate().map(of_trigger).collect()))
}

fn unit_description(unit: &Unit) -> Option<String> {
    text::description(&unit.last("Unit", "Description")?.value)
}

/// The unit file of a service: beside the timer, or among the paths; of `a@b.service` also its template.
fn find(timer: &Path, service: &str, files: &[PathBuf]) -> Option<PathBuf> {
    let template = service.split_once('@').map(|(prefix, _)| format!("{prefix}@.service"));
    let names: Vec<String> = std::iter::once(service.to_owned()).chain(template).collect();
    // A name of a file is no path into other directories.
    let names = names.iter().filter(|name| !name.contains('/'));
    let candidates = names.flat_map(|name| {
        let beside = std::iter::once(timer.with_file_name(name));
        let named = files.iter().filter(move |file| source::file_name(file) == *name).cloned();
        let around = files.iter().map(move |file| file.with_file_name(name));
        beside.chain(named).chain(around)
    });
    candidates.into_iter().find(|path| path.is_file())
}

#[cfg(test)]
mod tests;
