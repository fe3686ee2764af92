//! Sessions of the console: a cookie that stands for a token, for calls of the console's own pages only.
use super::{
    raw,
    server::{EXECUTOR, FINANCE, HttpAnswer, METRICS, OPERATOR, Server, caller, eventually},
};
use campanile_security::auth::{Authenticator, Role, new_token, token_line};
use std::{fs, os::unix::fs::PermissionsExt};

const SESSION: &str = "/api/v1/session";
const OURS: (&str, &str) = ("x-campanile-console", "1");

fn open(server: &Server, token: &str, more: &[(&str, &str)]) -> HttpAnswer {
    let authorization = format!("Bearer {token}");
    let headers: Vec<_> = [("authorization", authorization.as_str())].into_iter().chain(more.iter().copied()).collect();
    raw::call(&server.address, "POST", SESSION, &headers, b"")
}

/// Name and value of the cookie that an answer sets.
fn cookie(answer: &HttpAnswer) -> String {
    let set = answer.header("set-cookie").unwrap_or_else(|| panic!("no cookie: {}", answer.text()));
    set.split(';').next().unwrap().to_owned()
}

fn with(server: &Server, path: &str, headers: &[(&str, &str)]) -> HttpAnswer {
    raw::call(&server.address, "GET", path, headers, b"")
}

