//! The pages beside the API: what this is, what the codes mean, health, metrics, the OpenAPI document.

use super::{
    Api, markdown, openapi,
    route::{Answered, page},
    routes,
};
use axum::http::Uri;
use campanile_schema::error::{ApiError, ErrorCode};
use serde_json::json;
use std::{fmt::Write, sync::LazyLock};

const STYLE: &str = "<style>body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}\
code{background:#8882;padding:0 .2em}td{padding:.1rem .8rem .1rem 0;vertical-align:top}</style>";

pub(super) fn healthz(_: &Api, _: &Uri) -> Answered {
    Ok(page("text/plain", "ok\n"))
}

pub(super) fn readyz(api: &Api, _: &Uri) -> Answered {
    let reasons = api.operations.scheduler.not_ready_reasons();
    if reasons.is_empty() {
        let mut ready = json!({"ready": true});
        // It can take calls all the same; which files they are is for operators (system.info).
        if let Some(broken) = api.operations.files.broken() {
            ready["brokenFiles"] = json!(broken);
        }
        return Ok(page("application/json", ready.to_string()));
    }
    let error = ApiError::new(ErrorCode::NotReady, reasons.join("; "));
    Err(error.with_detail(json!({"ready": false, "reasons": reasons})).retry_after(1.0))
}

pub(super) fn metrics(api: &Api) -> Answered {
    match &api.metrics {
        Some(metrics) => Ok(page("text/plain; version=0.0.4; charset=utf-8", metrics.render())),
        None => Err(ApiError::new(ErrorCode::NotFound, "this node records no metrics")),
    }
}

pub(super) fn openapi(_: &Api, _: &Uri) -> Answered {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| openapi::document().to_string());
    Ok(page("application/json", DOCUMENT.as_str()))
}

pub(super) fn job_schema(_: &Api, _: &Uri) -> Answered {
    Ok(page("application/schema+json", crate::manifest::schema_text()))
}

pub(super) fn root(_: &Api, _: &Uri) -> Answered {
    static PAGE: LazyLock<String> = LazyLock::new(root_text);
    Ok(page("text/html; charset=utf-8", PAGE.as_str()))
}

pub(super) fn errors(_: &Api, _: &Uri) -> Answered {
    static PAGE: LazyLock<String> = LazyLock::new(errors_text);
    Ok(page("text/html; charset=utf-8", PAGE.as_str()))
}

fn root_text() -> String {
    let mut text = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Campanile</title>{STYLE}<h1>Campanile {}</h1>\
         <p>A distributed job scheduler: it starts the right job at the right time, hands it reliably to the right \
         executor, and can prove what happened.</p>\
         <p><a href=/openapi.json>OpenAPI document</a> · <a href=/errors>error codes</a> · <a href=/readyz>ready?</a> \
         · <a href=/healthz>alive?</a> · <a href=/metrics>metrics</a></p>\
         <p>Calls need <code>Authorization: Bearer TOKEN</code>. From a shell: <code>campanile job list</code>, \
         <code>campanile --help</code>.</p><table>",
        env!("CARGO_PKG_VERSION")
    );
    for route in routes::table() {
        let (verb, path) = (route.method.as_str(), route.path);
        let _ = write!(text, "<tr><td><code>{verb}</code><td><code>{path}</code><td>{}", route.summary);
    }
    text.push_str("</table></html>\n");
    text
}

/// `docs/errors.md`, so that the link of every problem leads to what there is to say about it.
fn errors_text() -> String {
    let mut text = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Campanile: error codes</title>{STYLE}<table>\
         <tr><th align=left>code<th align=left>meaning<th align=left>exit code of the CLI"
    );
    for code in ErrorCode::ALL {
        let (name, title, exit) = (code.as_str(), code.title(), code.exit_code());
        let _ = write!(text, "<tr><td><a href=#{name}><code>{name}</code></a><td>{title}<td>{exit}");
    }
    text.push_str("</table>");
    markdown::to_html(include_str!("../../docs/errors.md"), &mut text);
    text.push_str("</html>\n");
    text
}
