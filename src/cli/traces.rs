//! Where spans go: to a collector of OpenTelemetry traces, as protobuf over HTTP.
//!
//! The SDK of OpenTelemetry gathers them and sends them from a thread of its own; the program's HTTP client carries them, so that
//! no second one is linked. A collector that does not answer costs nothing but its spans: they are dropped and counted.

use super::{failure::Failure, remote::tls_config};
use crate::config::TracesSection;
use campanile_ports::{
    log_once::LogOnce,
    spans::{Span, SpanKind, SpanSink, SpanValue, Tracer},
};
use campanile_schema::trace::Sampling;
use opentelemetry::{
    InstrumentationScope, KeyValue, Value,
    trace::{self as otel, SpanContext, Status, TraceFlags, TraceState},
};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{
        BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanEvents, SpanExporter as Exporter, SpanLinks,
        SpanProcessor,
    },
};
use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Spans that wait for the collector, at most.
const WAITING: usize = 65_536;
/// Spans of one request, at most.
const BATCH: usize = 512;
/// From a span's end to its sending, at most.
const DELAY: Duration = Duration::from_secs(1);
/// A request to the collector is given up after this.
const SEND: Duration = Duration::from_secs(5);
/// Longest answer that is read, bytes.
const ANSWER_BYTES: u64 = 64 << 10;
/// Longest file of headers that is read, bytes.
const HEADERS_BYTES: u64 = 64 << 10;
/// What OTLP appends to the address of a collector.
const PATH: &str = "/v1/traces";

/// The tracer of a program; switched off where no collector is named. `role`: node or executor; `instance`: its name.
pub(super) fn tracer(section: &TracesSection, role: &'static str, instance: &str) -> Result<Tracer, Failure> {
    if section.endpoint.is_empty() {
        return Ok(Tracer::default());
    }
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client(section)?)
        .with_endpoint(address(&section.endpoint))
        .with_headers(headers(&section.headers_file)?)
        .with_timeout(SEND)
        .build()
        .map_err(|error| Failure::usage(format!("traces.endpoint: {error}")))?;
    let waiting = Arc::<AtomicUsize>::default();
    let exporter = Counted { exporter, waiting: waiting.clone(), failures: LogOnce::new("spans cannot be sent") };
    let config = BatchConfigBuilder::default()
        // More than are counted in, so that none is dropped without being counted.
        .with_max_queue_size(WAITING + BATCH)
        .with_max_export_batch_size(BATCH)
        .with_scheduled_delay(DELAY)
        .build();
    let mut processor = BatchSpanProcessor::builder(exporter).with_batch_config(config).build();
    processor.set_resource(&resource(role, instance));
    let scope = InstrumentationScope::builder("campanile").with_version(env!("CARGO_PKG_VERSION")).build();
    // The hasher's keys are random.
    let seed = RandomState::new().hash_one(instance);
    Ok(Tracer::new(Collector { processor, scope, waiting }, Sampling { seed, share: section.sample_per_million }))
}

/// Sends what is left, at the end of the process.
pub(super) async fn flush(tracer: Tracer) {
    // It waits for the collector.
    let _ = tokio::task::spawn_blocking(move || tracer.flush()).await;
}

fn resource(role: &'static str, instance: &str) -> Resource {
    let facts = [
        ("service.name", "campanile".to_owned()),
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("service.instance.id", instance.to_owned()),
        ("campanile.role", role.to_owned()),
    ];
    Resource::builder().with_attributes(facts.map(|(name, value)| KeyValue::new(name, value))).build()
}

/// With the path of OTLP, unless another one is named.
fn address(endpoint: &str) -> String {
    let endpoint = endpoint.trim_end_matches('/');
    let has_path = endpoint.parse::<http::Uri>().is_ok_and(|uri| !matches!(uri.path(), "" | "/"));
    if has_path { endpoint.to_owned() } else { format!("{endpoint}{PATH}") }
}

/// `name: value` in each line.
fn headers(file: &str) -> Result<HashMap<String, String>, Failure> {
    if file.is_empty() {
        return Ok(HashMap::new());
    }
    let refused = |why: String| Failure::usage(format!("traces.headers_file {file}: {why}"));
    let read = || {
        use std::io::Read;
        campanile_security::text::read_from(std::fs::File::open(file)?.take(HEADERS_BYTES), false)
    };
    let text = read().map_err(|error: std::io::Error| refused(error.to_string()))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| match line.split_once(':') {
            Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
            Some(_) | None => Err(refused("each line is 'name: value'".to_owned())),
        })
        .collect()
}

