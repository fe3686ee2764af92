//! A route: its row of the table of operations, types and handler in one value. The router calls the handler, the OpenAPI
//! document reads the rest; the types of both come from the same function, so that they cannot differ.

use super::{
    Api, Shared,
    body::{check_written_tenant, parse_json},
    events,
};
use crate::ops::Operations;
use axum::{
    body::{Body, Bytes},
    extract::Query,
    http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Uri, header},
};
use campanile_jobfiles::suggest::explained;
use campanile_schema::{
    error::{ApiError, ErrorCode},
    operations::{Form, Handle, Http, HttpInput, HttpOutput, Operation, OperationAnswer as _, Request, Row, Verb},
};
use campanile_security::auth::Caller;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{future::Future, pin::Pin, sync::Arc};

pub(super) type Answered = Result<Response<Body>, ApiError>;
/// Of the request and of all routes, which a node without the console lists.
type ConsoleFile = fn(&Uri, &HeaderMap, fn() -> Vec<Route>) -> Answered;
type HandlerFuture = Pin<Box<dyn Future<Output = Answered> + Send>>;
const JSON: &str = "application/json";
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// A request of a known caller, ready to be handled.
pub(super) struct Call {
    pub shared: Arc<Shared>,
    pub ops: Operations,
    pub caller: Caller,
    /// Decoded path parameters.
    pub path: Vec<(String, String)>,
    pub uri: Uri,
    pub headers: HeaderMap,
    pub idempotency_key: Option<String>,
    pub body: Bytes,
}

/// How a body is expected.
#[derive(Clone, Copy)]
pub(super) struct BodyForm {
    pub schema: SchemaOf,
    /// An empty body counts as `{}`.
    pub optional: bool,
    /// Content type; of lines, the schema is that of each.
    pub media: &'static str,
    /// Whether such a body would be taken, as far as its type says.
    #[cfg_attr(not(test), expect(dead_code, reason = "examples are checked by it"))]
    pub check: fn(&[u8]) -> Result<(), ApiError>,
}

/// What a route gives.
pub(super) enum Handler {
    /// An operation of a caller with a token.
    Operation(Box<dyn Fn(Call) -> HandlerFuture + Send + Sync>),
    /// The same, with a body that is read while the answer is written.
    Streamed(Box<dyn Fn(Call, Body) -> HandlerFuture + Send + Sync>),
    /// A page for everybody.
    Page(fn(&Api, &Uri) -> Answered),
    /// The same, made from all routes.
    Listing(fn(fn() -> Vec<Route>) -> Answered),
    /// A file of the console, for everybody. A node without the console lists all routes in its place.
    Console(ConsoleFile),
    /// `/metrics`: an operator, unless the configuration opens it.
    Metrics(fn(&Api) -> Answered),
}

pub(super) struct Route {
    pub method: Verb,
    pub path: &'static str,
    pub operation: &'static str,
    pub row: &'static Row,
    pub summary: &'static str,
    /// Of a good answer; 204 has no body.
    pub status: u16,
    pub query: Option<SchemaOf>,
    pub body: Option<BodyForm>,
    pub answer: Option<SchemaOf>,
    /// Of the answer with 202: done, and to be carried on.
    pub accepted: Option<SchemaOf>,
    /// Content type of the answer.
    pub media: &'static str,
    /// Other forms that the caller can ask for, which are text.
    pub also: &'static [&'static str],
    pub idempotent_by_key: bool,
    /// Besides those that every operation can have.
    pub errors: &'static [ErrorCode],
    pub handler: Handler,
}

/// Query of a route that takes none: any parameter is refused by name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoQuery {}

