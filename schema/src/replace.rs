//! The body of a replace, which takes back what a read gave.
//!
//! Callers read a job, change a field and send it back. What they read has names that belong to the scheduler and not
//! to the definition, so a replace takes them too, as `{version, spec}` and as the job itself. Names that change by
//! themselves are ignored. `jobId`, `version` and `createdAt` say which job was read and when: they are kept in
//! [`ReadBack`] and compared, so that nobody overwrites another job, or a change that they have not seen. All other
//! names are refused, as in a create.

use crate::{
    error::{ApiError, ErrorCode},
    ids::JobId,
    job::{JobSpec, JobView},
    time::Timestamp,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, DeserializeSeed, IgnoredAny, IntoDeserializer, MapAccess},
};
use std::{borrow::Cow, fmt};

/// Names of a job as read that change by themselves, or by other calls.
pub const IGNORED: [&str; 7] =
    ["status", "updatedAt", "nextFireAt", "lastRunAt", "lastRunState", "runCount", "quarantineReason"];
const JOB_ID: &str = "jobId";
const VERSION: &str = "version";
const CREATED_AT: &str = "createdAt";
const SPEC: &str = "spec";

/// `PUT /jobs/{jobId}`, `job.replace`: the whole definition and the version that it replaces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplaceBody {
    pub version: u64,
    pub spec: JobSpec,
    /// What came with the definition because it was read from a job.
    #[serde(skip)]
    pub read: ReadBack,
}

/// Which job a definition was read from. None = the caller left the name out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadBack {
    pub job_id: Option<JobId>,
    pub version: Option<u64>,
    pub created_at: Option<Timestamp>,
    /// The names stood inside of `spec`.
    pub is_nested: bool,
}

/// A definition alone, as a create takes it or as a read gave it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplacedSpec {
    pub spec: JobSpec,
    pub read: ReadBack,
}

impl ReplaceBody {
    pub fn new(version: u64, spec: JobSpec) -> Self {
        Self { version, spec, read: ReadBack::default() }
    }
}

impl ReadBack {
    /// Whether a comparison needs the job as it is now.
    pub fn needs_job(&self) -> bool {
        self.created_at.is_some()
    }

