//! Params and answers of calls that HTTP spreads over path, header and body: in RPC they share one map, so `job.trigger` takes
//! `{jobId, manualRunId, params, reason}`. The bodies themselves are those of [`crate::view`] and refuse unknown fields.

use crate::{
    error::{ApiError, ErrorCode},
    graph::ShortGraphSpec,
    ids::{BackfillId, BulkId, JobId, RunId},
    job::JobSpec,
    operations::subject::{About, Parts, Subject},
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, DeserializeSeed, IntoDeserializer, MapAccess},
};
use std::{borrow::Cow, fmt, marker::PhantomData};

/// A field that a call has besides its body.
pub trait CallField {
    const NAME: &'static str;
    const REQUIRED: bool;
    type Value: for<'de> Deserialize<'de> + Serialize + JsonSchema + Clone + fmt::Debug + PartialEq + Send + 'static;
    /// As HTTP has it in the path; None: it does not stand there.
    fn of_path<P: Parts>(parts: &P) -> Result<Option<Self::Value>, ApiError>;
    const SUBJECT: Subject;
    fn about(value: &Self::Value) -> About<'_>;
}

/// `{<field>, ...fields of the body}`.
#[derive(Clone, Debug, PartialEq)]
pub struct Call<F: CallField, B> {
    pub field: Option<F::Value>,
    pub body: B,
}

macro_rules! field {
    (
        $(#[$doc:meta])* $name:ident = $text:literal: $type:ty, required $required:literal,
        of $parts:ident $of_path:expr, about $subject:ident $value:ident $about:expr
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name;
        impl CallField for $name {
            const NAME: &'static str = $text;
            const REQUIRED: bool = $required;
            type Value = $type;
            const SUBJECT: Subject = Subject::$subject;
            fn of_path<P: Parts>($parts: &P) -> Result<Option<$type>, ApiError> {
                $of_path
            }
            fn about($value: &$type) -> About<'_> {
                $about
            }
        }
    };
}
field!(OfJob = "jobId": JobId, required true, of parts parts.job().map(Some), about Job id About::Job(*id));
field!(OfRun = "runId": RunId, required true, of parts parts.run().map(Some), about Run id About::Run(*id));
field!(OfBackfill = "backfillId": BackfillId, required true, of parts parts.backfill().map(Some), about Backfill id About::Backfill(*id));
field!(OfBulk = "bulkId": BulkId, required true, of parts parts.bulk().map(Some), about Bulk id About::Bulk(*id));
field!(OfTenant = "tenantId": String, required true, of parts Ok(Some(parts.tenant())), about Tenant name About::Tenant(name));
field!(OfTarget = "target": String, required true, of parts Ok(Some(parts.target())), about Target _name About::Nothing);
field!(OfCalendar = "calendar": String, required true, of parts Ok(Some(parts.calendar())), about Calendar _name About::Nothing);
field!(OfNode = "node": String, required true, of parts Ok(Some(parts.node())), about Node name About::Node(name));
field!(/// HTTP's `Idempotency-Key`.
    OnceOnly = "idempotencyKey": String, required false, of _parts Ok(None), about Nothing _key About::Nothing);

/// A call about one job.
pub type JobCall<B> = Call<OfJob, B>;
/// A call about one run.
pub type RunCall<B> = Call<OfRun, B>;
/// A call about one backfill or replay.
pub type BackfillCall<B> = Call<OfBackfill, B>;
/// A call about one bulk operation.
pub type BulkCall<B> = Call<OfBulk, B>;
/// A call about one tenant.
pub type TenantCall<B> = Call<OfTenant, B>;
/// A call about one target of a tenant.
pub type TargetCall<B> = Call<OfTenant, Call<OfTarget, B>>;
/// A call about one calendar of a tenant.
pub type CalendarCall<B> = Call<OfTenant, Call<OfCalendar, B>>;
/// A call about one node of the cluster.
pub type NodeCall<B> = Call<OfNode, B>;
/// `job.create`: the job and, if wanted, a key that makes a repeated create answer with the job that was made.
pub type CreateCall = Call<OnceOnly, JobSpec>;
/// `dag.create`: the same for a DAG in its short form.
pub type DagCall = Call<OnceOnly, ShortGraphSpec>;

/// A call without a body of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoBody {}

/// A list that a caller sends: `job.createMany` takes one of specs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Items<T> {
    pub items: Vec<T>,
}

