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

/** Reads events until the signal or an event `end`. A broken connection is made again, later each time, from the last event on. */
export async function follow(path: string, options: Options): Promise<void> {
  const { onEvent, onState, signal } = options;
  let last = options.after;
  let delay = LEAST_MS;
  let over = false;
  while (!signal.aborted && !over) {
    onState?.("connecting");
    let problem: Problem | undefined;
    try {
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      if (last) headers["Last-Event-ID"] = last;
      const response = await raw(path, { signal, headers });
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
    }
    if (over || signal.aborted) {
      onState?.("over", problem);
      return;
    }
    onState?.("waiting", problem);
    await pause(delay * (0.75 + Math.random() / 2), signal);
    delay = Math.min(delay * 2, MOST_MS);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
