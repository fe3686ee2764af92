// Server-sent events over fetch, because EventSource cannot send headers.
import { problemOf, raw, type Problem } from "./client";

export type Live = "connecting" | "live" | "waiting" | "over";
export interface ServerEvent {
  name: string;
  id?: string;
  data: unknown;
}

interface Options {
  onEvent: (event: ServerEvent) => void;
  onState?: (state: Live, problem?: Problem) => void;
  signal: AbortSignal;
  /** The id of the last event that is known. */
  after?: string;
}

const LEAST_MS = 1_000;
const MOST_MS = 30_000;

/** Splits a stream of text into events; keeps what is not whole yet. */
export function eventParser(onEvent: (event: ServerEvent) => void) {
  let rest = "";
  return (text: string) => {
    rest += text;
    const blocks = rest.split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      let name = "message";
      let id: string | undefined;
      const data: string[] = [];
      for (const line of block.split("\n")) {
        const at = line.indexOf(":");
        if (at <= 0) continue;
        const value = line.slice(at + 1).replace(/^ /, "");
        if (line.startsWith("event:")) name = value;
        else if (line.startsWith("id:")) id = value;
        else if (line.startsWith("data:")) data.push(value);
      }
      if (data.length === 0) continue;
      let parsed: unknown;
      try {
        parsed = JSON.parse(data.join("\n"));
      } catch {
        continue;
      }
      onEvent({ name, id, data: parsed });
    }
  };
}

/** A page that is not seen for so long gives its connection back: a browser has six for a node, over all its pages. */
const HIDDEN_MS = 10_000;

/** Reads events until the signal or an event `end`. A broken connection is made again, later each time, from the last event on. */
export async function follow(path: string, options: Options): Promise<void> {
  const { onEvent, onState, signal } = options;
  let last = options.after;
  let delay = LEAST_MS;
  let over = false;
  while (!signal.aborted && !over) {
    await seen(signal);
    if (signal.aborted) break;
    onState?.("connecting");
    let problem: Problem | undefined;
    const connection = connectionWhileSeen(signal);
    try {
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      if (last) headers["Last-Event-ID"] = last;
      const response = await raw(path, { signal: connection.signal, headers });
      onState?.("live");
      const feed = eventParser((event) => {
        delay = LEAST_MS;
        if (event.id) last = event.id;
        if (event.name === "end") over = true;
        onEvent(event);
      });
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      while (reader && !over) {
        const { done, value } = await reader.read();
        if (done) break;
        feed(value);
      }
      void reader?.cancel().catch(() => {});
    } catch (thrown) {
      problem = problemOf(thrown);
      // It will not get better by asking again.
      if (problem.status >= 400 && !problem.isPassing) over = true;
    } finally {
      connection.forget();
    }
    if (over || signal.aborted) {
      onState?.("over", problem);
      return;
    }
    // Given back, not broken: it goes on as soon as the page is seen again.
    if (connection.wasGivenBack()) continue;
    onState?.("waiting", problem);
    await pause(delay * (0.75 + Math.random() / 2), signal);
    delay = Math.min(delay * 2, MOST_MS);
  }
}

/** Aborts with the signal, and when the page was hidden for a while. */
function connectionWhileSeen(signal: AbortSignal) {
  const connection = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let givenBack = false;
  const abort = () => connection.abort();
  const looked = () => {
    clearTimeout(timer);
    if (!document.hidden) return;
    timer = setTimeout(() => {
      givenBack = true;
      abort();
    }, HIDDEN_MS);
  };
  signal.addEventListener("abort", abort, { once: true });
  document.addEventListener("visibilitychange", looked);
  return {
    signal: connection.signal,
    wasGivenBack: () => givenBack,
    forget: () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      document.removeEventListener("visibilitychange", looked);
    },
  };
}

/** Resolves when the page is seen, or with the signal. */
function seen(signal: AbortSignal): Promise<void> {
  if (!document.hidden || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", done);
      signal.removeEventListener("abort", done);
      resolve();
    };
    document.addEventListener("visibilitychange", done);
    signal.addEventListener("abort", done);
  });
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
