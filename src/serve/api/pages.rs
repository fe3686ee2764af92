//! The pages beside the API: what this is, what the codes mean, health, metrics, the OpenAPI document.

use super::{
    Api, markdown, openapi, process,
    route::{Answered, Route, page},
};
use crate::ops::Operations;
use axum::http::Uri;
use campanile_actors::measure;
use campanile_schema::error::{ApiError, ErrorCode};
use serde_json::{Value, json};
use std::{
    fmt::Write,
    sync::{LazyLock, OnceLock},
};

const STYLE: &str = "<style>body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}\
code{background:#8882;padding:0 .2em}td{padding:.1rem .8rem .1rem 0;vertical-align:top}</style>";

pub(super) fn healthz(_: &Api, _: &Uri) -> Answered {
    Ok(page("text/plain", "ok\n"))
}

pub(super) fn readyz(api: &Api, _: &Uri) -> Answered {
    let reasons = api.operations.scheduler.not_ready_reasons();
    if reasons.is_empty() {
        return Ok(page("application/json", ready(&api.operations, api.authenticator.refused().is_some()).to_string()));
    }
    let error = ApiError::new(ErrorCode::NotReady, reasons.join("; "));
    Err(error.with_detail(json!({"ready": false, "reasons": reasons})).retry_after(1.0))
}

/// With what is wrong although it can take calls.
fn ready(operations: &Operations, tokens_refused: bool) -> Value {
    let mut ready = json!({"ready": true});
    // Which files they are is for operators (system.info).
    if let Some(broken) = operations.files.broken() {
        ready["brokenFiles"] = json!(broken);
    }
    // What is wrong with it stands in the log, and `doctor` says it.
    if tokens_refused {
        ready["tokenFile"] = json!("NOT_IN_FORCE");
    }
    // Names only: how much room there is stands in the metrics.
    let short = operations.scheduler.disk_short();
    if !short.is_empty() {
        ready["diskShort"] = json!(short);
    }
    ready
}

pub(super) fn metrics(api: &Api) -> Answered {
    match &api.metrics {
        Some(metrics) => Ok(page("text/plain; version=0.0.4; charset=utf-8", metrics.render() + &read_now())),
        None => Err(ApiError::new(ErrorCode::NotFound, "this node records no metrics")),
    }
}

/// Metrics that the recorder does not have.
fn read_now() -> String {
    let mut page = measure::page();
    measure::by_label(&mut page);
    process::show(&mut page);
    page.text()
}

pub(super) fn openapi(routes: fn() -> Vec<Route>) -> Answered {
    static DOCUMENT: OnceLock<String> = OnceLock::new();
    let document = DOCUMENT.get_or_init(|| openapi::document(&routes()).to_string());
    Ok(page("application/json", document.as_str()))
}

pub(super) fn job_schema(_: &Api, _: &Uri) -> Answered {
    Ok(page("application/schema+json", campanile_jobfiles::manifest::schema_text()))
}

pub(super) fn api(routes: fn() -> Vec<Route>) -> Answered {
    static PAGE: OnceLock<String> = OnceLock::new();
    Ok(page("text/html; charset=utf-8", PAGE.get_or_init(|| root_text(&routes(), "")).as_str()))
}

/// What `/` is on a node without a console.
pub(super) fn without_console(routes: fn() -> Vec<Route>) -> Answered {
    const HOW: &str = "<p><b>This node was built without its web console.</b> Run <code>make console</code> (it needs \
                       Node.js and npm), build the node again, and the console is here.</p>";
    static PAGE: OnceLock<String> = OnceLock::new();
    Ok(page("text/html; charset=utf-8", PAGE.get_or_init(|| root_text(&routes(), HOW)).as_str()))
}

pub(super) fn errors(_: &Api, _: &Uri) -> Answered {
    static PAGE: LazyLock<String> = LazyLock::new(errors_text);
    Ok(page("text/html; charset=utf-8", PAGE.as_str()))
}

/// `note`: HTML at the top.
fn root_text(routes: &[Route], note: &str) -> String {
    let mut text = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Campanile</title>{STYLE}<h1>Campanile {}</h1>\
         <p>A distributed job scheduler: it starts the right job at the right time, hands it reliably to the right \
         executor, and can prove what happened.</p>{note}\
         <p><a href=/openapi.json>OpenAPI document</a> · <a href=/errors>error codes</a> · <a href=/readyz>ready?</a> \
         · <a href=/healthz>alive?</a> · <a href=/metrics>metrics</a></p>\
         <p>Calls need <code>Authorization: Bearer TOKEN</code>. From a shell: <code>campanile job list</code>, \
         <code>campanile --help</code>.</p><table>",
        env!("CARGO_PKG_VERSION")
    );
    for route in routes {
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
    markdown::to_html(include_str!("../../../docs/errors.md"), &mut text);
    text.push_str("</html>\n");
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use campanile_actors::{disk_pressure::FREE_LEAST_BYTES, maintenance::Retention, scheduler::Scheduler};
    use campanile_ports::DiskRoom;
    use campanile_schema::ids::ClusterId;
    use campanile_store::{memory::MemoryStore, samples};
    use std::time::{Duration, Instant};

    /// The first look is at the start of a session. It only ends a test that hangs.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// One thread, so that the recorder of this test is the session's too.
    #[tokio::test]
    async fn a_node_that_works_says_what_its_disk_is_short_of() {
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
        let _measured_there = metrics::set_default_local_recorder(&recorder);
        let (store, opened) = MemoryStore::open(4, ClusterId(1));
        let free = FREE_LEAST_BYTES - 1;
        store.pretend_room(DiskRoom { journal: 1, snapshots: 2, history: 3, free, size: 1 << 40 });
        let session = samples::session(&store, opened, Retention::default()).await;
        let operations = Operations::new(Scheduler::new());
        assert_eq!(ready(&operations, false), json!({"ready": true}), "nobody has looked");
        operations.scheduler.set_session(Ok(session.handles.clone()));
        let deadline = Instant::now() + PATIENCE;
        while ready(&operations, false) != json!({"ready": true, "diskShort": ["FREE_ROOM_LOW"]}) {
            assert!(Instant::now() < deadline, "{}", ready(&operations, false));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        session.stop();
        let shown = recorder.handle().render();
        for line in [
            "campanile_journal_stored_bytes 1",
            "campanile_snapshots_stored_bytes 2",
            "campanile_history_stored_bytes 3",
            "campanile_disk_free_bytes 2147483647",
            "campanile_disk_size_bytes 1099511627776",
            "campanile_disk_short{reason=\"FREE_ROOM_LOW\"} 1",
            "campanile_disk_short{reason=\"HISTORY_OUTGROWS_DISK\"} 0",
        ] {
            assert!(shown.lines().any(|shown| shown == line), "{line} is not in\n{shown}");
        }
    }
}