#[test]
fn a_session_stands_for_its_token() {
    let server = Server::start();
    let opened = open(&server, OPERATOR, &[]);
    let set = opened.header("set-cookie").unwrap().to_owned();
    assert!(set.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{set}");
    assert!(!set.contains(OPERATOR), "{set}");
    let cookie = cookie(&opened);
    let view = opened.expect(200);
    assert_eq!((&view["name"], &view["role"]), (&"ops".into(), &"OPERATOR".into()));
    assert!(view["expiresAt"].is_string(), "{view}");
    let who = with(&server, SESSION, &[OURS, ("cookie", &cookie)]).expect(200);
    assert_eq!(who, view);
    with(&server, "/api/v1/pools", &[OURS, ("cookie", &cookie)]).expect(200);
    let told = with(&server, SESSION, &[("authorization", "Bearer operator-token")]).expect(200);
    assert_eq!((&told["knownBy"], &told["expiresAt"]), (&"TOKEN".into(), &serde_json::Value::Null));
    // A tenant's session is a tenant.
    let tenant = open(&server, FINANCE, &[]);
    let theirs = self::cookie(&tenant);
    assert_eq!(tenant.expect(200)["tenantId"], "finance");
    with(&server, "/api/v1/pools", &[OURS, ("cookie", &theirs)]).problem("403_FORBIDDEN");
    // Those who have nothing to see get no session.
    for token in [EXECUTOR, METRICS] {
        let refused = open(&server, token, &[]);
        assert_eq!(refused.header("set-cookie"), None);
        refused.problem("403_FORBIDDEN");
    }
    open(&server, "cmp_wrong", &[]).problem("401_UNAUTHENTICATED");
}

#[test]
fn a_cookie_counts_only_for_calls_of_the_console() {
    let server = Server::start();
    let cookie = cookie(&open(&server, OPERATOR, &[]));
    let ask = |more: &[(&str, &str)]| {
        let headers: Vec<_> = [("cookie", cookie.as_str())].into_iter().chain(more.iter().copied()).collect();
        with(&server, "/api/v1/jobs", &headers)
    };
    let own = format!("http://{}", server.address);
    ask(&[OURS, ("origin", &own), ("sec-fetch-site", "same-origin")]).expect(200);
    // What a form, a link, a frame or a script of another origin could send.
    ask(&[]).problem("401_UNAUTHENTICATED");
    ask(&[OURS, ("origin", "http://evil.example")]).problem("401_UNAUTHENTICATED");
    ask(&[OURS, ("origin", "null")]).problem("401_UNAUTHENTICATED");
    for site in ["cross-site", "same-site", "none"] {
        ask(&[OURS, ("sec-fetch-site", site)]).problem("401_UNAUTHENTICATED");
    }
    // A script of another port would have to ask first, and is not let.
    let preflight = [
        ("origin", "http://evil.example"),
        ("access-control-request-method", "GET"),
        ("access-control-request-headers", OURS.0),
    ];
    let answer = raw::call(&server.address, "OPTIONS", "/api/v1/jobs", &preflight, b"");
    assert!(answer.headers.iter().all(|(name, _)| !name.starts_with("access-control-")));
    // A token that is wrong is refused, whatever cookie comes with it.
    ask(&[OURS, ("authorization", "Bearer cmp_wrong")]).problem("401_UNAUTHENTICATED");
    // It begins with the id of the key, in base64.
    let (name, value) = cookie.split_once('=').unwrap();
    let spoilt = format!("{name}=B{}", &value[1..]);
    let told = with(&server, "/api/v1/jobs", &[OURS, ("cookie", &spoilt)]).problem("401_UNAUTHENTICATED");
    assert!(told.contains("the session has ended"), "{told}");
    let closed = raw::call(&server.address, "DELETE", SESSION, &[OURS, ("cookie", &cookie)], b"");
    assert!(closed.header("set-cookie").unwrap().ends_with("; Max-Age=0"));
    assert_eq!(closed.status, 204);
}

#[test]
fn over_tls_the_cookie_is_of_the_host_alone() {
    let server = Server::start();
    let opened = open(&server, OPERATOR, &[("host", "jobs.example"), ("origin", "https://jobs.example")]);
    let set = opened.header("set-cookie").unwrap().to_owned();
    assert!(set.starts_with("__Host-"), "{set}");
    assert!(set.ends_with("; Secure"), "{set}");
    let headers = [OURS, ("host", "jobs.example"), ("cookie", &cookie(&opened))];
    with(&server, "/api/v1/jobs", &headers).expect(200);
}

#[test]
fn a_session_ends_when_its_token_is_taken_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens");
    let (kept, taken) = (new_token().unwrap(), new_token().unwrap());
    let line = |token: &str, name| token_line(token, &caller(name, Role::Operator, None)).unwrap();
    let write = |lines: &[String]| {
        fs::write(&path, lines.join("\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    };
    write(&[line(&kept, "kept"), line(&taken, "taken")]);
    let server = Server::with(|options| options.authenticator = Authenticator::from_file(&path).unwrap());
    let cookie = cookie(&open(&server, &taken, &[]));
    with(&server, "/api/v1/jobs", &[OURS, ("cookie", &cookie)]).expect(200);
    write(&[line(&kept, "kept")]);
    eventually("the session's end", || {
        (with(&server, "/api/v1/jobs", &[OURS, ("cookie", &cookie)]).status == 401).then_some(())
    });
}

/// With and without a console: a program that asks for a wrong path hears so, and paths of the API are never pages.
#[test]
fn only_pages_are_answered_with_the_console() {
    const BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    let server = Server::start();
    let root = with(&server, "/", &[BROWSER]);
    assert_eq!((root.status, root.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let is_built = root.text().contains("id=\"root\"");
    assert!(is_built || root.text().contains("make console"), "{}", root.text());
    let link = with(&server, "/runs/4711?attempt=2", &[BROWSER]);
    if is_built {
        assert_eq!(link.text(), root.text());
        assert!(root.header("content-security-policy").is_some_and(|policy| policy.starts_with("default-src 'self'")));
        assert_eq!(root.header("cache-control"), Some("no-cache"));
    } else {
        link.problem("404_UNKNOWN_METHOD");
    }
    for path in ["/api/v1/jobx", "/api/v2", "/api/v1/"] {
        with(&server, path, &[BROWSER]).problem("404_UNKNOWN_METHOD");
    }
    with(&server, "/runs/4711", &[]).problem("404_UNKNOWN_METHOD");
    with(&server, "/assets/index-0.js", &[BROWSER]).problem("404_NOT_FOUND");
}
