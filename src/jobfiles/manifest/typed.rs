//! A value as its type, with everything that is wrong with it: what is wrong is taken out and the rest is read again.

use super::{
    document::at,
    place::{Step, shown},
};
use crate::suggest::explained;
use campanile_schema::shape;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

/// Most that is told of one value, count: after so many it is no manifest but something else.
const WRONG: usize = 32;

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub path: Vec<Step>,
    pub message: String,
}

impl Wrong {
    pub fn new(path: &[Step], message: impl Into<String>) -> Self {
        Self { path: path.to_vec(), message: message.into() }
    }
}

/// Reads the object that stands at `path`; paths in errors begin there.
pub(super) fn read<T: DeserializeOwned + JsonSchema + 'static>(
    value: &Value,
    path: &[Step],
    wrong: &mut Vec<Wrong>,
) -> Option<T> {
    if !value.is_object() {
        wrong.push(Wrong::new(path, "is an object: write name: value"));
        return None;
    }
    let mut rest = value.clone();
    let before = wrong.len();
    let mut taken: Vec<Vec<Step>> = Vec::new();
    let misfits = shape::misfits::<T>(value, WRONG);
    // From the last to the first, so that the items of a list that stand before keep their numbers.
    for misfit in misfits.iter().rev() {
        take_out(&mut rest, &misfit.path);
    }
    for shape::Misfit { path: inside, message } in misfits {
        wrong.push(Wrong { path: [path, &inside].concat(), message });
        taken.push(inside);
    }
    loop {
        let error = match serde_path_to_error::deserialize::<_, T>(&rest) {
            Ok(read) if wrong.len() == before => return Some(read),
            Ok(_) => return None,
            Err(error) => error,
        };
        let text = error.inner().to_string();
        let here = aim(&rest, steps(error.path()), &text);
        let inside = as_written(&here, &taken);
        let missing = quoted(&text, "missing field `");
        // It is missed because it was taken out: that was told.
        let is_told = missing.is_some_and(|field| {
            taken.iter().any(|path| {
                path.split_last()
                    .is_some_and(|(last, parent)| parent == inside && *last == Step::Field(field.to_owned()))
            })
        });
        if !is_told {
            wrong.push(Wrong { path: [path, &inside].concat(), message: told(&text) });
        }
        if missing.is_some() || wrong.len() - before >= WRONG || !take_out(&mut rest, &here) {
            return None;
        }
        taken.push(inside);
    }
}

/// The path in the text of a path in what is left of it: items that were taken out of a list before it count.
fn as_written(here: &[Step], taken: &[Vec<Step>]) -> Vec<Step> {
    let mut path = Vec::with_capacity(here.len());
    for step in here {
        let step = match step {
            Step::Field(name) => Step::Field(name.clone()),
            Step::Item(index) => {
                let mut gone: Vec<usize> = taken
                    .iter()
                    .filter_map(|taken| match taken.split_last() {
                        Some((Step::Item(index), parent)) if parent == path => Some(*index),
                        _ => None,
                    })
                    .collect();
                gone.sort_unstable();
                Step::Item(gone.into_iter().fold(*index, |index, gone| index + usize::from(gone <= index)))
            }
        };
        path.push(step);
    }
    path
}

/// An unknown field is named by its place, so the sentence need not list all that are known when one of them was meant.
fn told(text: &str) -> String {
    let explained = explained(text);
    match (quoted(text, "unknown field `"), explained.rsplit_once("; did you mean ")) {
        (Some(_), Some((_, meant))) => format!("unknown field; did you mean {meant}"),
        _ => explained,
    }
}

/// The word behind a phrase of serde's.
fn quoted<'a>(text: &'a str, phrase: &str) -> Option<&'a str> {
    text.split_once(phrase)?.1.split('`').next()
}

fn steps(path: &serde_path_to_error::Path) -> Vec<Step> {
    path.iter()
        .filter_map(|segment| match segment {
            Segment::Seq { index } => Some(Step::Item(*index)),
            Segment::Map { key } => Some(Step::Field(key.clone())),
            // Of a value that is told apart by a field: the field has its own step, or none.
            Segment::Enum { .. } | Segment::Unknown => None,
        })
        .collect()
}

