//! The request of an HTTP action: what may stand in it, and what becomes of it for one attempt.
//!
//! The same code judges it when the job is created and fills it in when an attempt starts, so that both mean the same.
//! It never says where a request may go: that is the executor's, who knows to which address a name leads.

use super::template::{Facts, RenderError, Template};
use campanile_schema::{job::HttpMethod, limits, payload::Payload};
use http::{HeaderName, HeaderValue, Uri, header};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What sets Campanile itself, and what belongs to the connection.
const RESERVED: [HeaderName; 9] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::EXPECT,
    header::PROXY_AUTHORIZATION,
];
/// Begins the names of headers that tell of the attempt.
pub const OWN_HEADERS: &str = "x-campanile-";
pub const TRACEPARENT: &str = "traceparent";

/// A request as its author wrote it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub method: HttpMethod,
    pub url: &'a str,
    pub headers: &'a BTreeMap<String, String>,
    pub body: Option<&'a Payload>,
}

/// A request filled in for an attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled {
    pub url: Uri,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Option<String>,
}

/// The body by how values are written into it.
enum Body {
    /// Strings in it are templates. One that is a single fact becomes that fact's value, whatever its type.
    Json(Value),
    /// Values are percent-encoded.
    Form(Template),
    /// Values stand as they are.
    Text(Template),
}

/// Refuses numbers out of their range.
pub fn check_numbers(expect: (u16, u16), timeout_sec: u32, max_redirects: u8) -> Result<(), String> {
    let (low, high) = expect;
    if !(200..=599).contains(&low) || !(low..=599).contains(&high) {
        return Err("expectStatus must be [FROM, TO] with 200 <= FROM <= TO <= 599".to_owned());
    }
    if !(1..=limits::HTTP_ACTION_TIMEOUT_SEC).contains(&timeout_sec) {
        return Err(format!("timeoutSec must be 1 to {}", limits::HTTP_ACTION_TIMEOUT_SEC));
    }
    if max_redirects > limits::HTTP_ACTION_REDIRECTS {
        return Err(format!("maxRedirects must be 0 to {}", limits::HTTP_ACTION_REDIRECTS));
    }
    Ok(())
}

