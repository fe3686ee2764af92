//! Files to jobs, and which of them are put aside because something is wrong in them.

use super::{
    FilesOptions,
    look::{FileKind, Looked},
};
use campanile_jobfiles::{
    crontab::{self, ImportOptions, machine},
    manifest,
};
use campanile_schema::{
    apply::{ManifestFile, ManifestProblem},
    limits::{MANIFEST_FILE_BYTES, PARSE_MS},
};
use campanile_security::text;
use campanile_serve::ops::apply::{DesiredJob, LABEL_FILE, LABELS, Set};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
    path::Path,
    time::{Duration, Instant},
};

/// What the files of a directory say.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// Manifests that are not put aside.
    files: Vec<ManifestFile>,
    /// Of every file that is not put aside.
    wanted: Vec<DesiredJob>,
    /// What is wrong, by file.
    pub broken: BTreeMap<String, Vec<String>>,
    /// The broken ones that say nothing at all. Of a crontab only the lines that are wrong do not count.
    aside: BTreeSet<String>,
    /// Files that were looked at.
    pub count: usize,
}

/// The files of `looked`, one after the other on the thread of the caller. Each has [`PARSE_MS`]; one that takes longer is
/// put aside, so that it holds up no other. `stopped` ends reading at once; then what comes back means nothing.
pub(super) fn read(options: &FilesOptions, looked: &Looked, stopped: &dyn Fn() -> bool) -> Files {
    read_each(options, looked, stopped, Duration::from_millis(PARSE_MS))
}

fn read_each(options: &FilesOptions, looked: &Looked, stopped: &dyn Fn() -> bool, most: Duration) -> Files {
    let mut files = Files { count: looked.len(), ..Files::default() };
    for (name, stamp) in looked {
        let begun = Instant::now();
        let go_on = || !stopped() && begun.elapsed() < most;
        match stamp.kind {
            FileKind::Manifest => match text_of(&options.dir.join(name)) {
                Ok(text) => of_file(ManifestFile { name: name.clone(), text }, options, &go_on, &mut files),
                Err(error) => drop(files.broken.insert(name.clone(), vec![error.to_string()])),
            },
            FileKind::Crontab => of_crontab(options, name, &go_on, &mut files),
        }
    }
    // A file in which something is wrong says nothing at all; without it others may be whole (the same job in both).
    loop {
        let read = manifest::read_while(&files.files, &options.tenant, &|| !stopped());
        if stopped() || !files.put_aside(read.problems) {
            let jobs = read.jobs.into_iter().filter_map(|job| of_manifest(job, options, &mut files));
            let wanted: Vec<DesiredJob> = jobs.collect();
            files.wanted.extend(wanted);
            return files;
        }
    }
}

/// Reads a manifest by itself first: what is wrong in it has nothing to do with others, and is found in one round.
fn of_file(file: ManifestFile, options: &FilesOptions, go_on: &dyn Fn() -> bool, files: &mut Files) {
    files.files.push(file);
    let Some(alone) = files.files.last() else { return };
    let problems = manifest::read_while(std::slice::from_ref(alone), &options.tenant, go_on).problems;
    files.put_aside(problems);
}

fn text_of(path: &Path) -> std::io::Result<String> {
    // One over the limit is told as such by who reads it.
    text::read_from(std::fs::File::open(path)?.take(MANIFEST_FILE_BYTES as u64 + 1), true)
}

fn of_manifest(job: manifest::ManifestJob, options: &FilesOptions, files: &mut Files) -> Option<DesiredJob> {
    let manifest::ManifestJob { mut spec, suspend, hazards, origin } = job;
    let (file, line) = manifest::stands(&files.files, &origin);
    if let Some(own) = spec.labels.keys().find(|name| name.starts_with(LABELS)) {
        let why = format!("line {line}: {own}: labels that begin with {LABELS} are set by the node: take it out");
        files.aside.insert(file.clone());
        files.broken.entry(file).or_default().push(why);
        return None;
    }
    if spec.tenant_id.is_empty() {
        spec.tenant_id.clone_from(&options.tenant);
    }
    spec.labels.insert(LABEL_FILE.to_owned(), file.clone());
    Some(DesiredJob { spec, suspend, hazards, place: Some((file, line)), is_crontab: false, origin: Some(origin) })
}

