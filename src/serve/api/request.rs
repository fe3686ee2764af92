//! Handles one request: id, route, token, path, body, operation, answer.

use super::{
    Api, Shared, access, body, console,
    link::TrackedBody,
    listener::{Peer, RequestConnection},
    places::PlaceKind,
    problem,
    route::{Answered, Call, Handler, Route},
    routes,
};
use crate::ops::{CameFrom, Operations};
use axum::{
    RequestExt,
    body::{Body, Bytes},
    extract::{ConnectInfo, RawPathParams, Request},
    http::{HeaderMap, HeaderValue, Response, StatusCode, Uri, header},
    middleware::Next,
};
use campanile_jobfiles::suggest::closest;
use campanile_schema::{
    error::{ApiError, ErrorCode},
    limits::{HTTP_CALL_MS, HTTP_PARSE_APART_BYTES, REQUEST_ID_BYTES},
    operations::{API, Verb, rows},
    trace::{TRACEPARENT, TraceContext},
};
use campanile_security::auth::Role;
use std::{
    fmt,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::{Duration, Instant},
};
use tracing::Instrument;

/// The id of a request: the caller's, or one of ours.
#[derive(Clone)]
struct RequestId(String);

/// Which operation answered, for the metrics.
#[derive(Clone, Copy)]
struct Operation(&'static str);

/// The counter of requests exists from the start, with each operation and the statuses that it may answer with.
pub fn requests_at_zero() {
    for route in routes::table() {
        let refusals =
            route.errors.iter().chain(&[ErrorCode::Unauthenticated, ErrorCode::Internal, ErrorCode::NotReady]);
        let mut statuses: Vec<u16> = refusals.map(|code| code.status()).chain([route.status]).collect();
        statuses.sort_unstable();
        statuses.dedup();
        for status in statuses {
            let status = status.to_string();
            metrics::counter!("campanile_http_requests_total", "operation" => route.operation, "status" => status)
                .increment(0);
        }
    }
}

/// Gives every request its id and every answer its id and measure.
pub(super) async fn number_and_measure(mut request: Request, next: Next) -> Response<Body> {
    let id = given_id(request.headers()).unwrap_or_else(next_id);
    request.extensions_mut().insert(RequestId(id.clone()));
    let begun = Instant::now();
    let connection =
        request.extensions().get::<ConnectInfo<RequestConnection>>().map(|ConnectInfo(connection)| connection.clone());
    let answering = connection.as_ref().map(|connection| connection.link.clone().begin());
    let is_kept = connection.is_some_and(|connection| connection.link.kind == PlaceKind::Health);
    let refused = access::check_host(&request).and_then(|()| if is_kept { health_only(request.uri()) } else { Ok(()) });
    let is_last = is_kept || refused.is_err();
    let mut response = match refused {
        Ok(()) => next.run(request).await,
        Err(error) => problem::response(error, Some(id.clone())),
    };
    let operation = response.extensions().get::<Operation>().map_or("none", |Operation(name)| name);
    let status = response.status().as_u16().to_string();
    metrics::counter!("campanile_http_requests_total", "operation" => operation, "status" => status).increment(1);
    metrics::histogram!("campanile_http_request_ms", "operation" => operation)
        .record(begun.elapsed().as_secs_f64() * 1e3);
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert("x-request-id", id);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if is_last {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response.map(|body| TrackedBody::body(body, answering))
}

/// All that is answered when callers have taken every place.
fn health_only(uri: &Uri) -> Result<(), ApiError> {
    if [rows::PAGE_HEALTHZ.path(), rows::PAGE_READYZ.path()].contains(&uri.path()) {
        return Ok(());
    }
    let message = "the node has as many connections as it takes: connect again later";
    Err(ApiError::new(ErrorCode::Overloaded, message).retry_after(1.0))
}

fn given_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get("x-request-id")?.to_str().ok()?;
    (!id.is_empty() && id.len() <= REQUEST_ID_BYTES && id.bytes().all(|b| b.is_ascii_graphic())).then(|| id.to_owned())
}

/// Different after each start, counting within one.
fn next_id() -> String {
    static START: LazyLock<u32> = LazyLock::new(|| getrandom::u32().unwrap_or(0));
    static COUNT: AtomicU64 = AtomicU64::new(1);
    format!("{:08x}-{}", *START, COUNT.fetch_add(1, Ordering::Relaxed))
}

fn id_of(request: &Request) -> Option<String> {
    request.extensions().get::<RequestId>().map(|RequestId(id)| id.clone())
}

/// Answers a request that belongs to a route.
pub(super) async fn answer(shared: Arc<Shared>, route: Arc<Route>, request: Request) -> Response<Body> {
    let id = id_of(&request);
    let shown = id.clone().unwrap_or_default();
    // What is logged on the way has the id.
    let span = tracing::info_span!("request", id = %shown);
    let answered = match whole(handle(&shared, &route, request)).instrument(span).await {
        Ok(answered) => answered,
        Err(what) => {
            tracing::error!(operation = route.operation, request = %shown, "bug: the handler panicked: {what}");
            Err(ApiError::new(
                ErrorCode::Internal,
                format!("a bug in {}; report it with the request id", route.operation),
            ))
        }
    };
    let mut response = match answered {
        Ok(response) => good(&route, response),
        Err(error) => {
            if error.known() == ErrorCode::Internal {
                tracing::error!(operation = route.operation, request = %shown, %error, "call failed");
            }
            problem::response(error, id)
        }
    };
    response.extensions_mut().insert(Operation(route.operation));
    response
}

fn good(route: &Route, mut response: Response<Body>) -> Response<Body> {
    if response.status() == StatusCode::OK {
        *response.status_mut() = StatusCode::from_u16(route.status).unwrap_or(StatusCode::OK);
    }
    if response.status() == StatusCode::NO_CONTENT {
        response.headers_mut().remove(header::CONTENT_TYPE);
        *response.body_mut() = Body::empty();
    }
    response
}

async fn handle(shared: &Arc<Shared>, route: &Arc<Route>, mut request: Request) -> Answered {
    let api = &shared.api;
    let id = id_of(&request);
    let peer =
        request.extensions().get::<ConnectInfo<RequestConnection>>().map(|ConnectInfo(connection)| connection.peer);
    match &route.handler {
        Handler::Page(page) => page(api, request.uri()),
        Handler::Listing(page) => page(routes::table),
        Handler::Console(file) => file(request.uri(), request.headers(), routes::table),
        Handler::Metrics(page) => {
            if !api.open_metrics {
                let ops = called_from(api, peer, id, None);
                let caller = access::caller(api, request.headers(), peer);
                let caller = caller.map_err(|error| ops.refused(None, rows::PAGE_METRICS, error))?;
                if !matches!(caller.role, Role::Operator | Role::Metrics) {
                    let message = "metrics are about all tenants: for operators, and for tokens of the role metrics";
                    let error = ApiError::new(ErrorCode::Forbidden, message);
                    return Err(ops.refused(Some(&caller), rows::PAGE_METRICS, error));
                }
            }
            page(api)
        }
        Handler::Operation(operation) => {
            let (mut call, body) = call_of(shared, route, &mut request, peer).await?;
            call.body = match route.method {
                Verb::Get | Verb::Delete => Bytes::new(),
                Verb::Post | Verb::Put => access::while_valid(call.revoked(), body::read(body)).await?,
            };
            body::check_type(&call.headers, &call.body)?;
            if route.method == Verb::Get {
                // It may wait long for what it reads.
                return access::while_valid(call.revoked(), within_time(operation(call))).await;
            }
            if call.body.len() <= HTTP_PARSE_APART_BYTES {
                return within_time(operation(call)).await;
            }
            // The body is read before the first wait of the answer.
            let (route, parsers) = (route.clone(), api.operations.parsers.clone());
            let begun = parsers.run(move |_| match &route.handler {
                Handler::Operation(operation) => Some(operation(call)),
                Handler::Page(_)
                | Handler::Listing(_)
                | Handler::Console(_)
                | Handler::Metrics(_)
                | Handler::Streamed(_) => None,
            });
            match begun.await? {
                Some(answering) => within_time(answering).await,
                None => Err(ApiError::new(ErrorCode::Internal, "the route takes no body")),
            }
        }
        Handler::Streamed(operation) => {
            let (call, body) = call_of(shared, route, &mut request, peer).await?;
            within_time(operation(call, body)).await
        }
    }
}

/// What a request is, before its body: nobody unknown makes the node read megabytes.
async fn call_of(
    shared: &Arc<Shared>,
    route: &Route,
    request: &mut Request,
    peer: Option<Peer>,
) -> Result<(Call, Body), ApiError> {
    let ops = called_from(&shared.api, peer, id_of(request), trace_of(request.headers()));
    let caller = access::caller(&shared.api, request.headers(), peer);
    let caller = caller.map_err(|error| ops.refused(None, route.row, error))?;
    if caller.role == Role::Metrics {
        // Here and not only in the operations: none that is added later may forget it.
        let message = "a credential for metrics reads /metrics only";
        return Err(ops.refused(Some(&caller), route.row, ApiError::new(ErrorCode::Forbidden, message)));
    }
    shared.api.authenticator.admit(&caller)?;
    body::check_encoding(request.headers())?;
    let path = path_of(request).await?;
    let idempotency_key = if route.idempotent_by_key { key(request.headers())? } else { None };
    let (parts, body) = std::mem::take(request).into_parts();
    let shared = shared.clone();
    let (uri, headers) = (parts.uri, parts.headers);
    Ok((Call { shared, ops, caller, path, uri, headers, idempotency_key, body: Bytes::new() }, body))
}

fn called_from(api: &Api, peer: Option<Peer>, request_id: Option<String>, trace: Option<TraceContext>) -> Operations {
    let address = peer.map(|Peer(address)| address.ip());
    api.operations.called_from(CameFrom { address, request_id, trace })
}

/// The caller's span. As W3C Trace Context asks, one that cannot be read, or that was sent twice, counts as none.
fn trace_of(headers: &HeaderMap) -> Option<TraceContext> {
    let mut given = headers.get_all(TRACEPARENT).iter();
    let only = given.next().filter(|_| given.next().is_none())?;
    only.to_str().ok()?.parse().ok()
}

async fn within_time(answering: impl Future<Output = Answered>) -> Answered {
    let limit = Duration::from_millis(HTTP_CALL_MS);
    tokio::time::timeout(limit, answering).await.unwrap_or_else(|_| {
        let message = format!("no answer within {} s; read before you ask again", limit.as_secs());
        Err(ApiError::new(ErrorCode::Timeout, message))
    })
}

async fn path_of(request: &mut Request) -> Result<Vec<(String, String)>, ApiError> {
    let params = request
        .extract_parts::<RawPathParams>()
        .await
        .map_err(|why| ApiError::new(ErrorCode::InvalidArgument, format!("in the path: {}", why.body_text())))?;
    Ok(params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

fn key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let wrong = |_| ApiError::new(ErrorCode::InvalidArgument, "Idempotency-Key: only visible ASCII characters");
    headers.get("idempotency-key").map(|value| value.to_str().map(str::to_owned).map_err(wrong)).transpose()
}

/// A panic in a handler is an answer to its caller, not a broken connection.
async fn whole<F: Future>(future: F) -> Result<F::Output, String> {
    let mut future = pin!(future);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            Poll::Ready(Err(text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()))
        }
    })
    .await
}

