//! Files to jobs, and which of them are put aside because something is wrong in them.

use super::{
    FilesOptions,
    look::{Kind, Looked},
};
use crate::{
    crontab::{self, ImportOptions, machine},
    manifest,
    ops::apply::{LABEL_FILE, LABELS, Set, Wanted},
};
use campanile_schema::{
    apply::{ManifestFile, ManifestProblem},
    limits::MANIFEST_FILE_BYTES,
};
use std::{collections::BTreeMap, io::Read, path::Path};

/// What the files of a directory say.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// Manifests that are not put aside.
    files: Vec<ManifestFile>,
    /// Of every file that is not put aside.
    wanted: Vec<Wanted>,
    /// What is wrong, by file.
    pub broken: BTreeMap<String, Vec<String>>,
    /// Files that were looked at.
    pub count: usize,
}

pub(super) fn read(options: &FilesOptions, looked: &Looked) -> Files {
    let mut files = Files { count: looked.len(), ..Files::default() };
    for (name, stamp) in looked {
        match stamp.kind {
            Kind::Manifest => match text(&options.dir.join(name)) {
                Ok(text) => files.files.push(ManifestFile { name: name.clone(), text }),
                Err(error) => drop(files.broken.insert(name.clone(), vec![error.to_string()])),
            },
            Kind::Crontab => of_crontab(options, name, &mut files),
        }
    }
    // A file in which something is wrong says nothing at all; without it others may be whole (the same job in both).
    loop {
        let read = manifest::read(&files.files, &options.tenant);
        if !files.put_aside(read.problems) {
            let jobs = read.jobs.into_iter().filter_map(|job| of_manifest(job, options, &mut files));
            let wanted: Vec<Wanted> = jobs.collect();
            files.wanted.extend(wanted);
            return files;
        }
    }
}

fn text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    // One over the limit is told as such by who reads it.
    std::fs::File::open(path)?.take(MANIFEST_FILE_BYTES as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

fn of_manifest(job: manifest::Found, options: &FilesOptions, files: &mut Files) -> Option<Wanted> {
    let manifest::Found { mut spec, suspend, hazards, origin } = job;
    let (file, line) = manifest::stands(&files.files, &origin);
    if let Some(own) = spec.labels.keys().find(|name| name.starts_with(LABELS)) {
        let why = format!("line {line}: {own}: labels that begin with {LABELS} are set by the node: take it out");
        files.broken.entry(file).or_default().push(why);
        return None;
    }
    if spec.tenant_id.is_empty() {
        spec.tenant_id.clone_from(&options.tenant);
    }
    spec.labels.insert(LABEL_FILE.to_owned(), file.clone());
    Some(Wanted { spec, suspend, hazards, place: Some((file, line)), is_crontab: false, origin: Some(origin) })
}

/// As cron does, a crontab with a line that cannot be understood is passed over as a whole.
fn of_crontab(options: &FilesOptions, name: &str, files: &mut Files) {
    let import = ImportOptions {
        tenant: options.tenant.clone(),
        pool: options.pool.clone(),
        as_self: false,
        now_ms: jiff::Timestamp::now().as_millisecond(),
        machine_zone: machine::zone(),
        self_user: machine::user(),
        format: crontab::Format::User,
    };
    let read = match crontab::import(&[options.dir.join(name)], &import) {
        Ok(read) => read,
        Err(error) => return drop(files.broken.insert(name.to_owned(), vec![error.to_string()])),
    };
    if !read.refused.is_empty() {
        let lines =
            read.refused.iter().map(|refused| format!("line {}: {}; {}", refused.line, refused.reason, refused.advice));
        files.broken.insert(name.to_owned(), lines.collect());
        return;
    }
    for job in read.jobs {
        let mut spec = job.spec;
        spec.labels.insert(LABEL_FILE.to_owned(), name.to_owned());
        let place = Some((name.to_owned(), u64::from(job.line)));
        let wanted = Wanted { spec, suspend: None, hazards: job.hazards, place, is_crontab: true, origin: None };
        files.wanted.push(wanted);
    }
}

impl Files {
    /// Files with problems are out. Whether there was one that was not out before.
    pub(super) fn put_aside(&mut self, problems: Vec<ManifestProblem>) -> bool {
        let before = self.broken.len();
        for problem in problems {
            let place = format!("line {}, column {}: ", problem.line, problem.column);
            let path = if problem.path.is_empty() { String::new() } else { format!("{}: ", problem.path) };
            self.broken.entry(problem.file).or_default().push(format!("{place}{path}{}", problem.message));
        }
        let broken = &self.broken;
        // Places in the list of files stay: origins count by them.
        for file in self.files.iter_mut().filter(|file| broken.contains_key(&file.name)) {
            file.text.clear();
        }
        self.wanted.retain(|job| job.place.as_ref().is_none_or(|(file, _)| !broken.contains_key(file)));
        self.broken.len() > before
    }

    pub(super) fn set(&self, options: &FilesOptions) -> Set {
        Set {
            wanted: self.wanted.clone(),
            files: self.files.clone(),
            problems: Vec::new(),
            owner: Some(options.owner.clone()),
            gone: options.gone.into(),
            kept_files: self.broken.keys().cloned().collect(),
            take_over: false,
            tenant: None,
        }
    }

    pub(super) fn jobs(&self) -> usize {
        self.wanted.len()
    }
}