    /// Refuses a definition that was read from another job, or at another version than the one that it replaces.
    pub fn check(&self, job: JobId, version: u64, created_at: Option<Timestamp>) -> Result<(), ApiError> {
        let place = if self.is_nested { "spec." } else { "" };
        let wrong = |message: String| Err(ApiError::new(ErrorCode::InvalidArgument, message));
        if let Some(read) = self.job_id.filter(|read| *read != job) {
            return wrong(format!(
                "{place}{JOB_ID}: the definition was read from job {read} and cannot replace that of job {job}: \
                 address job {read}, or leave {JOB_ID} out"
            ));
        }
        if let (Some(read), Some(now)) = (self.created_at, created_at)
            && read != now
        {
            return wrong(format!(
                "{place}{CREATED_AT}: it cannot be changed, and is {now}: send that, or leave {CREATED_AT} out"
            ));
        }
        if let Some(read) = self.version.filter(|read| *read != version) {
            let message = format!(
                "{place}{VERSION}: the definition was read at version {read} and version {version} would be replaced: \
                 read the job again, repeat the change and send that, or leave {place}{VERSION} out"
            );
            return Err(ApiError::new(ErrorCode::StaleVersion, message));
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for ReplaceBody {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_map(BodyVisitor)
    }
}

impl<'de> Deserialize<'de> for ReplacedSpec {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_map(SpecVisitor)
    }
}

struct BodyVisitor;

impl<'de> de::Visitor<'de> for BodyVisitor {
    type Value = ReplaceBody;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ReplaceBody, A::Error> {
        let mut apart = Apart::default();
        let flat = JobSpec::deserialize(de::value::MapAccessDeserializer::new(Definition {
            map,
            apart: &mut apart,
            takes_spec: true,
        }));
        let missing = |name| Err(de::Error::missing_field(name));
        let Some(nested) = apart.spec.take() else {
            return match flat {
                Err(why) if !apart.has_ended && !apart.in_value => Err(with_own_fields(why)),
                Err(_) if apart.has_ended && !apart.has_fields && apart.read.version.is_none() => missing(VERSION),
                Err(_) if apart.has_ended && !apart.has_fields => missing(SPEC),
                Err(why) => Err(why),
                Ok(_) if apart.read.version.is_none() => missing(VERSION),
                Ok(spec) => Ok(ReplaceBody { version: apart.read.version.unwrap_or_default(), spec, read: apart.read }),
            };
        };
        match flat {
            // There are no fields of a definition beside `spec`: its reader found none, as it should be.
            Err(_) if apart.has_ended && !apart.has_fields => {}
            Err(why) if !apart.has_ended => return Err(why),
            Err(_) | Ok(_) => {
                let why = "fields of a definition stand beside `spec`: write all of them in it, or leave `spec` out";
                return Err(de::Error::custom(why));
            }
        }
        let Some(version) = apart.read.version else { return missing(VERSION) };
        // The names of the body itself, such as the job of the path, say the same about the definition as its own.
        let read = ReadBack {
            job_id: nested.read.job_id.or(apart.read.job_id),
            created_at: nested.read.created_at.or(apart.read.created_at),
            ..nested.read
        };
        Ok(ReplaceBody { version, spec: nested.spec, read })
    }
}

struct SpecVisitor;

impl<'de> de::Visitor<'de> for SpecVisitor {
    type Value = ReplacedSpec;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ReplacedSpec, A::Error> {
        let mut apart = Apart::default();
        let fields = Definition { map, apart: &mut apart, takes_spec: false };
        let spec = JobSpec::deserialize(de::value::MapAccessDeserializer::new(fields))?;
        Ok(ReplacedSpec { spec, read: ReadBack { is_nested: true, ..apart.read } })
    }
}

/// What is taken out of a map on the way to the definition's reader.
#[derive(Default)]
struct Apart {
    read: ReadBack,
    spec: Option<ReplacedSpec>,
    has_fields: bool,
    has_ended: bool,
    /// A value is being read: what is wrong then is not a name of this map.
    in_value: bool,
}

/// The entries of a map that belong to the definition.
struct Definition<'a, A> {
    map: A,
    apart: &'a mut Apart,
    takes_spec: bool,
}

impl<'de, A: MapAccess<'de>> Definition<'_, A> {
    fn value<T: Deserialize<'de>>(&mut self) -> Result<T, A::Error> {
        self.apart.in_value = true;
        let value = self.map.next_value()?;
        self.apart.in_value = false;
        Ok(value)
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Definition<'_, A> {
    type Error = A::Error;
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(name) = self.map.next_key::<String>()? {
            match name.as_str() {
                JOB_ID => self.apart.read.job_id = self.value()?,
                VERSION => self.apart.read.version = self.value()?,
                CREATED_AT => self.apart.read.created_at = self.value()?,
                SPEC if self.takes_spec => self.apart.spec = Some(self.value()?),
                name if IGNORED.contains(&name) => drop(self.value::<IgnoredAny>()?),
                name if self.apart.spec.is_some() => return Err(de::Error::unknown_field(name, &[VERSION, SPEC])),
                _ => {
                    self.apart.has_fields = true;
                    return seed.deserialize(name.into_deserializer()).map(Some);
                }
            }
        }
        self.apart.has_ended = true;
        Ok(None)
    }
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.apart.in_value = true;
        let value = self.map.next_value_seed(seed)?;
        self.apart.in_value = false;
        Ok(value)
    }
}

/// The definition's reader refuses a wrong name by naming those that it knows; a caller may as well have meant the
/// body's own.
fn with_own_fields<E: de::Error>(why: E) -> E {
    let text = why.to_string();
    match text.strip_prefix("unknown field `").and_then(|rest| rest.split_once("`, expected one of ")) {
        Some((unknown, known)) => {
            de::Error::custom(format!("unknown field `{unknown}`, expected one of `{VERSION}`, `{SPEC}`, {known}"))
        }
        None => why,
    }
}

/// A job as read, of which only what a definition needs is required.
fn as_read(generator: &mut SchemaGenerator, what: &str, required: &[&str]) -> Schema {
    let mut schema = JobView::json_schema(generator).to_value();
    if let Some(schema) = schema.as_object_mut() {
        let told = format!(
            "{what}: names that are not of the definition are ignored, but jobId, version and createdAt must be those \
             of the job."
        );
        schema.remove("unevaluatedProperties");
        schema.insert("description".to_owned(), told.into());
        schema.insert("required".to_owned(), required.into());
        schema.insert("additionalProperties".to_owned(), false.into());
    }
    Schema::try_from(schema).unwrap_or_default()
}