impl Request<'_> {
    /// Judges it without an attempt; `secrets` are the job's secret params. Errors begin with the field.
    pub fn check(&self, secrets: &BTreeMap<String, String>) -> Result<(), String> {
        let known =
            |field: &str, template: &Template| match template.secrets().find(|name| !secrets.contains_key(*name)) {
                Some(name) => Err(format!("{field}: the job has no secret param '{name}'")),
                None => Ok(()),
            };
        known("url", &self.url()?)?;
        if self.headers.len() > limits::HTTP_ACTION_HEADERS {
            return Err(format!("headers: at most {} are allowed", limits::HTTP_ACTION_HEADERS));
        }
        let mut seen = BTreeSet::new();
        for (name, value) in self.headers {
            let field = format!("headers.{}", name.escape_debug());
            let parsed = header_name(name).map_err(|why| format!("{field} {why}"))?;
            if !seen.insert(parsed.as_str().to_owned()) {
                return Err(format!("{field} is there twice: names differ only in case"));
            }
            let template = Template::parse(value).map_err(|why| format!("{field}: {why}"))?;
            known(&field, &template)?;
            header_value(template.with("x")).map_err(|why| format!("{field} {why}"))?;
        }
        let Some(body) = self.body() else { return Ok(()) };
        if matches!(self.method, HttpMethod::Get | HttpMethod::Head) {
            return Err(format!("body: a {} request has none", self.method));
        }
        match body.map_err(|why| format!("body: {why}"))? {
            Body::Json(value) => each_string(&value, &mut |text| {
                known("body", &Template::parse(text).map_err(|why| format!("body: {why}"))?)
            }),
            Body::Form(template) | Body::Text(template) => known("body", &template),
        }
    }

    /// Errors begin with the field, and are the same for every attempt of the run.
    pub fn fill(&self, facts: &Facts<'_>) -> Result<Filled, String> {
        let told = |field: &str, error: &RenderError| format!("{field}: {error}");
        let url = self.url()?.render(facts, limits::HTTP_ACTION_URL_BYTES, percent_encode);
        let url = absolute(&url.map_err(|error| told("url", &error))?)?;
        let mut headers = Vec::with_capacity(self.headers.len());
        for (name, value) in self.headers {
            let template = Template::parse(value).map_err(|why| format!("headers.{name}: {why}"))?;
            let text = template.render(facts, limits::HTTP_ACTION_HEADER_BYTES, |value, out| out.push_str(value));
            let text = text.map_err(|error| told(&format!("headers.{name}"), &error))?;
            let parsed = header_name(name).map_err(|why| format!("headers.{name} {why}"))?;
            headers.push((parsed, header_value(text).map_err(|why| format!("headers.{name} {why}"))?));
        }
        let body = self.body().transpose().map_err(|why| format!("body: {why}"))?;
        if body.is_some() && self.content_type().is_none() {
            let json = matches!(body, Some(Body::Json(_)));
            let value = if json { "application/json" } else { "text/plain; charset=utf-8" };
            headers.push((header::CONTENT_TYPE, HeaderValue::from_static(value)));
        }
        let limit = limits::HTTP_ACTION_BODY_BYTES;
        let body = body.map(|body| match body {
            Body::Json(value) => fill_json(value, facts, limit),
            Body::Form(template) => template.render(facts, limit, percent_encode),
            Body::Text(template) => template.render(facts, limit, |value, out| out.push_str(value)),
        });
        let body = body.transpose().map_err(|error| told("body", &error))?;
        Ok(Filled { url, headers, body })
    }

    fn url(&self) -> Result<Template, String> {
        if self.url.len() > limits::HTTP_ACTION_URL_BYTES {
            return Err(format!(
                "url takes {} bytes; at most {} are allowed",
                self.url.len(),
                limits::HTTP_ACTION_URL_BYTES
            ));
        }
        let template = Template::parse(self.url).map_err(|why| format!("url: {why}"))?;
        absolute(&template.with("x"))?;
        // What comes before the path says to whom it goes: that is not for params to say.
        let head = template.head();
        let path = head.find("://").and_then(|at| head[at + 3..].find(['/', '?']));
        if path.is_none() && head.len() < self.url.len() {
            return Err("url: '{{...}}' may stand only after the host: in the path or the query".to_owned());
        }
        Ok(template)
    }

    fn content_type(&self) -> Option<&str> {
        let found = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        found.map(|(_, value)| value.as_str())
    }

    fn body(&self) -> Option<Result<Body, String>> {
        let Value::String(text) = self.body?.to_value() else {
            return Some(Ok(Body::Json(self.body?.to_value())));
        };
        let declared = self.content_type().unwrap_or_default().to_ascii_lowercase();
        Some(if declared.contains("json") {
            let why = "it is declared as JSON by content-type, but is not: ";
            serde_json::from_str(&text).map(Body::Json).map_err(|error| format!("{why}{error}"))
        } else if declared.starts_with("application/x-www-form-urlencoded") {
            Template::parse(&text).map(Body::Form)
        } else {
            Template::parse(&text).map(Body::Text)
        })
    }
}

/// An absolute http or https URL without credentials, fragment or steps upwards.
pub fn absolute(text: &str) -> Result<Uri, String> {
    let uri: Uri = text.parse().map_err(|error| {
        format!(
            "url is not a URL ({error}); write http://HOST/PATH or https://HOST/PATH, other characters percent-encoded"
        )
    })?;
    let Some(authority) = uri.authority().filter(|_| matches!(uri.scheme_str(), Some("http" | "https"))) else {
        return Err("url must begin with http:// or https:// and name a host".to_owned());
    };
    if authority.as_str().contains('@') {
        return Err("url must not hold a user or password; put them into a header, from secrets.NAME".to_owned());
    }
    let port = authority.as_str().rsplit_once(':').filter(|(host, _)| !host.contains('[') || host.ends_with(']'));
    if authority.host().is_empty() || port.is_some_and(|(_, port)| !port.parse::<u16>().is_ok_and(|port| port > 0)) {
        return Err("url must name a host, and a port of 1 to 65535 if any".to_owned());
    }
    if text.contains('#') {
        return Err("url must not have a fragment (#): it would not be sent".to_owned());
    }
    let step = |segment: &str| matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
    if uri.path().split('/').any(step) {
        return Err("url must not have '.' or '..' in its path".to_owned());
    }
    Ok(uri)
}

fn header_name(name: &str) -> Result<HeaderName, String> {
    let parsed = HeaderName::try_from(name).map_err(|_| "is not a name of a header".to_owned())?;
    if RESERVED.contains(&parsed) {
        return Err("is set by the connection; leave it out".to_owned());
    }
    if parsed.as_str().starts_with(OWN_HEADERS) || parsed.as_str() == TRACEPARENT {
        return Err("is set by Campanile; choose another name".to_owned());
    }
    Ok(parsed)
}

