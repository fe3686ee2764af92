//! Imported jobs as files of manifests.

use super::{Import, ImportedJob, System};
use campanile_jobfiles::manifest;
use campanile_schema::limits::IMPORT_OUT_BYTES;
use serde_json::{Value, json};

/// A file of manifests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub name: String,
    pub text: String,
}

/// YAML that `campanile apply` reads, in as many files as it needs: `quartz.yaml`, or `quartz-1.yaml` and so on.
pub fn manifests(system: System, import: &Import) -> Result<Vec<Written>, String> {
    let mut texts: Vec<String> = Vec::new();
    for job in &import.jobs {
        let document = format!("# {}\n{}", source(job), yaml(job)?);
        match texts.last_mut().filter(|text| text.len() + document.len() < IMPORT_OUT_BYTES) {
            Some(text) => *text += &format!("---\n{document}"),
            None => texts.push(document),
        }
    }
    let name = |index: usize| match texts.len() {
        1 => format!("{}.yaml", system.name()),
        _ => format!("{}-{}.yaml", system.name(), index + 1),
    };
    let names: Vec<String> = (0..texts.len()).map(name).collect();
    Ok(names.into_iter().zip(texts).map(|(name, text)| Written { name, text }).collect())
}

/// What stands above a manifest, on one line.
fn source(job: &ImportedJob) -> String {
    super::text::sentence(&format!("{}, {}", job.origin, job.place))
}

fn yaml(job: &ImportedJob) -> Result<String, String> {
    manifest::yaml(&manifest::manifest(&job.spec, job.suspend)?)
}

/// A job's manifest as a value.
pub fn value(job: &ImportedJob) -> Value {
    manifest::manifest(&job.spec, job.suspend).map_or(Value::Null, |manifest| json!(manifest))
}
