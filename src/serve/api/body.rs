//! Bodies: read within a limit and a time, then told exactly what is wrong with them.

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, header};
use campanile_jobfiles::suggest::explained;
use campanile_schema::{
    error::{ApiError, ErrorCode},
    limits::{HTTP_BODY_BYTES, HTTP_BODY_DRAIN_BYTES, HTTP_BODY_MS},
    shape::{self, shortened},
};
use campanile_security::auth::Caller;
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use std::{future::poll_fn, pin::Pin, time::Duration};

fn error(code: ErrorCode, message: impl Into<String>) -> ApiError {
    ApiError::new(code, message)
}

/// The whole body. One over the limit is read away for a while, so that the caller gets to see the answer instead of
/// a closed connection.
pub(super) async fn read(body: Body) -> Result<Bytes, ApiError> {
    let limit = Duration::from_millis(HTTP_BODY_MS);
    match tokio::time::timeout(limit, read_within(body)).await {
        Ok(read) => read,
        Err(_) => Err(error(ErrorCode::Timeout, format!("the body did not arrive within {} s", limit.as_secs()))),
    }
}

async fn read_within(mut body: Body) -> Result<Bytes, ApiError> {
    let too_large = || error(ErrorCode::BodyTooLarge, format!("a body has at most {HTTP_BODY_BYTES} bytes"));
    let mut first: Option<Bytes> = None;
    let mut all: Vec<u8> = Vec::new();
    let mut over = 0;
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame = frame.map_err(|why| error(ErrorCode::MalformedBody, format!("the body broke off: {why}")))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if over > 0 || all.len() + first.as_ref().map_or(0, Bytes::len) + data.len() > HTTP_BODY_BYTES {
            over += data.len();
            all = Vec::new();
            first = None;
            if over > HTTP_BODY_DRAIN_BYTES {
                return Err(too_large());
            }
        } else if all.is_empty() && first.is_none() {
            // Nearly every body comes in one piece: no copy.
            first = Some(data);
        } else {
            all.extend_from_slice(&first.take().unwrap_or_default());
            all.extend_from_slice(&data);
        }
    }
    if over > 0 {
        return Err(too_large());
    }
    Ok(first.unwrap_or_else(|| all.into()))
}

/// Reads away what is not wanted any more, for a while.
pub(super) async fn drain(mut body: Body) {
    let away = async {
        let mut bytes = 0;
        while let Some(Ok(frame)) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            bytes += frame.into_data().map_or(0, |data| data.len());
            if bytes > HTTP_BODY_DRAIN_BYTES {
                return;
            }
        }
    };
    // What has not come by then is not waited for.
    let _ = tokio::time::timeout(Duration::from_millis(HTTP_BODY_MS), away).await;
}

/// Refuses a body that is packed: it would be read as if it were not.
pub(super) fn check_encoding(headers: &HeaderMap) -> Result<(), ApiError> {
    for value in headers.get_all(header::CONTENT_ENCODING) {
        let named = value.to_str().unwrap_or("?");
        if !named.trim().is_empty() && !named.trim().eq_ignore_ascii_case("identity") {
            return Err(error(
                ErrorCode::UnsupportedMediaType,
                format!(
                    "the body is declared as packed ('{}'); send it unpacked, without Content-Encoding",
                    shortened(named)
                ),
            ));
        }
    }
    Ok(())
}

/// Refuses a body that is declared as something else than JSON. Not declared at all counts as JSON.
pub(super) fn check_type(headers: &HeaderMap, body: &[u8]) -> Result<(), ApiError> {
    let declared = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or("?"));
    let Some(declared) = declared.filter(|_| !body.is_empty()) else {
        return Ok(());
    };
    let (kind, params) = declared.split_once(';').unwrap_or((declared, ""));
    let kind = kind.trim().to_ascii_lowercase();
    let charset = params.to_ascii_lowercase();
    if kind != "application/json" && !(kind.starts_with("application/") && kind.ends_with("+json")) {
        return Err(error(
            ErrorCode::UnsupportedMediaType,
            format!("the body is declared as '{}'; send Content-Type: application/json", kind.escape_debug()),
        ));
    }
    if charset.contains("charset") && !charset.replace(['"', ' '], "").contains("charset=utf-8") {
        return Err(error(ErrorCode::UnsupportedMediaType, "JSON is UTF-8; leave the charset out"));
    }
    Ok(())
}

