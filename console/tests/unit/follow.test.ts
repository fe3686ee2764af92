import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { follow, type Live, type ServerEvent } from "../../src/api/events";

/** A node that answers each connection with what the test says, and a page that can be hidden. */
class Page extends EventTarget {
  hidden = false;
  show(seen: boolean) {
    this.hidden = !seen;
    this.dispatchEvent(new Event("visibilitychange"));
  }
}

interface Connection {
  after: string | null;
  send: (text: string) => void;
  end: () => void;
  fail: (status: number) => void;
  aborted: boolean;
}

let page: Page;
let connections: Connection[];
let stop: AbortController;
let events: ServerEvent[];
let states: Live[];

beforeEach(() => {
  vi.useFakeTimers();
  page = new Page();
  connections = [];
  events = [];
  states = [];
  stop = new AbortController();
  vi.stubGlobal("document", page);
  vi.spyOn(Math, "random").mockReturnValue(0.5);
  vi.stubGlobal(
    "Request",
    class extends Request {
      constructor(path: string, init?: RequestInit) {
        super(`http://node.example${path}`, init);
      }
    },
  );
  vi.stubGlobal(
    "fetch",
    (request: Request) =>
      new Promise<Response>((resolve, reject) => {
        let stream!: ReadableStreamDefaultController<Uint8Array>;
        const body = new ReadableStream<Uint8Array>({ start: (controller) => void (stream = controller) });
        const answered = (status: number) =>
          resolve(new Response(status === 200 ? body : JSON.stringify({ code: "X" }), { status }));
        const connection: Connection = {
          after: request.headers.get("Last-Event-ID"),
          send: (text) => {
            answered(200);
            stream.enqueue(new TextEncoder().encode(text));
          },
          end: () => stream.close(),
          fail: (status) => answered(status),
          aborted: false,
        };
        request.signal.addEventListener("abort", () => {
          connection.aborted = true;
          const error = new DOMException("aborted", "AbortError");
          reject(error);
          stream.error(error);
        });
        connections.push(connection);
      }),
  );
});
afterEach(async () => {
  stop.abort();
  await settle();
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const begin = () =>
  follow("/api/v1/runs/watch", {
    signal: stop.signal,
    onEvent: (event) => events.push(event),
    onState: (state) => states.push(state),
  });
const settle = () => vi.advanceTimersByTimeAsync(0);
const EVENT = (id: string) => `id: ${id}\nevent: run\ndata: {"n":1}\n\n`;

test("a broken connection goes on behind the last event, later each time", async () => {
  void begin();
  await settle();
  connections[0]!.send(EVENT("a-1"));
  await settle();
  connections[0]!.end();
  await settle();
  expect(states.at(-1)).toBe("waiting");
  await vi.advanceTimersByTimeAsync(999);
  expect(connections).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(connections[1]!.after).toBe("a-1");
  connections[1]!.fail(503);
  await settle();
  await vi.advanceTimersByTimeAsync(1999);
  expect(connections).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(1);
  expect(connections).toHaveLength(3);
  expect(events).toHaveLength(1);
});

test("an end and a refusal are final", async () => {
  const ended = begin();
  await settle();
  connections[0]!.send('event: end\ndata: {"n":1}\n\n');
  await ended;
  expect(states.at(-1)).toBe("over");
  const refused = begin();
  await settle();
  connections[1]!.fail(404);
  await refused;
  expect(connections).toHaveLength(2);
});

test("a page that nobody sees gives its connection back, and goes on when it is seen", async () => {
  void begin();
  await settle();
  connections[0]!.send(EVENT("a-1"));
  await settle();
  page.show(false);
  await vi.advanceTimersByTimeAsync(9_000);
  expect(connections[0]!.aborted).toBe(false);
  // A look in between begins the time anew.
  page.show(true);
  page.show(false);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(connections[0]!.aborted).toBe(true);
  await vi.advanceTimersByTimeAsync(120_000);
  expect(connections).toHaveLength(1);
  page.show(true);
  await settle();
  expect(connections[1]!.after).toBe("a-1");
});
