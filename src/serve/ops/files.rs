//! What is told of the directory: in the log when it changes, as metrics, in the node's facts and on `/readyz`.

use campanile_schema::{
    limits::{FILES_TOLD_BROKEN, FILES_TOLD_PER_FILE},
    time::Timestamp,
    view::{BrokenFile, FilesView},
};
use parking_lot::Mutex;
use std::{collections::BTreeMap, path::Path, sync::Arc};

/// Shared with who answers. None: no directory is configured.
#[derive(Clone, Default)]
pub struct FilesState {
    view: Arc<Mutex<Option<FilesView>>>,
}

impl FilesState {
    pub fn view(&self) -> Option<FilesView> {
        self.view.lock().clone()
    }

    /// Files that are put aside; None: no directory is configured.
    pub fn broken(&self) -> Option<usize> {
        self.view.lock().as_ref().map(|view| view.broken.len() + usize::from(view.error.is_some()))
    }

    pub fn unreadable(&self, dir: &Path, why: &str) {
        self.failed(dir, &format!("the directory cannot be read: {why}; no job is taken for gone"));
    }

    /// Not applied; what was applied before stays.
    pub fn failed(&self, dir: &Path, why: &str) {
        let mut view = self.view.lock();
        let view = view.get_or_insert_with(|| empty(dir));
        if view.error.as_deref() != Some(why) {
            tracing::warn!(dir = %dir.display(), %why, "files are not applied");
            view.error = Some(why.to_owned());
        }
        metrics::gauge!("campanile_files_broken").set((view.broken.len() + 1) as f64);
    }

    /// What is wrong, by file, and how many files and jobs there are.
    pub fn applied(
        &self,
        dir: &Path,
        wrong: &BTreeMap<String, Vec<String>>,
        (files, jobs): (usize, usize),
        now: Option<Timestamp>,
    ) {
        let broken: Vec<BrokenFile> = wrong
            .iter()
            .take(FILES_TOLD_BROKEN)
            .map(|(file, problems)| BrokenFile {
                file: file.clone(),
                problems: problems.iter().take(FILES_TOLD_PER_FILE).cloned().collect(),
            })
            .collect();
        let mut view = self.view.lock();
        let before = view.take();
        for file in &broken {
            if before.as_ref().is_none_or(|before| !before.broken.contains(file)) {
                let problems = file.problems.join("; ");
                tracing::warn!(file = %file.file, %problems, "a file is put aside; its jobs stay as they are");
            }
        }
        metrics::gauge!("campanile_files_broken").set(wrong.len() as f64);
        let shown = dir.display().to_string();
        let (files, jobs) = (files as u64, jobs as u64);
        *view = Some(FilesView { dir: shown, files, jobs, applied_at: now, broken, error: None });
    }
}

fn empty(dir: &Path) -> FilesView {
    FilesView { dir: dir.display().to_string(), files: 0, jobs: 0, applied_at: None, broken: Vec::new(), error: None }
}
