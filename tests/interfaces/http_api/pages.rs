//! The pages beside the API, request ids, and the document against what is served.
use super::{
    raw,
    server::{HttpAnswer, OPERATOR, SHOP, Server},
};
use campanile_serve::api::Origins;

fn plain(server: &Server, path: &str) -> HttpAnswer {
    raw::call(&server.address, "GET", path, &[], b"")
}

#[test]
fn pages_for_everybody() {
    let server = Server::start();
    assert_eq!(plain(&server, "/healthz").text(), "ok\n");
    assert_eq!(plain(&server, "/readyz").expect(200)["ready"], true);
    let listing = plain(&server, "/api");
    assert_eq!(listing.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(listing.text().contains("href=/openapi.json"));
    assert!(listing.text().contains("/api/v1/jobs/{jobId}/trigger"));
    let errors = plain(&server, "/errors").text();
    for code in campanile_schema::error::ErrorCode::ALL {
        assert!(errors.contains(&format!("<h2 id=\"{}\">", code.as_str())), "{code:?}");
    }
    // What a halted clock's message tells the operator to call is there.
    assert_eq!(server.post("/api/v1/cluster/clock/accept", &serde_json::json!({"reason": "it is right"})).status, 204);
    let head = raw::call(&server.address, "HEAD", "/healthz", &[], b"");
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[test]
fn metrics_are_for_operators_unless_opened() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    let closed = Server::with(|options| {
        options.open_metrics = false;
        options.metrics = Some(handle.clone());
    });
    plain(&closed, "/metrics").problem("401_UNAUTHENTICATED");
    closed.call(SHOP, "GET", "/metrics", None).problem("403_FORBIDDEN");
    let shown = closed.call(OPERATOR, "GET", "/metrics", None);
    assert_eq!((shown.status, shown.header("content-type")), (200, Some("text/plain; version=0.0.4; charset=utf-8")));
    let open = Server::with(|options| options.open_metrics = true);
    plain(&open, "/metrics").problem("404_NOT_FOUND");
}

#[test]
fn request_ids_are_taken_over_or_made() {
    let server = Server::start();
    let with = |id: &str| raw::call(&server.address, "GET", "/nowhere", &[("x-request-id", id)], b"");
    assert_eq!(with("mine-1").header("x-request-id"), Some("mine-1"));
    let made = with("not one id").header("x-request-id").unwrap().to_owned();
    assert_ne!(made, "not one id");
    assert_ne!(plain(&server, "/healthz").header("x-request-id"), plain(&server, "/healthz").header("x-request-id"));
}

/// What the document names is served: no path of it is unknown, and other methods are refused with those it takes.
#[test]
fn the_document_is_what_is_served() {
    let server = Server::start();
    let document = plain(&server, "/openapi.json").expect(200);
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() > 25, "{}", paths.len());
    for (path, methods) in paths {
        let path = path
            .replace("{jobId}", "4096")
            .replace("{runId}", "4096")
            .replace("{tenantId}", "none")
            .replace("{target}", "none")
            .replace("{calendar}", "none");
        for method in methods.as_object().unwrap().keys() {
            // Without a token: operations are found and ask who calls, pages answer.
            let answer = raw::call(&server.address, &method.to_uppercase(), &path, &[], b"");
            let is_page = methods[method]["security"] == serde_json::json!([]);
            let open_metrics = path == "/metrics";
            if is_page || open_metrics {
                assert_ne!(answer.json()["code"], "404_UNKNOWN_METHOD", "{method} {path}");
            } else {
                answer.problem("401_UNAUTHENTICATED");
            }
        }
        let refused = raw::call(&server.address, "PATCH", &path, &[], b"");
        let allowed = refused.header("allow").unwrap_or_default().to_owned();
        refused.problem("405_METHOD_NOT_ALLOWED");
        for method in methods.as_object().unwrap().keys() {
            assert!(allowed.contains(&method.to_uppercase()), "{path}: {allowed}");
        }
    }
}

#[test]
fn large_answers_are_compressed_for_those_who_take_it() {
    let server = Server::start();
    let get = |path: &str, headers: &[(&str, &str)]| raw::call(&server.address, "GET", path, headers, b"");
    let packed = get("/openapi.json", &[("accept-encoding", "gzip")]);
    assert_eq!((packed.status, packed.header("content-encoding")), (200, Some("gzip")));
    let smaller = get("/openapi.json", &[("accept-encoding", "gzip, zstd")]);
    assert_eq!(smaller.header("content-encoding"), Some("zstd"));
    // Behind the length of the first chunk.
    assert!(smaller.body.windows(4).take(16).any(|four| four == [0x28, 0xb5, 0x2f, 0xfd]), "how zstd begins");
    assert!(packed.header("vary").is_some_and(|vary| vary.eq_ignore_ascii_case("accept-encoding")));
    let plain = get("/openapi.json", &[]);
    assert_eq!(plain.header("content-encoding"), None);
    assert!(packed.body.len() * 5 < plain.body.len(), "{} of {}", packed.body.len(), plain.body.len());
    assert_eq!(get("/healthz", &[("accept-encoding", "gzip")]).header("content-encoding"), None, "a small one");
}

#[test]
fn browsers_let_only_pages_of_named_origins_call() {
    let ask = |server: &Server, method: &str, origin: &str| {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", "PUT"),
            ("access-control-request-headers", "authorization,content-type,idempotency-key"),
        ];
        raw::call(&server.address, method, "/api/v1/jobs", &headers, b"")
    };
    const ALLOWED: &str = "access-control-allow-origin";
    let (console, other) = ("https://console.example.org", "https://other.example.org");
    let closed = Server::start();
    for method in ["OPTIONS", "GET"] {
        assert!(ask(&closed, method, console).headers.iter().all(|(name, _)| !name.starts_with("access-control-")));
    }
    let open = Server::with(|options| options.origins = Origins::parse(&[console]).unwrap());
    let first = ask(&open, "OPTIONS", console);
    assert_eq!((first.status, first.header(ALLOWED)), (200, Some(console)));
    assert!(first.header("access-control-allow-methods").is_some_and(|methods| methods.contains("PUT")));
    let headers = first.header("access-control-allow-headers").unwrap();
    assert!(headers.contains("authorization"), "{headers}");
    assert!(headers.contains("idempotency-key"), "{headers}");
    // Never with the browser's own credentials.
    assert_eq!(first.header("access-control-allow-credentials"), None);
    // A refusal can be read too; another origin's page reads nothing.
    let refused = ask(&open, "GET", console);
    assert_eq!((refused.status, refused.header(ALLOWED)), (401, Some(console)));
    assert_eq!(ask(&open, "OPTIONS", other).header(ALLOWED), None);
    assert_eq!(ask(&open, "GET", other).header(ALLOWED), None);
}