/// Paths where others have their workflows, and what to say of them.
fn is_elsewhere(path: &str) -> Option<&'static str> {
    let rest = path.strip_prefix(API).unwrap_or(path).trim_start_matches('/');
    let is = |what: &str| rest == what || rest.strip_prefix(what).is_some_and(|rest| rest.starts_with('/'));
    ["jobs/dags", "dag", "dags", "workflows"].iter().any(|what| is(what)).then_some(
        "a DAG is a job whose action is of the kind DAG: make one with POST /api/v1/jobs/dag, and read it and its runs as a job",
    )
}

/// 405 with what the path does take.
pub(super) async fn wrong_method(allowed: Vec<&'static str>, request: Request) -> Response<Body> {
    if is_elsewhere(request.uri().path()).is_some() {
        return unknown_path(request).await;
    }
    let allowed = allowed.join(", ");
    let message = format!("{} is not for this path; it takes {allowed}", request.method());
    let mut response = problem::response(ApiError::new(ErrorCode::MethodNotAllowed, message), id_of(&request));
    if let Ok(allowed) = HeaderValue::from_str(&allowed) {
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    response
}

/// 404 with the closest path there is. To a browser that opens a page: the console, which finds the page by the path.
pub(super) async fn unknown_path(request: Request) -> Response<Body> {
    if console::opens_page(&request)
        && let Some(index) = console::index(request.headers())
    {
        return index;
    }
    let path = request.uri().path();
    let message =
        is_elsewhere(path).map_or_else(|| unknown(request.uri()), |told| format!("{}: {told}", path.escape_debug()));
    let error = ApiError::new(ErrorCode::UnknownMethod, message);
    problem::response(error, id_of(&request))
}

fn unknown(uri: &Uri) -> String {
    static PATHS: LazyLock<Vec<&'static str>> = LazyLock::new(|| routes::table().iter().map(|r| r.path).collect());
    let path = uri.path();
    let shown = path.chars().take(200).collect::<String>();
    let there_is = |path: &str| PATHS.iter().any(|known| fits(known, path));
    let meant = if there_is(path.trim_end_matches('/')) {
        Some(path.trim_end_matches('/').to_owned())
    } else if there_is(&format!("{API}{path}")) {
        Some(format!("{API}{path}"))
    } else {
        // Ids are taken out, so that /api/v1/job/17 is compared as /api/v1/job/0.
        let plain = |path: &str| {
            let segment = |s: &str| {
                if s.starts_with('{') || s.parse::<u64>().is_ok() { "0".to_owned() } else { s.to_owned() }
            };
            path.split('/').map(segment).collect::<Vec<_>>().join("/")
        };
        let wanted = plain(path);
        let alike = PATHS.iter().map(|known| (plain(known), *known));
        let alike: Vec<_> = alike.filter(|(known, _)| known.split('/').count() == wanted.split('/').count()).collect();
        let closest = closest(&wanted, alike.iter().map(|(known, _)| known.as_str()));
        alike.iter().find(|(known, _)| Some(known.as_str()) == closest).map(|(_, path)| (*path).to_owned())
    };
    let hint = Hint(meant);
    format!("there is no path {shown}{hint}; /openapi.json lists all")
}

struct Hint(Option<String>);
impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |meant| write!(f, "; did you mean {meant}?"))
    }
}

