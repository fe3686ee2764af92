//! HTTP/JSON for callers, under `/api/v1`, and the plain pages beside it (`/healthz`, `/readyz`, `/metrics`,
//! `/openapi.json`, `/errors`, `/api`). `/` and every path that a browser opens as a page show the console.
//!
//! The routes come from the table of operations ([`campanile_schema::operations`]). The router and the OpenAPI document
//! are both built from [`routes::table`], so that they cannot differ. A request passes these steps: request id, token,
//! path and query, body, operation ([`crate::ops`]), answer. Every refusal is `application/problem+json` with a stable
//! code.
//!
//! Never here: permissions or rules about jobs (they are in `ops` and in the core), and answers before their state is
//! durable.

mod access;
mod archive;
mod audit;
mod body;
mod bulk;
mod connection;
mod console;
mod cors;
mod events;
mod examples;
mod follow;
mod lines;
mod link;
mod listener;
mod log;
mod markdown;
mod openapi;
mod openapi_shapes;
mod pages;
mod places;
mod problem;
mod process;
mod request;
mod route;
mod routes;
mod session;
mod stream;
mod watching;

pub use body::parse_json;
pub use cors::Origins;
pub use problem::Problem;

pub use listener::refusals_at_zero;
pub use request::requests_at_zero;

use crate::ops::Operations;
use axum::{
    Router, middleware,
    routing::{MethodFilter, MethodRouter, on},
};
use campanile_schema::{
    limits::{BULK_CALLS, COMPRESS_FROM_BYTES, HTTP_FOLLOWERS, HTTP_STOP_MS},
    operations::Verb,
};
use campanile_security::{
    auth::{Authenticator, Caller},
    sessions::BrowserSessions,
    tls::ServingCertificate,
};
use listener::{BoundedListener, RequestConnection};
use metrics_exporter_prometheus::PrometheusHandle;
use route::Route;
use serde_json::Value;
use std::{collections::BTreeMap, future::Future, io, sync::Arc, time::Duration};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
};
use tower_http::compression::{
    CompressionLayer, Predicate,
    predicate::{NotForContentType, SizeAbove},
};

/// What the HTTP side needs of a node.
#[derive(Clone)]
pub struct Api {
    pub operations: Operations,
    pub authenticator: Authenticator,
    /// Sessions of the console.
    pub sessions: Arc<BrowserSessions>,
    /// Dev mode: who a caller from this machine without a token is. None = a token is always needed.
    pub open_to_loopback: Option<Caller>,
    /// Rendered by `/metrics`. None = there is nothing to render (404).
    pub metrics: Option<PrometheusHandle>,
    /// `/metrics` without a token.
    pub open_metrics: bool,
    /// Pages of which origins may call from a browser.
    pub origins: Origins,
}

/// What all requests share.
struct Shared {
    api: Api,
    /// Places for bulk creates.
    bulk: Arc<Semaphore>,
    /// Places for followers of logs.
    follows: Arc<Semaphore>,
    /// Turns true when the node stops: what is sent without end ends.
    stopping: watch::Receiver<bool>,
}

/// The OpenAPI document of all routes.
pub fn openapi_document() -> Value {
    openapi::document(&routes::table())
}

/// Every route of the table, with request ids and problem answers around it.
fn router(api: Api, stopping: watch::Receiver<bool>) -> Router {
    let places = |count| Arc::new(Semaphore::new(count));
    let cross_origin = api.origins.layer();
    let shared = Arc::new(Shared { api, bulk: places(BULK_CALLS), follows: places(HTTP_FOLLOWERS), stopping });
    let mut paths: BTreeMap<&'static str, Vec<Arc<Route>>> = BTreeMap::new();
    for route in routes::table() {
        paths.entry(route.path).or_default().push(Arc::new(route));
    }
    let mut router = Router::new();
    for (path, routes) in paths {
        let allowed: Vec<&'static str> = routes.iter().map(|route| route.method.as_str()).collect();
        let mut methods = MethodRouter::new();
        for route in routes {
            let filter = match route.method {
                Verb::Get => MethodFilter::GET,
                Verb::Post => MethodFilter::POST,
                Verb::Put => MethodFilter::PUT,
                Verb::Delete => MethodFilter::DELETE,
            };
            let shared = shared.clone();
            let answer = move |request| request::answer(shared.clone(), route.clone(), request);
            methods = methods.merge(on(filter, answer));
        }
        router = router.route(path, methods.fallback(move |request| request::wrong_method(allowed.clone(), request)));
    }
    let router = router.fallback(request::unknown_path).layer(middleware::from_fn(request::number_and_measure));
    let router = match cross_origin {
        Some(layer) => router.layer(layer),
        None => router,
    };
    router.layer(compressed())
}

/// Large answers are packed for callers who take that. Not those that are sent while they are made: packing would hold them back.
fn compressed() -> CompressionLayer<impl Predicate> {
    let whole = SizeAbove::new(COMPRESS_FROM_BYTES)
        .and(NotForContentType::const_new(events::MEDIA))
        .and(NotForContentType::const_new(bulk::MEDIA))
        .and(NotForContentType::const_new(archive::MEDIA));
    CompressionLayer::new().compress_when(whole)
}

/// Serves until `stop` is done; then lets what is under way end, for a bounded time. `tls`: None = in clear.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Arc<ServingCertificate>>,
    api: Api,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (stopping, mut stopped) = watch::channel(false);
    let app = router(api, stopped.clone()).into_make_service_with_connect_info::<RequestConnection>();
    let drained = async move {
        stop.await;
        stopping.send_replace(true);
    };
    let serving = axum::serve(BoundedListener::new(listener, tls), app).with_graceful_shutdown(drained);
    let overdue = async move {
        // The sender is dropped only after it has sent, so an error cannot come first.
        let _ = stopped.wait_for(|stopped| *stopped).await;
        tokio::time::sleep(Duration::from_millis(HTTP_STOP_MS)).await;
    };
    tokio::select! {
        served = serving => served,
        () = overdue => {
            tracing::warn!("HTTP calls still under way are cut off");
            Ok(())
        }
    }
}
