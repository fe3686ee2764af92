// The fire ledger as a calendar: cells of time, each with what became of the instants in it.
import type { LedgerEntry } from "../api/client";

export type Grain = "minute" | "hour" | "day";

export const GRAINS: Record<Grain, { cellMs: number; cells: number; columns: number }> = {
  minute: { cellMs: 60_000, cells: 120, columns: 60 },
  hour: { cellMs: 3_600_000, cells: 96, columns: 24 },
  day: { cellMs: 86_400_000, cells: 70, columns: 7 },
};

/** The grain in which a job that is due this often has about one instant a cell. */
export function grainFor(everyMs: number | undefined): Grain {
  if (everyMs === undefined) return "day";
  if (everyMs < 900_000) return "minute";
  return everyMs < 20 * 3_600_000 ? "hour" : "day";
}

export interface Cell {
  from: number;
  to: number;
  counts: Partial<Record<LedgerEntry["outcome"], number>>;
  total: number;
  entries: LedgerEntry[];
}

/** Worst first: a cell shows the worst of its outcomes. */
export const WORST: LedgerEntry["outcome"][] = ["MISSED", "FIRED_LATE", "SKIPPED", "DST_SKIPPED", "COALESCED", "FIRED"];

export function worst(cell: Cell): LedgerEntry["outcome"] | undefined {
  return WORST.find((outcome) => (cell.counts[outcome] ?? 0) > 0);
}

/** Where days begin in a zone differs from UTC by this much at an instant, ms. */
export function zoneOffset(ms: number, zone: string): number {
  const parts = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  }).formatToParts(ms);
  const of = (type: string) => Number(parts.find((part) => part.type === type)?.value);
  return (
    Date.UTC(of("year"), of("month") - 1, of("day"), of("hour"), of("minute"), of("second")) -
    Math.floor(ms / 1000) * 1000
  );
}

/** The start of the cell that an instant is in. Days are those of the zone, whatever the clock does in them. */
export function cellStart(ms: number, grain: Grain, zone: string): number {
  const { cellMs } = GRAINS[grain];
  if (grain !== "day") return Math.floor(ms / cellMs) * cellMs;
  const local = ms + zoneOffset(ms, zone);
  const midnight = Math.floor(local / cellMs) * cellMs;
  // The offset at midnight may be another one than at the instant.
  const guess = midnight - zoneOffset(ms, zone);
  return midnight - zoneOffset(guess, zone);
}

/** Cells that end with the one that `until` is in. */
export function emptyCells(until: number, grain: Grain, zone: string): Cell[] {
  const { cellMs, cells } = GRAINS[grain];
  const starts: number[] = [];
  let start = cellStart(until, grain, zone);
  const last = start;
  for (let index = 0; index < cells; index += 1) {
    starts.unshift(start);
    // Half a cell before the start is in the cell before, also on days of 23 and 25 hours.
    start = cellStart(start - cellMs / 2, grain, zone);
  }
  const end = grain === "day" ? cellStart(last + 1.5 * cellMs, grain, zone) : last + cellMs;
  return starts.map((from, index) => ({ from, to: starts[index + 1] ?? end, counts: {}, total: 0, entries: [] }));
}

/** Puts entries into their cells. A stretch of instants is spread evenly over the cells that it covers. */
export function fill(cells: Cell[], entries: LedgerEntry[]) {
  for (const entry of entries) {
    const first = Date.parse(entry.logicalTime);
    const last = entry.until ? Date.parse(entry.until) : first;
    const covered = cells.filter((cell) => cell.from <= last && first < cell.to);
    if (covered.length === 0) continue;
    const span = Math.max(1, last - first);
    for (const cell of covered) {
      const share = covered.length === 1 ? 1 : (Math.min(cell.to, last) - Math.max(cell.from, first)) / span;
      const count = Math.max(1, Math.round(entry.count * share));
      cell.counts[entry.outcome] = (cell.counts[entry.outcome] ?? 0) + count;
      cell.total += count;
      cell.entries.push(entry);
    }
  }
}