/// Visible characters and blanks; what could end the header, and so begin another one, is refused.
fn header_value(text: String) -> Result<HeaderValue, String> {
    if text.len() > limits::HTTP_ACTION_HEADER_BYTES {
        return Err(format!("takes {} bytes; at most {} are allowed", text.len(), limits::HTTP_ACTION_HEADER_BYTES));
    }
    let parsed = HeaderValue::try_from(text);
    let mut parsed = parsed.map_err(|_| "has a line break or another control character in its value".to_owned())?;
    // Never shown by what prints requests.
    parsed.set_sensitive(true);
    Ok(parsed)
}

/// Everything but `A-Z a-z 0-9 - . _ ~`, by its bytes.
pub fn percent_encode(value: &str, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}

fn each_string(value: &Value, see: &mut impl FnMut(&str) -> Result<(), String>) -> Result<(), String> {
    match value {
        Value::String(text) => see(text),
        Value::Array(items) => items.iter().try_for_each(|item| each_string(item, see)),
        Value::Object(fields) => fields.values().try_for_each(|field| each_string(field, see)),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

fn fill_json(mut value: Value, facts: &Facts<'_>, limit: usize) -> Result<String, RenderError> {
    let mut left = limit;
    fill_strings(&mut value, facts, &mut left)?;
    let text = value.to_string();
    if text.len() > limit { Err(RenderError::TooLarge(limit)) } else { Ok(text) }
}

/// `left`: bytes that may still be filled in, so that small templates never build something huge.
fn fill_strings(value: &mut Value, facts: &Facts<'_>, left: &mut usize) -> Result<(), RenderError> {
    match value {
        Value::String(text) => {
            // Parsed before, when the job was created.
            let Ok(template) = Template::parse(text) else { return Ok(()) };
            let filled = match template.only_fact() {
                Some(fact) => facts.value(fact)?,
                None => template.render(facts, *left, |value, out| out.push_str(value))?.into(),
            };
            let size = filled.as_str().map_or_else(|| filled.to_string().len(), str::len);
            *left = left.checked_sub(size).ok_or(RenderError::TooLarge(limits::HTTP_ACTION_BODY_BYTES))?;
            *value = filled;
            Ok(())
        }
        Value::Array(items) => items.iter_mut().try_for_each(|item| fill_strings(item, facts, left)),
        Value::Object(fields) => fields.values_mut().try_for_each(|field| fill_strings(field, facts, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::action::tests::assignment;
    use serde_json::json;

    fn with<T>(
        method: HttpMethod,
        url: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
        see: impl FnOnce(&Request<'_>) -> T,
    ) -> T {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let body = body.map(|body| Payload::from_value(&body));
        see(&Request { method, url, headers: &headers, body: body.as_ref() })
    }

    fn check(method: HttpMethod, url: &str, headers: &[(&str, &str)], body: Option<Value>) -> Result<(), String> {
        let secrets = [("key".to_owned(), String::new())].into();
        with(method, url, headers, body, |request| request.check(&secrets))
    }

    fn fill(url: &str, headers: &[(&str, &str)], body: Option<Value>) -> Result<Filled, String> {
        let assignment = assignment();
        with(HttpMethod::Post, url, headers, body, |request| {
            request.check(&assignment.secrets).unwrap();
            request.fill(&Facts::of(&assignment))
        })
    }

    const URL: &str = "https://example.org/hook";

    #[test]
    fn what_cannot_be_sent_is_refused_with_its_field() {
        let post = HttpMethod::Post;
        for url in [
            "",
            "/path",
            "example.org",
            "ftp://example.org/",
            "https://",
            "https:///x",
            "https://u:p@example.org/",
            "https://example.org:0/",
            "https://example.org:99999/",
            "https://example.org/#x",
            "https://exämple.org/",
            "https://example.org/a b",
            "https://example.org/a/../b",
            "https://example.org/%2e%2E/b",
            "https://{{params.host}}/",
            "{{params.url}}",
            "https://example.org{{params.x}}",
            "https://[::1/",
        ] {
            let why = check(post, url, &[], None).unwrap_err();
            assert!(why.starts_with("url"), "{url}: {why}");
        }
        for url in ["http://example.org", "https://[::1]:8443/x", "http://10.1.2.3/?a=b&c={{runId}}", URL] {
            assert_eq!(check(post, url, &[], None), Ok(()), "{url}");
        }
        for (name, value) in [
            ("a b", "x"),
            ("", "x"),
            ("Host", "x"),
            ("content-length", "1"),
            ("X-Campanile-Token", "1"),
            ("traceparent", "x"),
            ("X-A", "a\nb"),
            ("X-A", "{{nope}}"),
            ("X-A", "{{secrets.other}}"),
        ] {
            let why = check(post, URL, &[(name, value)], None).unwrap_err();
            assert!(why.starts_with("headers."), "{name}: {why}");
        }
        assert!(check(post, URL, &[("X-A", "1"), ("x-a", "2")], None).unwrap_err().contains("twice"));
        let form = [("Content-Type", "application/json")];
        for (headers, body) in [
            (&[][..], json!("{{nope}}")),
            (&[], json!({"a": ["{{nope}}"]})),
            (&[], json!("{{secrets.other}}")),
            (&form, json!("{")),
        ] {
            let why = check(post, URL, headers, Some(body.clone())).unwrap_err();
            assert!(why.starts_with("body: "), "{body}: {why}");
        }
        assert!(check(HttpMethod::Get, URL, &[], Some(json!({}))).unwrap_err().contains("GET request has none"));
        for numbers in
            [((199, 299), 30, 0), ((300, 200), 30, 0), ((200, 600), 30, 0), ((200, 299), 0, 0), ((200, 299), 30, 11)]
        {
            assert!(check_numbers(numbers.0, numbers.1, numbers.2).is_err(), "{numbers:?}");
        }
        assert_eq!(check_numbers((200, 200), 30, 3), Ok(()));
    }

    #[test]
    fn values_are_written_as_their_place_needs() {
        let filled = fill(
            "https://example.org/{{params.customer.name}}?at={{logicalTime}}",
            &[("X-Customer", "<{{params.customer.name}}>")],
            Some(
                json!({"name": "Dear {{params.customer.name}}", "id": "{{runId}}", "all": "{{params.list}}", "none": "{{params.none}}", "{{runId}}": 1}),
            ),
        );
        let filled = filled.unwrap();
        assert_eq!(filled.url, "https://example.org/Ada%20%22A%22?at=2026-06-21T00%3A00%3A00.000Z");
        assert_eq!(filled.headers[0].1, "<Ada \"A\">");
        assert_eq!(filled.headers[1], (header::CONTENT_TYPE, HeaderValue::from_static("application/json")));
        let body: Value = serde_json::from_str(&filled.body.unwrap()).unwrap();
        let name = "Dear Ada \"A\"";
        assert_eq!(body, json!({"name": name, "id": 11_944, "all": [10, 20], "none": null, "{{runId}}": 1}));
        let text = json!("{\"name\": \"{{params.customer.name}}\", \"line\": \"<{{params.line}}>\"}");
        let filled = fill(URL, &[("content-type", "application/vnd.x+json")], Some(text)).unwrap();
        let body: Value = serde_json::from_str(&filled.body.unwrap()).unwrap();
        assert_eq!(body, json!({"name": "Ada \"A\"", "line": "<a\r\nb>"}));
        let form = [("Content-Type", "application/x-www-form-urlencoded")];
        let filled = fill(URL, &form, Some(json!("who={{params.customer.name}}&n=1"))).unwrap();
        assert_eq!(filled.body.unwrap(), "who=Ada%20%22A%22&n=1");
        let filled = fill(URL, &[], Some(json!("Dear {{params.customer.name}}"))).unwrap();
        assert_eq!(
            (filled.body.unwrap().as_str(), &filled.headers[0].1),
            ("Dear Ada \"A\"", &HeaderValue::from_static("text/plain; charset=utf-8"))
        );
        assert_eq!(fill(URL, &[], None).unwrap(), Filled { url: Uri::from_static(URL), headers: vec![], body: None });
    }

    #[test]
    fn values_that_would_break_out_are_refused() {
        assert!(fill(URL, &[("X-A", "{{params.line}}")], None).unwrap_err().contains("headers.X-A has a line break"));
        assert!(fill("https://example.org/{{params.way}}/x", &[], None).unwrap_err().contains("'..' in its path"));
        assert!(
            fill("https://example.org/?x={{params.nothing}}", &[], None)
                .unwrap_err()
                .contains("params have no 'nothing'")
        );
    }

    #[test]
    fn a_body_stays_below_its_limit() {
        let mut assignment = assignment();
        assignment.params = Payload(format!("{{\"x\":\"{}\"}}", "y".repeat(60_000)));
        for body in [json!(vec!["{{params.x}}"; 20]), json!("{{params.x}}".repeat(20))] {
            let filled = with(HttpMethod::Post, URL, &[], Some(body), |request| request.fill(&Facts::of(&assignment)));
            assert_eq!(filled.unwrap_err(), "body: it is larger than 1048576 bytes once filled in");
        }
    }
}