fn client(section: &TracesSection) -> Result<Client, Failure> {
    let mut config = ureq::Agent::config_builder();
    if section.endpoint.starts_with("https://") {
        let ca = Some(section.ca_file.as_str()).filter(|file| !file.is_empty()).map(Path::new);
        config = config.tls_config(tls_config(ca, "traces.ca_file")?);
    }
    let config = config.http_status_as_error(false).timeout_global(Some(SEND)).proxy(None).build();
    Ok(Client(config.into()))
}

/// The program's HTTP client. It waits on the thread that calls it, which is the one that sends spans.
#[derive(Debug)]
struct Client(ureq::Agent);

#[async_trait::async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let answer = self.0.run(Request::from_parts(parts, body.to_vec()))?;
        let (parts, mut body) = answer.into_parts();
        let bytes = body.with_config().limit(ANSWER_BYTES).read_to_vec()?;
        Ok(Response::from_parts(parts, Bytes::from(bytes)))
    }
}

/// Takes spans as long as there is room for them.
struct Collector {
    processor: BatchSpanProcessor,
    scope: InstrumentationScope,
    waiting: Arc<AtomicUsize>,
}

impl SpanSink for Collector {
    fn record(&self, span: Span) {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            metrics::counter!("campanile_trace_spans_total", "outcome" => "dropped").increment(1);
            return;
        }
        self.processor.on_end(data(span, &self.scope));
    }

    fn flush(&self) {
        // It says itself why, through the exporter.
        let _ = self.processor.shutdown();
    }
}

/// Counts what becomes of spans.
#[derive(Debug)]
struct Counted {
    exporter: SpanExporter,
    waiting: Arc<AtomicUsize>,
    failures: LogOnce,
}

impl Exporter for Counted {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let sent = self.exporter.export(batch).await;
        self.waiting.fetch_sub(spans, Ordering::Relaxed);
        let outcome = match &sent {
            Ok(()) => {
                self.failures.end();
                "sent"
            }
            Err(error) => {
                self.failures.failed(error);
                "failed"
            }
        };
        metrics::counter!("campanile_trace_spans_total", "outcome" => outcome).increment(spans as u64);
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

fn data(span: Span, scope: &InstrumentationScope) -> SpanData {
    let Span { context, parent, name, kind, begin_us, end_us, error, attributes } = span;
    let ids = (context.trace.0.into(), context.span.0.into());
    SpanData {
        span_context: SpanContext::new(ids.0, ids.1, TraceFlags::SAMPLED, false, TraceState::NONE),
        parent_span_id: parent.map_or(otel::SpanId::INVALID, |parent| parent.0.into()),
        parent_span_is_remote: kind == SpanKind::Server,
        span_kind: match kind {
            SpanKind::Internal => otel::SpanKind::Internal,
            SpanKind::Client => otel::SpanKind::Client,
            SpanKind::Server => otel::SpanKind::Server,
        },
        name: name.into(),
        start_time: at(begin_us),
        end_time: at(end_us),
        attributes: attributes.into_iter().map(|(name, value)| KeyValue::new(name, of(value))).collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: error.map_or(Status::Unset, Status::error),
        instrumentation_scope: scope.clone(),
    }
}

fn of(value: SpanValue) -> Value {
    match value {
        SpanValue::Text(text) => Value::from(text),
        SpanValue::Number(number) => Value::from(number),
    }
}

fn at(us: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(us.max(0).cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_gets_the_path_of_otlp_unless_it_has_one() {
        for (given, meant) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
            ("https://traces.example/tenant/otlp", "https://traces.example/tenant/otlp"),
        ] {
            assert_eq!(address(given), meant);
        }
    }

    #[test]
    fn headers_are_read_line_by_line_and_a_secret_is_not_repeated() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("headers");
        let read = |text: &str| {
            std::fs::write(&file, text).unwrap();
            headers(&file.display().to_string())
        };
        let found = read("# key of the collector\nAuthorization: Bearer s3cr:et\n\nx-tenant: ops\n").unwrap();
        assert_eq!(found["Authorization"], "Bearer s3cr:et");
        assert_eq!(found.len(), 2);
        let refused = read("Bearer s3cret").unwrap_err().message;
        assert!(refused.contains("'name: value'") && !refused.contains("s3cret"), "{refused}");
    }
}
