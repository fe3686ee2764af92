//! Callers' methods: reads the typed params, calls the operation, writes the answer. Which methods there are, the table of
//! operations says.

use crate::ops::Operations;
use campanile_jobfiles::suggest::{closest, explained};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    limits::RPC_LIST_WEIGHT,
    operations::{Handle, Operation, Visit, Weight, all, visit_all},
    rpc::{
        calls::NoBody,
        codec::{Params, explain},
        encode::answer,
    },
    shape::{first_misfit, shown},
};
use campanile_security::auth::Caller;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::{collections::HashMap, future::Future, pin::Pin, sync::LazyLock};

type AnswerFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
type Answers = for<'a> fn(&'a Operations, &'a Caller, u32, Params<'a>, &'a mut Vec<u8>) -> AnswerFuture<'a>;

/// A method of callers.
struct Method {
    weight: u32,
    answers: Answers,
}

/// The operations by their names.
static METHODS: LazyLock<HashMap<&'static str, Method>> = LazyLock::new(|| {
    let mut methods = Methods(HashMap::new());
    visit_all::<Operations, _>(&mut methods);
    methods.0
});

struct Methods(HashMap<&'static str, Method>);

impl Visit<Operations> for Methods {
    fn visit<O: Operation>(&mut self)
    where
        Operations: Handle<O>,
    {
        let weight = match O::ROW.weight {
            Weight::One => 1,
            Weight::List => RPC_LIST_WEIGHT,
        };
        self.0.insert(O::ROW.name, Method { weight, answers: answers::<O> });
    }
}

fn answers<'a, O: Operation>(
    ops: &'a Operations,
    who: &'a Caller,
    id: u32,
    params: Params<'a>,
    out: &'a mut Vec<u8>,
) -> AnswerFuture<'a>
where
    Operations: Handle<O>,
{
    Box::pin(async move {
        let answered = match read(params) {
            Ok(request) => ops.call::<O>(who, request).await,
            Err(refused) => Err(refused),
        };
        answer(out, id, &answered);
    })
}

/// How much of a connection's room a call takes besides its bytes: those that answer with lists hold large answers.
pub(super) fn weight(method: &str) -> u32 {
    METHODS.get(method).map_or(1, |method| method.weight)
}

/// The params of a call as its type; the error names the field with its path and the closest known one.
pub(super) fn read<T: DeserializeOwned + JsonSchema + 'static>(params: Params<'_>) -> Result<T, ApiError> {
    let (misfit, _) = first_misfit::<T, _>(&mut rmp_serde::Deserializer::from_read_ref(params.map()?));
    if let Some(misfit) = misfit {
        let detail = serde_json::json!({"field": shown(&misfit.path)});
        return Err(ApiError::new(ErrorCode::InvalidArgument, misfit.to_string()).with_detail(detail));
    }
    let mut map = rmp_serde::Deserializer::from_read_ref(params.map()?);
    serde_path_to_error::deserialize(&mut map).map_err(|why| {
        let path = why.path().to_string();
        let told = explained(&explain(why.inner()));
        let message =
            if path == "." || told.contains(&format!("field `{path}`")) { told } else { format!("{path}: {told}") };
        ApiError::new(ErrorCode::InvalidArgument, message)
    })
}

/// The answer of one call, encoded into `out`.
pub(super) async fn call(ops: &Operations, who: &Caller, id: u32, method: &str, params: Params<'_>, out: &mut Vec<u8>) {
    match METHODS.get(method) {
        Some(method) => (method.answers)(ops, who, id, params, out).await,
        None => answer::<NoBody>(out, id, &Err(unknown(method))),
    }
}

/// What callers can call, for telling the one that was meant.
fn of_callers() -> impl Iterator<Item = &'static str> {
    all().filter(|row| row.rpc.is_ok() && row.is_of_callers()).map(|row| row.name)
}

fn unknown(method: &str) -> ApiError {
    let shown: String = method.chars().take(64).collect();
    let meant = closest(&shown, of_callers()).map(|known| format!("; did you mean {known}?")).unwrap_or_default();
    ApiError::new(ErrorCode::UnknownMethod, format!("there is no method {}{meant}", shown.escape_debug()))
}
