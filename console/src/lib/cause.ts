// Groups failures by their cause: texts that differ only in numbers, ids, times and quoted values have one cause.

import type { Run } from "../api/client";

const MOST_CHARS = 240;

/** The text without what differs between failures of one cause. */
export function fingerprint(text: string): string {
  const firstLine = text.split("\n").find((line) => line.trim() !== "") ?? "";
  return (
    firstLine
      .slice(0, 2000)
      .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, "<id>")
      .replace(/\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?/g, "<time>")
      .replace(/\b(?:0x)?(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b/gi, "<id>")
      .replace(/\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b/g, "<address>")
      // Exit codes and HTTP statuses are the cause itself.
      .replace(
        /\b(exit code|signal|status|HTTP) (\d{1,3})\b/gi,
        (_, word: string, number: string) => `${word} \u0001${[...number].join("\u0001")}`,
      )
      .replace(/(?<!\u0001)\b\d+(\.\d+)?\b/g, "#")
      .replaceAll("\u0001", "")
      .replace(/\s+/g, " ")
      .trim()
      .slice(0, MOST_CHARS)
  );
}

/** The facts of a failed run. Its job is known by its id only. */
export const failureCause = (run: Run) => ({
  text: run.lastError ?? run.state,
  jobId: run.jobId,
  job: String(run.jobId),
});

export interface Group<T> {
  /** What all of the group have in common. */
  cause: string;
  /** The newest one's own text. */
  sample: string;
  items: T[];
  /** Jobs that it happened to, by id. */
  jobs: Map<number, string>;
}

/** The largest groups first. */
export function byCause<T>(items: T[], facts: (item: T) => { text: string; jobId: number; job: string }): Group<T>[] {
  const groups = new Map<string, Group<T>>();
  for (const item of items) {
    const { text, jobId, job } = facts(item);
    const cause = fingerprint(text);
    let group = groups.get(cause);
    if (!group) {
      group = { cause, sample: text, items: [], jobs: new Map() };
      groups.set(cause, group);
    }
    group.items.push(item);
    group.jobs.set(jobId, job);
  }
  return [...groups.values()].sort((a, b) => b.items.length - a.items.length);
}
