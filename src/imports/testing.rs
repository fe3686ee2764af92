//! What tests of all systems share: fixtures, and checks that hold for every import.
#![allow(clippy::unwrap_used)]

use super::{Import, ImportError, ImportedJob, Options, Refused, System, import, manifests, render};
use campanile_core::schedule::Schedule;
use campanile_core::spec;
use campanile_jobfiles::manifest;
use campanile_schema::{apply::ManifestFile, job::Trigger, stored::StoredJob};
use std::path::PathBuf;

/// 2026-11-26T00:00:00Z.
pub const NOW: i64 = 1_795_651_200_000;

pub fn options() -> Options {
    Options {
        tenant: None,
        pool: None,
        zone: None,
        machine_zone: "UTC".to_owned(),
        as_self: false,
        self_user: "root".to_owned(),
        table_prefix: "QRTZ_".to_owned(),
        now_ms: NOW,
    }
}

pub fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// Imports, and checks that the manifests mean the jobs.
pub fn imported(system: System, paths: &[PathBuf], options: &Options) -> Import {
    let import = import(system, paths, options).unwrap();
    let files: Vec<ManifestFile> = manifests(system, &import)
        .unwrap()
        .into_iter()
        .map(|file| ManifestFile { name: file.name, text: file.text })
        .collect();
    let read = manifest::read(&files, "default");
    assert_eq!(read.problems, [], "the manifests cannot be read: {files:#?}");
    assert_eq!(read.jobs.len(), import.jobs.len());
    for (job, read) in import.jobs.iter().zip(&read.jobs) {
        let mut meant = job.spec.clone();
        // The form of a job says its default in more than one way.
        let same_dialect = |spec: &mut campanile_schema::job::JobSpec, other: &campanile_schema::job::JobSpec| {
            if let (Trigger::Cron { dialect, .. }, Trigger::Cron { dialect: other, .. }) =
                (&mut spec.trigger, &other.trigger)
            {
                *dialect = *other;
            }
        };
        same_dialect(&mut meant, &read.spec);
        assert_eq!(meant, read.spec, "{}", job.spec.name);
        assert_eq!(job.suspend, read.suspend, "{}", job.spec.name);
        assert_eq!(fires(&job.spec, NOW, 5), fires(&read.spec, NOW, 5), "{}", job.spec.name);
    }
    let report = render(&import);
    assert!(report.chars().all(|c| c == '\n' || !c.is_control()), "{report:?}");
    import
}

/// Instants of a job after another one, as the node computes them.
pub fn fires(spec: &campanile_schema::job::JobSpec, after: i64, count: usize) -> Vec<i64> {
    let trigger = spec::resolve_trigger(spec, None, NOW).unwrap();
    let schedule = Schedule::compile(&StoredJob::from_spec(spec, trigger, None)).unwrap();
    let next = |at: &i64| schedule.next(*at, None);
    std::iter::successors(next(&after), next).take(count).collect()
}

impl Import {
    pub fn job(&self, name: &str) -> &ImportedJob {
        let found = self.jobs.iter().find(|job| job.spec.name == name);
        found.unwrap_or_else(|| panic!("no job {name}: {}", render(self)))
    }
    pub fn refusal(&self, origin: &str) -> &Refused {
        let found = self.refused.iter().find(|refused| refused.origin.contains(origin));
        found.unwrap_or_else(|| panic!("{origin} is not refused: {}", render(self)))
    }
}

impl ImportedJob {
    pub fn tells(&self, part: &str) -> bool {
        self.changed.iter().any(|told| told.contains(part))
    }
    pub fn written(&self) -> serde_json::Value {
        super::manifest(self)
    }
}

/// Why a text as a file is not imported at all.
pub fn refused(system: System, name: &str, text: &[u8]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    match import(system, &[path], &options()) {
        Err(error @ (ImportError::Refused { .. } | ImportError::Unreadable { .. })) => error.to_string(),
        other => panic!("{name}: {other:?}"),
    }
}
