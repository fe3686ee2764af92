"""A collector: takes OTLP over HTTP as protobuf, and keeps the spans.

The messages are those that OpenTelemetry publishes (`opentelemetry-proto`), so nothing of Campanile judges what Campanile sends.
"""

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan

KINDS = {
    WireSpan.SPAN_KIND_INTERNAL: "INTERNAL",
    WireSpan.SPAN_KIND_SERVER: "SERVER",
    WireSpan.SPAN_KIND_CLIENT: "CLIENT",
}


@dataclass(frozen=True)
class Span:
    trace: str
    id: str
    parent: str
    name: str
    kind: str
    begin_ns: int
    end_ns: int
    error: str | None
    attributes: dict
    resource: dict


@dataclass
class Receiver:
    """`refuses`: answers 503, as a collector that is being restarted."""

    spans: list[Span] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    headers: list[dict] = field(default_factory=list)
    refuses: bool = False

    def __post_init__(self) -> None:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                code, answer = receiver.take(self.path, dict(self.headers.items()), body)
                self.send_response(code)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def take(self, path: str, headers: dict, body: bytes) -> tuple[int, bytes]:
        if self.refuses:
            return 503, b""
        self.headers.append({name.lower(): value for name, value in headers.items()})
        if path != "/v1/traces" or headers.get("content-type", headers.get("Content-Type")) != "application/x-protobuf":
            self.wrong.append(f"{path} {headers}")
            return 400, b""
        request = ExportTraceServiceRequest()
        request.ParseFromString(body)
        for of_resource in request.resource_spans:
            resource = values(of_resource.resource.attributes)
            for scope in of_resource.scope_spans:
                self.spans.extend(self.span(span, resource) for span in scope.spans)
        return 200, ExportTraceServiceResponse().SerializeToString()

    def span(self, span: WireSpan, resource: dict) -> Span:
        if len(span.trace_id) != 16 or len(span.span_id) != 8 or len(span.parent_span_id) not in (0, 8):
            self.wrong.append(f"ids of {span.name}")
        if span.end_time_unix_nano < span.start_time_unix_nano:
            self.wrong.append(f"{span.name} ends before it begins")
        return Span(
            trace=span.trace_id.hex(),
            id=span.span_id.hex(),
            parent=span.parent_span_id.hex(),
            name=span.name,
            kind=KINDS.get(span.kind, str(span.kind)),
            begin_ns=span.start_time_unix_nano,
            end_ns=span.end_time_unix_nano,
            error=span.status.message if span.status.code == 2 else None,
            attributes=values(span.attributes),
            resource=resource,
        )

    def of(self, trace: str) -> list[Span]:
        return [span for span in list(self.spans) if span.trace == trace]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def values(attributes: object) -> dict:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