/// A body as its type. The error names the field with its path, what was expected, the closest known field, and the
/// line and column.
pub fn parse_json<T: DeserializeOwned + JsonSchema + 'static>(bytes: &[u8]) -> Result<T, ApiError> {
    let text = std::str::from_utf8(bytes).map_err(|why| {
        error(ErrorCode::MalformedBody, format!("the body is not UTF-8 from byte {} on", why.valid_up_to()))
    })?;
    // RFC 8259 allows a reader to pass over a byte order mark, which Windows editors write.
    let text = campanile_security::text::unmarked(text);
    if text.trim_ascii().is_empty() {
        return Err(error(ErrorCode::MalformedBody, "the body is missing; send a JSON object"));
    }
    check_numbers(text)?;
    check_shape::<T>(text)?;
    let mut json = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|why| {
        let path = why.path().to_string();
        refused(&path, why.into_inner())
    })?;
    json.end().map_err(|why| refused(".", why))?;
    Ok(value)
}

/// Refuses what no derived reader refuses as we want it: see [`shape`]. What cannot be read at all is told by the reader.
fn check_shape<T: JsonSchema + 'static>(text: &str) -> Result<(), ApiError> {
    let mut json = serde_json::Deserializer::from_str(text);
    let (Some(misfit), why) = shape::first_misfit::<T, _>(&mut json) else { return Ok(()) };
    let (line, column) = why.map_or((0, 0), |why| (why.line(), why.column()));
    Err(error(ErrorCode::InvalidArgument, format!("{misfit} (line {line}, column {column})"))
        .with_detail(json!({"field": shape::shown(&misfit.path), "line": line, "column": column})))
}

fn refused(path: &str, why: serde_json::Error) -> ApiError {
    let (line, column) = (why.line(), why.column());
    let place = format!(" at line {line} column {column}");
    let text = why.to_string();
    let text = text.strip_suffix(&place).unwrap_or(&text);
    match why.classify() {
        serde_json::error::Category::Data => {
            let told = explained(text);
            let path = path.split('.').map(shortened).collect::<Vec<_>>().join(".");
            let path = path.as_str();
            // An unknown field is named by the text already.
            let path = match told.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next()) {
                Some(field) => path.strip_suffix(field).map_or(path, |parent| parent.trim_end_matches('.')),
                None => path,
            };
            let at = if line == 0 { String::new() } else { format!(" (line {line}, column {column})") };
            let message = match path {
                "" | "." | "?" => format!("{told}{at}"),
                path => format!("{path}: {told}{at}"),
            };
            error(ErrorCode::InvalidArgument, message)
                .with_detail(json!({"field": path, "line": line, "column": column}))
        }
        serde_json::error::Category::Syntax | serde_json::error::Category::Eof | serde_json::error::Category::Io => {
            error(ErrorCode::MalformedBody, format!("not JSON: {text} (line {line}, column {column})"))
                .with_detail(json!({"line": line, "column": column}))
        }
    }
}

/// Refuses whole numbers that do not fit 64 bits: they would be rounded silently. All others are kept exactly, those
/// above 2^53 too.
fn check_numbers(text: &str) -> Result<(), ApiError> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_string(bytes, at),
            b'-' | b'0'..=b'9' => {
                let end = at
                    + bytes[at..]
                        .iter()
                        .take_while(|b| matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
                        .count();
                let number = &text[at..end];
                let whole = !number.contains(['.', 'e', 'E']);
                if whole && number.len() > 18 && number.parse::<u64>().is_err() && number.parse::<i64>().is_err() {
                    let before = &text[..at];
                    let line = before.matches('\n').count() + 1;
                    let column = at - before.rfind('\n').map_or(0, |newline| newline + 1) + 1;
                    let shown: String = number.chars().take(40).collect();
                    return Err(error(
                        ErrorCode::InvalidArgument,
                        format!(
                            "the number {shown} does not fit 64 bits and would be rounded; write it as a string (line {line}, column {column})"
                        ),
                    )
                    .with_detail(json!({"line": line, "column": column})));
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    Ok(())
}

/// The place after the string that starts at `at`.
fn end_of_string(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    at
}

/// A tenant's caller who wrote another tenant's name, the form's default too, is refused. The typed spec cannot tell the
/// default from what was written, so the text is asked.
pub(super) fn check_written_tenant(caller: &Caller, body: &[u8]) -> Result<(), ApiError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Written {
        tenant_id: Option<String>,
        spec: Option<Box<Written>>,
    }
    let Some(own) = &caller.tenant else {
        return Ok(());
    };
    let written = serde_json::from_slice::<Written>(body).ok();
    let written = written.and_then(|w| w.tenant_id.or_else(|| w.spec.and_then(|spec| spec.tenant_id)));
    match written {
        Some(written) if written != *own => Err(ApiError::new(
            ErrorCode::Forbidden,
            format!("tenantId: this credential is for tenant '{own}', not '{}'", written.escape_debug()),
        )),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