/// A good answer that is not always JSON.
pub(super) enum Reply<A> {
    Json(A),
    Text(String, Vec<(&'static str, String)>),
    /// Whole, or sent while it is made.
    Other(Response<Body>),
}

impl Route {
    /// What a row says, without types and handler.
    pub fn new(row: &'static Row, http: Http) -> Self {
        Self {
            method: http.verb,
            path: http.path,
            operation: row.name,
            row,
            summary: row.summary(),
            status: http.status,
            query: None,
            body: None,
            answer: None,
            accepted: None,
            media: JSON,
            also: &[],
            idempotent_by_key: row.key.is_some(),
            errors: row.errors,
            handler: Handler::Page(|_, _| Err(ApiError::new(ErrorCode::Internal, "the route has no handler"))),
        }
    }

    /// An operation, carried out by the handler that RPC has too.
    pub fn of<O: Operation>(http: Http) -> Self
    where
        Operations: Handle<O>,
    {
        let mut route = Self::new(O::ROW, http);
        let check = |body: &[u8]| parse_json::<O::Form>(body).map(drop);
        let body =
            |optional| BodyForm { schema: SchemaGenerator::subschema_for::<O::Form>, optional, media: JSON, check };
        match http.takes {
            HttpInput::Query => route.query = Some(O::Form::json_schema),
            HttpInput::OptionalBody => route.body = Some(body(true)),
            HttpInput::Body | HttpInput::Definition => route.body = Some(body(false)),
        }
        match http.gives {
            HttpOutput::Json => route.answer = Some(SchemaGenerator::subschema_for::<O::Answer>),
            HttpOutput::Accepted => {
                route.answer = Some(SchemaGenerator::subschema_for::<O::Answer>);
                route.accepted = Some(SchemaGenerator::subschema_for::<O::Answer>);
            }
            HttpOutput::Nothing => {}
            HttpOutput::Spread => route.accepted = Some(SchemaGenerator::subschema_for::<O::Answer>),
        }
        route.handler = Handler::Operation(Box::new(move |call| {
            let form = form_of::<O::Form>(&call, http.takes);
            Box::pin(async move { carried_out::<O>(call, form?, http).await })
        }));
        route
    }

    /// Lines in, lines out.
    pub fn lines<B, A, F>(mut self, media: &'static str, handle: fn(Call, Body) -> F) -> Self
    where
        B: DeserializeOwned + JsonSchema + 'static,
        A: JsonSchema,
        F: Future<Output = Answered> + Send + 'static,
    {
        let schema = SchemaGenerator::subschema_for::<B>;
        let check = |body: &[u8]| parse_json::<B>(body).map(drop);
        self.body = Some(BodyForm { schema, optional: false, media, check });
        self.answer = Some(SchemaGenerator::subschema_for::<A>);
        self.media = media;
        self.handler = Handler::Streamed(Box::new(move |call, body| {
            let refused = no_query(&call);
            let answering = handle(call, body);
            Box::pin(async move {
                refused?;
                answering.await
            })
        }));
        self
    }

    /// Parameters in the query, and an answer that can be text.
    pub fn query_or_text<Q, A, F>(mut self, also: &'static [&'static str], handle: fn(Call, Q) -> F) -> Self
    where
        Q: DeserializeOwned + JsonSchema + 'static,
        A: Serialize + JsonSchema + 'static,
        F: Future<Output = Result<Reply<A>, ApiError>> + Send + 'static,
    {
        self.query = Some(Q::json_schema);
        self.also = also;
        self.answer = Some(SchemaGenerator::subschema_for::<A>);
        self.handler = Handler::Operation(Box::new(move |call| {
            let answering = parse_query(&call.uri).map(|query| handle(call, query));
            Box::pin(async move {
                match answering?.await? {
                    Reply::Json(answer) => json(&answer),
                    Reply::Other(response) => Ok(response),
                    Reply::Text(text, headers) => Ok(with_headers(page("text/plain; charset=utf-8", text), headers)),
                }
            })
        }));
        self
    }

    /// Parameters in the query, and server-sent events for an answer.
    pub fn events<Q, F>(mut self, handle: fn(Call, Q) -> F) -> Self
    where
        Q: DeserializeOwned + JsonSchema + 'static,
        F: Future<Output = Answered> + Send + 'static,
    {
        self.query = Some(Q::json_schema);
        self.media = events::MEDIA;
        self.handler = Handler::Operation(Box::new(move |call| {
            let answering = parse_query(&call.uri).map(|query| handle(call, query));
            Box::pin(async move { answering?.await })
        }));
        self
    }

    /// Parameters in the query, and lines for an answer.
    pub fn lines_of<Q, A, F>(mut self, media: &'static str, handle: fn(Call, Q) -> F) -> Self
    where
        Q: DeserializeOwned + JsonSchema + 'static,
        A: JsonSchema,
        F: Future<Output = Answered> + Send + 'static,
    {
        self.query = Some(Q::json_schema);
        self.answer = Some(SchemaGenerator::subschema_for::<A>);
        self.media = media;
        self.handler = Handler::Operation(Box::new(move |call| {
            let answering = parse_query(&call.uri).map(|query| handle(call, query));
            Box::pin(async move { answering?.await })
        }));
        self
    }

    /// Neither query nor body; the answer is bytes, sent while they are made.
    pub fn bytes<F>(mut self, media: &'static str, handle: fn(Call) -> F) -> Self
    where
        F: Future<Output = Answered> + Send + 'static,
    {
        self.answer = Some(|_| schemars::json_schema!({"type": "string", "format": "binary"}));
        self.media = media;
        self.handler = Handler::Operation(Box::new(move |call| {
            let refused = no_query(&call);
            let answering = handle(call);
            Box::pin(async move {
                refused?;
                answering.await
            })
        }));
        self
    }

    /// Parameters in the query; the answer is bytes, sent while they are made.
    pub fn bytes_of<Q, F>(mut self, media: &'static str, handle: fn(Call, Q) -> F) -> Self
    where
        Q: DeserializeOwned + JsonSchema + 'static,
        F: Future<Output = Answered> + Send + 'static,
    {
        self.query = Some(Q::json_schema);
        self.answer = Some(|_| schemars::json_schema!({"type": "string", "format": "binary"}));
        self.media = media;
        self.handler = Handler::Operation(Box::new(move |call| {
            let answering = parse_query(&call.uri).map(|query| handle(call, query));
            Box::pin(async move { answering?.await })
        }));
        self
    }

    /// A page for everybody, of another type than JSON perhaps.
    pub fn page(mut self, media: &'static str, page: fn(&Api, &Uri) -> Answered) -> Self {
        self.media = media;
        self.handler = Handler::Page(page);
        self
    }

    /// A page for everybody that lists the routes. It is given what makes them, since they are needed once only.
    pub fn listing(mut self, media: &'static str, page: fn(fn() -> Vec<Self>) -> Answered) -> Self {
        self.media = media;
        self.handler = Handler::Listing(page);
        self
    }

    /// A file of the console: how it is sent depends on the headers of the request.
    pub fn console(mut self, media: &'static str, file: ConsoleFile) -> Self {
        self.media = media;
        self.handler = Handler::Console(file);
        self
    }

    pub fn metrics(mut self, page: fn(&Api) -> Answered) -> Self {
        self.media = "text/plain";
        self.handler = Handler::Metrics(page);
        self
    }
}

/// What of a request does not stand in its path and headers.
fn form_of<F: DeserializeOwned + JsonSchema + 'static>(call: &Call, takes: HttpInput) -> Result<F, ApiError> {
    match takes {
        HttpInput::Query => parse_query(&call.uri),
        HttpInput::OptionalBody => body_of(call, true),
        HttpInput::Body | HttpInput::Definition => body_of(call, false),
    }
}

/// Puts a request together, has it carried out, and writes the answer.
async fn carried_out<O: Operation>(call: Call, form: O::Form, http: Http) -> Answered
where
    Operations: Handle<O>,
{
    if http.takes == HttpInput::Definition {
        check_written_tenant(&call.caller, &call.body)?;
    }
    let mut request = <O::Request as Request>::of(&call, form.body()?)?;
    if let Some(key) = call.idempotency_key {
        O::keyed(&mut request, key);
    }
    let answer = call.ops.call::<O>(&call.caller, request).await?;
    let mut response = json(&answer)?;
    let goes_on = match http.gives {
        HttpOutput::Spread | HttpOutput::Accepted => answer.is_outstanding(),
        HttpOutput::Json | HttpOutput::Nothing => false,
    };
    if goes_on {
        *response.status_mut() = StatusCode::ACCEPTED;
    }
    Ok(response)
}

/// `optional`: an empty one counts as `{}`.
fn body_of<B: DeserializeOwned + JsonSchema + 'static>(call: &Call, optional: bool) -> Result<B, ApiError> {
    no_query(call)?;
    let empty = optional && call.body.trim_ascii().is_empty();
    parse_json(if empty { b"{}" } else { &call.body })
}

fn no_query(call: &Call) -> Result<(), ApiError> {
    parse_query::<NoQuery>(&call.uri).map(|NoQuery {}| ())
}

fn parse_query<Q: DeserializeOwned>(uri: &Uri) -> Result<Q, ApiError> {
    match Query::try_from_uri(uri) {
        Ok(Query(query)) => Ok(query),
        Err(refused) => {
            let text = refused.body_text();
            let told = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
            Err(ApiError::new(ErrorCode::InvalidArgument, format!("in the query: {}", explained(told))))
        }
    }
}

/// The route's status is put on it later.
fn json<A: Serialize>(answer: &A) -> Answered {
    let body = serde_json::to_vec(answer)
        .map_err(|why| ApiError::new(ErrorCode::Internal, format!("the answer cannot be written: {why}")))?;
    Ok(page("application/json", body))
}

/// A good answer with its type.
pub(super) fn page(media: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    response
}

fn with_headers(mut response: Response<Body>, headers: Vec<(&'static str, String)>) -> Response<Body> {
    for (name, value) in headers {
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    response
}
