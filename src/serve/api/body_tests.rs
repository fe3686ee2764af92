#![allow(clippy::unwrap_used)]
use super::*;
use campanile_schema::{
    job::JobSpec,
    view::{ReasonBody, TriggerBody},
};

fn spec_error(text: &str) -> (ErrorCode, String) {
    let error = parse_json::<JobSpec>(text.as_bytes()).unwrap_err();
    (error.known(), error.message)
}

#[test]
fn what_is_wrong_with_a_body_is_told_exactly() {
    use ErrorCode::{InvalidArgument, MalformedBody};
    let cases = [
        ("", MalformedBody, "the body is missing"),
        (" \n", MalformedBody, "the body is missing"),
        ("{", MalformedBody, "line 1, column 1"),
        ("{\"name\":\"a\",\n \"trigger\":}", MalformedBody, "(line 2, column 12)"),
        ("{\"name\":\"a\",\"trigger\":{\"type\":\"MANUAL\"}} x", MalformedBody, "trailing characters (line 1,"),
        ("nul", MalformedBody, "line 1"),
        ("[]", InvalidArgument, "this is a list, and an object is wanted"),
        ("[\"posjob\",\"default\",{\"type\":\"MANUAL\"}]", InvalidArgument, "this is a list, and an object is wanted"),
        ("{\"name\":\"a\",\"trigger\":[\"MANUAL\"]}", InvalidArgument, "trigger: this is a list, and an object"),
        ("{\"name\":\"a\",\"params\":{\"b\":1,\"b\":2}}", InvalidArgument, "params.b: stands here twice"),
        (
            "{\"name\":\"a\",\"trigger\":{\"type\":\"FIXED_RATE\",\"everySec\":\"10\"}}",
            InvalidArgument,
            "trigger.everySec: write the number 10 without quotes",
        ),
        ("\"text\"", InvalidArgument, "is text, and an object is wanted"),
        ("{}", InvalidArgument, "missing field `name`"),
        (
            "{\"nmae\":\"a\",\"trigger\":{\"type\":\"MANUAL\"}}",
            InvalidArgument,
            "unknown field `nmae`, expected one of `name`",
        ),
        ("{\"nmae\":\"a\"}", InvalidArgument, "did you mean `name`?"),
        (
            "{\"name\":7}",
            InvalidArgument,
            "name: this is a number, and text is wanted: write it in quotes (line 1, column 9)",
        ),
        ("{\"name\":null}", InvalidArgument, "name: this is null, and text is wanted"),
        ("{\"name\":\"a\",\"name\":\"b\"}", InvalidArgument, "name: stands here twice: write it once (line 1, column"),
        ("{\"name\":\"a\",\"retryPolicy\":{\"maxAtempts\":3}}", InvalidArgument, "did you mean `maxAttempts`?"),
        (
            "{\"name\":\"a\",\"retryPolicy\":{\"maxAttempts\":-1}}",
            InvalidArgument,
            "retryPolicy.maxAttempts: invalid value",
        ),
        (
            "{\"name\":\"a\",\"priority\":70000}",
            InvalidArgument,
            "priority: invalid value: integer `70000`, expected u16",
        ),
        (
            "{\"name\":\"a\",\"timeoutSec\":1.5}",
            InvalidArgument,
            "timeoutSec: this is a number with a fraction, and a whole number is wanted",
        ),
        ("{\"name\":\"a\",\"timeoutSec\":1e999}", MalformedBody, "number out of range"),
        ("{\"name\":\"a\",\"labels\":{\"k\":1}}", InvalidArgument, "labels.k: this is a number, and text is wanted"),
        ("{\"name\":\"a\",\"trigger\":{\"type\":\"CRN\"}}", InvalidArgument, "did you mean `CRON`?"),
        ("{\"name\":\"a\",\"trigger\":{}}", InvalidArgument, "trigger: missing field `type`"),
        (
            "{\"name\":\"a\",\"trigger\":{\"type\":\"CRON\",\"expression\":\"* * * * *\"}}",
            InvalidArgument,
            "trigger: unknown field `expression`",
        ),
        (
            "{\"name\":\"a\",\"trigger\":{\"type\":\"ONCE\",\"at\":\"tomorrow\"}}",
            InvalidArgument,
            "'tomorrow' is not an RFC 3339 instant",
        ),
        (
            "{\"name\":\"a\",\"trigger\":{\"type\":\"MANUAL\"},\"concurrencyPolicy\":\"NEVER\"}",
            InvalidArgument,
            "concurrencyPolicy: 'NEVER' is not one of ALLOW, FORBID",
        ),
        (
            "{\"name\":\"a\",\n\"params\":{\"n\":184467440737095516160}}",
            InvalidArgument,
            "the number 184467440737095516160 does not fit 64 bits and would be rounded; write it as a string (line 2, column 15)",
        ),
    ];
    let mut wrong = Vec::new();
    for (text, code, message) in cases {
        let told = spec_error(text);
        if told.0 != code || !told.1.contains(message) {
            wrong.push(format!("{text}\n  wanted {code:?}: {message}\n  told {:?}: {}", told.0, told.1));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let deep = format!("{{\"name\":\"a\",\"params\":{}{}}}", "[".repeat(200), "]".repeat(200));
    assert!(spec_error(&deep).1.contains("recursion limit"));
    let latin1 = parse_json::<ReasonBody>(b"{\"reason\":\"\xe4\"}").unwrap_err();
    assert_eq!((latin1.known(), latin1.message.as_str()), (MalformedBody, "the body is not UTF-8 from byte 11 on"));
}

#[test]
fn numbers_are_kept_exactly_up_to_64_bits() {
    let text = br#"{"params":{"a":9007199254740993,"b":18446744073709551615,"c":-9223372036854775808,"d":"184467440737095516160\"1"}}"#;
    let body: TriggerBody = parse_json(text).unwrap();
    let kept = body.params.unwrap().0;
    for number in ["9007199254740993", "18446744073709551615", "-9223372036854775808"] {
        assert!(kept.contains(number), "{kept}");
    }
}

#[test]
fn a_body_is_json_unless_it_says_otherwise() {
    let with = |kind: &str| HeaderMap::from_iter([(header::CONTENT_TYPE, kind.parse().unwrap())]);
    for fine in ["application/json", "Application/JSON; charset=UTF-8", "application/merge-patch+json"] {
        assert!(check_type(&with(fine), b"{}").is_ok(), "{fine}");
    }
    for other in ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "json"] {
        let refused = check_type(&with(other), b"{}").unwrap_err();
        assert_eq!(refused.known(), ErrorCode::UnsupportedMediaType, "{other}");
        assert!(check_type(&with(other), b"").is_ok(), "{other}");
    }
    assert!(check_type(&HeaderMap::new(), b"{}").is_ok());
}

#[test]
fn a_body_is_read_up_to_its_limit() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let whole = runtime.block_on(read(Body::from(vec![b'x'; HTTP_BODY_BYTES]))).unwrap();
    assert_eq!(whole.len(), HTTP_BODY_BYTES);
    let refused = runtime.block_on(read(Body::from(vec![b'x'; HTTP_BODY_BYTES + 1]))).unwrap_err();
    assert_eq!(refused.known(), ErrorCode::BodyTooLarge);
    assert!(runtime.block_on(read(Body::empty())).unwrap().is_empty());
}