/// A line that cannot be understood is told and makes no job; the other lines count. What such a line made before, and what
/// other lines of the file no longer say, stays as it is until the line is mended: nobody can tell the two apart.
fn of_crontab(options: &FilesOptions, name: &str, go_on: &dyn Fn() -> bool, files: &mut Files) {
    let import = ImportOptions {
        tenant: options.tenant.clone(),
        pool: options.pool.clone(),
        as_self: false,
        now_ms: jiff::Timestamp::now().as_millisecond(),
        machine_zone: machine::zone(),
        self_user: machine::user(),
        format: crontab::Format::User,
    };
    let read = match crontab::import_while(&[options.dir.join(name)], &import, go_on) {
        Ok(read) => read,
        Err(error) => return drop(files.broken.insert(name.to_owned(), vec![error.to_string()])),
    };
    if !read.refused.is_empty() {
        let lines =
            read.refused.iter().map(|refused| format!("line {}: {}; {}", refused.line, refused.reason, refused.advice));
        files.broken.insert(name.to_owned(), lines.collect());
    }
    for job in read.jobs {
        let mut spec = job.spec;
        spec.labels.insert(LABEL_FILE.to_owned(), name.to_owned());
        let place = Some((name.to_owned(), u64::from(job.line)));
        let wanted = DesiredJob { spec, suspend: None, hazards: job.hazards, place, is_crontab: true, origin: None };
        files.wanted.push(wanted);
    }
}

impl Files {
    /// Files with problems are out. Whether there was one that was not out before.
    pub(super) fn put_aside(&mut self, problems: Vec<ManifestProblem>) -> bool {
        let before = self.aside.len();
        for problem in problems {
            self.aside.insert(problem.file.clone());
            let place = format!("line {}, column {}: ", problem.line, problem.column);
            let path = if problem.path.is_empty() { String::new() } else { format!("{}: ", problem.path) };
            self.broken.entry(problem.file).or_default().push(format!("{place}{path}{}", problem.message));
        }
        let aside = &self.aside;
        // Places in the list of files stay: origins count by them.
        for file in self.files.iter_mut().filter(|file| aside.contains(&file.name)) {
            file.text.clear();
        }
        self.wanted.retain(|job| job.place.as_ref().is_none_or(|(file, _)| !aside.contains(file)));
        self.aside.len() > before
    }

    pub(super) fn set(&self, options: &FilesOptions) -> Set {
        Set {
            wanted: self.wanted.clone(),
            files: self.files.clone(),
            problems: Vec::new(),
            passed_over: Vec::new(),
            owner: Some(options.owner.clone()),
            gone: options.gone.into(),
            kept_files: self.broken.keys().cloned().collect(),
            take_over: false,
            tenant: None,
            prune_labels: None,
            forecast: false,
        }
    }

    pub(super) fn jobs(&self) -> usize {
        self.wanted.len()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{super::look, *};
    use crate::files::WhenGone;

    fn options(dir: &Path) -> FilesOptions {
        FilesOptions {
            dir: dir.to_owned(),
            owner: "files".to_owned(),
            tenant: "default".to_owned(),
            pool: "default".to_owned(),
            gone: WhenGone::Pause,
            scan: Duration::from_secs(1),
        }
    }

    #[test]
    fn a_file_that_takes_too_long_is_put_aside_and_holds_up_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let manifest = "{apiVersion: campanile/v1, kind: Job, metadata: {name: a}, spec: {every: 1h}}\n";
        std::fs::write(dir.path().join("a.yaml"), manifest).unwrap();
        std::fs::write(dir.path().join("b.cron"), "0 5 * * * true\n").unwrap();
        let looked = look::look(dir.path()).unwrap();
        let options = options(dir.path());
        let files = read_each(&options, &looked, &|| false, Duration::ZERO);
        assert_eq!(files.jobs(), 0);
        for name in ["a.yaml", "b.cron"] {
            assert!(files.broken[name][0].contains("took too long"), "{:?}", files.broken);
        }
        assert_eq!(files.set(&options).kept_files.len(), 2, "the jobs that they made stay as they are");
        assert_eq!(read(&options, &looked, &|| false).jobs(), 2);
        // A node that stops does not wait for the rest.
        assert_eq!(read(&options, &looked, &|| true).jobs(), 0);
    }

    #[test]
    fn files_that_are_wrong_are_all_told() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..150 {
            std::fs::write(dir.path().join(format!("{number}.yaml")), "{kind: Nothing}\n").unwrap();
        }
        let looked = look::look(dir.path()).unwrap();
        let files = read(&options(dir.path()), &looked, &|| false);
        assert_eq!((files.broken.len(), files.jobs()), (150, 0));
    }
}