/// Whether a path belongs to a pattern such as `/jobs/{jobId}`.
fn fits(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<&str>, Vec<&str>) = (pattern.split('/').collect(), path.split('/').collect());
    pattern.len() == path.len()
        && pattern
            .iter()
            .zip(&path)
            .all(|(wanted, given)| wanted == given || wanted.starts_with('{') && !given.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_wrong_path_hears_of_the_right_one() {
        for (wrong, right) in [
            ("/api/v1/jobs/", "did you mean /api/v1/jobs?"),
            ("/jobs/17", "did you mean /api/v1/jobs/17?"),
            ("/api/v1/job", "did you mean /api/v1/jobs?"),
            ("/api/v1/job/17", "did you mean /api/v1/jobs/{jobId}?"),
            ("/api/v1/run/17/cancel", "did you mean /api/v1/runs/{runId}/cancel?"),
            ("/healthy", "did you mean /healthz?"),
        ] {
            let told = unknown(&wrong.parse().unwrap());
            assert!(told.contains(right), "{wrong}: {told}");
        }
        assert!(!unknown(&"/favicon.ico".parse().unwrap()).contains("did you mean"));
    }

    #[test]
    fn ids_of_callers_are_taken_over_when_they_are_harmless() {
        let with = |id: &str| HeaderMap::from_iter([("x-request-id".parse().unwrap(), id.parse().unwrap())]);
        assert_eq!(given_id(&with("abc-1")).as_deref(), Some("abc-1"));
        assert_eq!(given_id(&with("a b")), None);
        assert_eq!(given_id(&with(&"x".repeat(REQUEST_ID_BYTES + 1))), None);
        assert_ne!(next_id(), next_id());
    }
}