impl JsonSchema for ReplacedSpec {
    fn schema_name() -> Cow<'static, str> {
        "ReplacedSpec".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        as_read(generator, "A definition, or a job as it was read", &["name", "trigger"])
    }
}

/// A job as it was read, with the version at which it was.
struct ReplacedJob;

impl JsonSchema for ReplacedJob {
    fn schema_name() -> Cow<'static, str> {
        "ReplacedJob".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        as_read(generator, "A job as it was read", &["name", "trigger", "version"])
    }
}

/// `{version, spec}`.
struct Replacement;

impl JsonSchema for Replacement {
    fn schema_name() -> Cow<'static, str> {
        "Replacement".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let spec = generator.subschema_for::<ReplacedSpec>();
        let version = generator.subschema_for::<u64>();
        json_schema!({
            "type": "object",
            "properties": {"version": version, "spec": spec},
            "required": ["version", "spec"],
            "additionalProperties": false,
        })
    }
}

impl JsonSchema for ReplaceBody {
    fn schema_name() -> Cow<'static, str> {
        "ReplaceBody".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (replacement, job) = (generator.subschema_for::<Replacement>(), generator.subschema_for::<ReplacedJob>());
        json_schema!({
            "description": "The definition and the version it replaces: `{version, spec}`, or a job as it was read.",
            "anyOf": [replacement, job],
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::{Value, json};

    fn read(body: Value) -> Result<ReplaceBody, String> {
        serde_json::from_value(body).map_err(|why| why.to_string())
    }

    fn view() -> Value {
        json!({
            "jobId": 7, "status": "ENABLED", "version": 3, "createdAt": "2026-02-24T08:00:00.000Z",
            "updatedAt": "2026-02-24T08:00:00.000Z", "nextFireAt": null, "lastRunAt": null, "lastRunState": null,
            "runCount": 2, "quarantineReason": "x", "name": "report", "trigger": {"type": "MANUAL"}, "timeoutSec": 60,
        })
    }

    #[test]
    fn a_job_as_read_is_a_body_and_a_spec() {
        let flat = read(view()).unwrap();
        assert_eq!((flat.version, flat.spec.timeout_sec, flat.read.job_id), (3, 60, Some(JobId(7))));
        let nested = read(json!({"spec": view(), "version": 4})).unwrap();
        assert_eq!((nested.version, nested.read.version, nested.read.is_nested), (4, Some(3), true));
        assert_eq!(nested.spec, flat.spec);
    }

    #[test]
    fn every_name_of_a_view_is_known() {
        let view: JobView = serde_json::from_value(view()).unwrap();
        read(serde_json::to_value(view).unwrap()).unwrap();
    }

    #[test]
    fn other_names_are_refused_where_they_stand() {
        let spec = json!({"name": "a", "trigger": {"type": "MANUAL"}});
        let refused = |body: Value| read(body).unwrap_err();
        let mut wrong = view();
        wrong["tiemoutSec"] = json!(1);
        assert!(
            refused(wrong.clone()).starts_with("unknown field `tiemoutSec`, expected one of `version`, `spec`, `name`")
        );
        let nested = refused(json!({"version": 1, "spec": wrong}));
        assert!(nested.starts_with("unknown field `tiemoutSec`, expected one of `name`"), "{nested}");
        assert!(refused(json!({"version": 1, "spec": spec, "x": 1})).starts_with("unknown field `x`"));
        assert!(refused(json!({"name": "a", "version": 1, "spec": spec})).contains("`spec`"));
        assert_eq!(refused(json!({"spec": spec})), "missing field `version`");
        assert_eq!(refused(json!({"version": 1})), "missing field `spec`");
        assert_eq!(refused(json!({})), "missing field `version`");
        assert_eq!(refused(spec), "missing field `version`");
        assert!(
            serde_json::from_str::<ReplaceBody>(r#"{"version":1,"spec":{"name":"a","trigger":{"type":"MANUAL"}}"#)
                .is_err()
        );
    }
}