/// A list that a node answers with, such as that of `tenant.list`. A newer node may say more beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Items", description = "A list that has one page.")]
pub struct Listed<T> {
    pub items: Vec<T>,
}

impl<F: CallField, B> Call<F, B> {
    pub fn new(field: F::Value, body: B) -> Self {
        Self { field: Some(field), body }
    }

    /// The field and the body; the error is the caller's and cannot happen for a call that was read from a frame.
    pub fn parts(self) -> Result<(F::Value, B), ApiError> {
        match self.field {
            Some(field) => Ok((field, self.body)),
            None => Err(ApiError::new(ErrorCode::InvalidArgument, format!("`{}` is missing", F::NAME))),
        }
    }
}

impl<F: CallField, B: JsonSchema> JsonSchema for Call<F, B> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}_{}", B::schema_name(), F::NAME).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let field = generator.subschema_for::<F::Value>().to_value();
        let mut schema = B::json_schema(generator).to_value();
        schema["properties"][F::NAME] = field;
        Schema::try_from(schema).unwrap_or_default()
    }
}

impl<F: CallField, B: Serialize> Serialize for Call<F, B> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Flat<'a, F, B> {
            #[serde(flatten)]
            field: F,
            #[serde(flatten)]
            body: &'a B,
        }
        struct Entry<'a, F: CallField>(Option<&'a F::Value>);
        impl<F: CallField> Serialize for Entry<'_, F> {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_map(self.0.map(|value| (F::NAME, value)))
            }
        }
        Flat { field: Entry::<F>(self.field.as_ref()), body: &self.body }.serialize(s)
    }
}

/// Not with serde's `flatten`: it does not go with `deny_unknown_fields`, and buffers the whole body. The call's own field is
/// taken out on the way; the body's type sees all others and refuses those that it does not know.
impl<'de, F: CallField, B: Deserialize<'de>> Deserialize<'de> for Call<F, B> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_map(CallVisitor(PhantomData))
    }
}

struct CallVisitor<F, B>(PhantomData<(F, B)>);

impl<'de, F: CallField, B: Deserialize<'de>> de::Visitor<'de> for CallVisitor<F, B> {
    type Value = Call<F, B>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a map with the call's fields, `{}` among them", F::NAME)
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Call<F, B>, A::Error> {
        let (mut field, mut in_value) = (None, false);
        let others = Others::<F, A> { map, field: &mut field, in_value: &mut in_value };
        let body = B::deserialize(de::value::MapAccessDeserializer::new(others));
        let body = body.map_err(|why| if in_value { why } else { with_own_field::<F, A::Error>(why) })?;
        if field.is_none() && F::REQUIRED {
            return Err(de::Error::missing_field(F::NAME));
        }
        Ok(Call { field, body })
    }
}

/// The entries of a call's map without its own field, which is put aside.
struct Others<'a, F: CallField, A> {
    map: A,
    field: &'a mut Option<F::Value>,
    /// A value is being read: what is wrong then is not a name of this map.
    in_value: &'a mut bool,
}

/// The body's type refuses a wrong name by naming those that it knows; a caller may as well have meant the call's own.
fn with_own_field<F: CallField, E: de::Error>(why: E) -> E {
    let text = why.to_string();
    let Some((unknown, known)) = text.strip_prefix("unknown field `").and_then(|rest| rest.split_once("`, ")) else {
        return why;
    };
    let known: Vec<String> =
        [F::NAME].into_iter().chain(known.split('`').skip(1).step_by(2)).map(|name| format!("`{name}`")).collect();
    let expected = match known.as_slice() {
        [one] => one.clone(),
        [one, two] => format!("{one} or {two}"),
        many => format!("one of {}", many.join(", ")),
    };
    de::Error::custom(format!("unknown field `{unknown}`, expected {expected}"))
}

impl<'de, F: CallField, A: MapAccess<'de>> MapAccess<'de> for Others<'_, F, A> {
    type Error = A::Error;
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.map.next_key::<String>()? {
            if key != F::NAME {
                return seed.deserialize(key.into_deserializer()).map(Some);
            }
            if self.field.is_some() {
                return Err(de::Error::duplicate_field(F::NAME));
            }
            *self.field = self.map.next_value()?;
        }
        Ok(None)
    }
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        *self.in_value = true;
        let value = self.map.next_value_seed(seed)?;
        *self.in_value = false;
        Ok(value)
    }
}