/// The path of what is wrong: of an unknown field the field, also where serde only knows what is around it.
fn aim(value: &Value, mut path: Vec<Step>, text: &str) -> Vec<Step> {
    while !path.is_empty() && at(value, &path).is_none() {
        path.pop();
    }
    if let Some(field) = quoted(text, "unknown field `")
        && path.last() != Some(&Step::Field(field.to_owned()))
        && at(value, &path).is_some_and(|around| around.get(field).is_some())
    {
        path.push(Step::Field(field.to_owned()));
    }
    path
}

fn take_out(value: &mut Value, path: &[Step]) -> bool {
    let Some((last, parent)) = path.split_last() else { return false };
    let around = parent.iter().try_fold(value, |value, step| match step {
        Step::Field(name) => value.get_mut(name),
        Step::Item(index) => value.get_mut(index),
    });
    match (around, last) {
        (Some(Value::Object(fields)), Step::Field(name)) => fields.remove(name).is_some(),
        (Some(Value::Array(items)), Step::Item(index)) => {
            let is_there = *index < items.len();
            if is_there {
                items.remove(*index);
            }
            is_there
        }
        _ => false,
    }
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", shown(&self.path), self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use campanile_schema::job::JobSpec;
    use serde_json::json;

    fn told(value: &Value) -> Vec<String> {
        let mut wrong = Vec::new();
        assert!(read::<JobSpec>(value, &[Step::Field("spec".to_owned())], &mut wrong).is_none());
        wrong.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let value = json!({
            "name": 7, "trigger": {"type": "CRON", "expr": "* * * * *", "timezon": "UTC"}, "timeout": 5,
            "retryPolicy": {"maxAtempts": 3, "backoff": "CUBIC"}, "labels": {"a": 1, "b": "x", "c": true},
        });
        let told = told(&value);
        for expected in [
            "spec.name: this is a number, and text is wanted: write it in quotes",
            "spec.trigger.timezon: unknown field; did you mean `timezone`?",
            "spec.timeout: unknown field; did you mean `timeoutSec`?",
            "spec.retryPolicy.maxAtempts: unknown field; did you mean `maxAttempts`?",
            "spec.retryPolicy.backoff: 'CUBIC' is not one of FIXED, EXPONENTIAL",
            "spec.labels.a: this is a number, and text is wanted: write it in quotes",
            "spec.labels.c: this is true or false, and text is wanted: write it in quotes",
        ] {
            assert!(told.iter().any(|line| line == expected), "{expected} is not in {told:#?}");
        }
        assert_eq!(told.len(), 7, "{told:#?}");
    }

    #[test]
    fn an_item_of_a_list_is_told_once_and_by_its_own_place() {
        let action = json!({"kind": "COMMAND", "command": [1, "x", true, "y", null]});
        let value = json!({"name": "a", "trigger": {"type": "MANUAL"}, "action": action});
        let told = told(&value);
        // Of a value that is told apart by a field serde knows no place inside; what matters is that each is told once.
        assert!(!told.is_empty(), "{told:#?}");
        assert!(told.len() <= 3, "{told:#?}");
        let list = json!({"items": [1, "x", true, "y", 2]});
        #[derive(Debug, serde::Deserialize, JsonSchema)]
        struct List {
            #[serde(rename = "items")]
            _items: Vec<String>,
        }
        let mut wrong = Vec::new();
        assert!(read::<List>(&list, &[], &mut wrong).is_none());
        let told: Vec<String> = wrong.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "items[0]: this is a number, and text is wanted: write it in quotes",
                "items[2]: this is true or false, and text is wanted: write it in quotes",
                "items[4]: this is a number, and text is wanted: write it in quotes",
            ]
        );
    }

    #[test]
    fn it_ends_with_what_is_missing_or_no_object() {
        assert_eq!(
            told(&json!({"labels": {"a": 1}})),
            ["spec.labels.a: this is a number, and text is wanted: write it in quotes", "spec: missing field `name`"]
        );
        assert_eq!(told(&json!(["x"])), ["spec: is an object: write name: value"]);
        let many: serde_json::Map<String, Value> = (0..100).map(|n| (format!("field{n}"), json!(n))).collect();
        assert_eq!(told(&many.into()).len(), WRONG);
    }
}
