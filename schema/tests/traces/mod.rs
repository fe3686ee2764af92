//! Calls in a trace, what it makes of an assignment and a run, and the search in a log.

use super::{Golden, assignment, decoded, run};
use campanile_schema::{
    ids::{JobId, RunId},
    operations::{JobTrigger, RunLog},
    rpc::{
        calls::{JobCall, RunCall},
        codec::{AFTER_HELLO, CallFacts, Decoder, Message},
        encode,
        executor::Assign,
        method,
    },
    trace::{SpanOf, TraceContext},
    view::{LogBody, LogLevel, LogView, RunView, TriggerBody},
};

pub fn all(golden: &mut Golden) {
    let caller: TraceContext = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().unwrap();
    let params = JobCall::new(JobId(8_193), TriggerBody::default());
    let facts = CallFacts { traceparent: Some(caller.to_string().into()) };
    let mut out = Vec::new();
    encode::request_of(&mut out, 7, JobTrigger::NAME, &encode::map(&params).unwrap(), Some(&facts)).unwrap();
    let mut decoder = Decoder::new(AFTER_HELLO);
    let Message::Request { params: read, .. } = decoded(&out, &mut decoder) else { panic!() };
    assert_eq!(read.read::<JobCall<TriggerBody>>().unwrap(), params);
    assert_eq!(read.trace(), Some(caller));
    golden.0.insert("job_trigger_in_trace_request", out);

    let mut traced = assignment();
    let attempt = caller.at(SpanOf::Attempt(traced.run, traced.token));
    traced.traceparent = Some(attempt.to_string());
    golden.notification("assign_in_trace", method::ASSIGN, &Assign { items: vec![traced] });
    golden.answer("run_in_trace_answer", 7, &RunView { trace_id: Some(caller.trace.to_string()), ..run() });

    let search = LogBody {
        contains: Some("customer 7".to_owned()),
        level: Some(LogLevel::Warn),
        tail: Some(2),
        ..LogBody::default()
    };
    golden.request("run_log_search_request", 8, RunLog::NAME, &RunCall::new(RunId(4_194_305), search));
    let found = LogView {
        run_id: RunId(4_194_305),
        attempt: 1,
        offset: 0,
        text: "WARN customer 7 is slow\n".to_owned(),
        next_offset: 4_096,
        end: true,
        lines: Some(vec![17]),
    };
    golden.answer("run_log_search_answer", 8, &found);
}

/// What is beside the params must not be in the way of who does not know it, and a slip there is no reason to refuse a call.
#[test]
fn facts_that_cannot_be_read_count_as_none() {
    let trace = |params: &serde_json::Value| {
        let bytes = rmp_serde::to_vec_named(&(0, 1, "job.trigger", params)).unwrap();
        let mut decoder = Decoder::new(AFTER_HELLO);
        let Message::Request { params, .. } = decoded(&bytes, &mut decoder) else { panic!() };
        params.map().map(|_| params.trace().is_some())
    };
    let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    assert_eq!(trace(&serde_json::json!([{"jobId": 1}, {"traceparent": good}])).ok(), Some(true));
    assert_eq!(trace(&serde_json::json!([{"jobId": 1}, {"traceparent": good, "later": [1]}])).ok(), Some(true));
    assert_eq!(trace(&serde_json::json!([{"jobId": 1}, {"traceparent": "no"}])).ok(), Some(false));
    assert_eq!(trace(&serde_json::json!([{"jobId": 1}, {}])).ok(), Some(false));
    assert_eq!(trace(&serde_json::json!([{"jobId": 1}])).ok(), Some(false));
    assert!(trace(&serde_json::json!([{"jobId": 1}, {}, {}])).is_err());
}
