import { expect, test } from "vitest";
import type { LedgerEntry } from "../../src/api/client";
import { cellStart, emptyCells, fill, GRAINS, grainFor, worst } from "../../src/lib/ledger";

const at = (text: string) => Date.parse(text);

test("days are those of the job's zone, also when the clock changes", () => {
  // Berlin goes from +1 to +2 on 2026-03-29 at 01:00 UTC.
  const cells = emptyCells(at("2026-03-30T12:00:00Z"), "day", "Europe/Berlin");
  expect(cells).toHaveLength(GRAINS.day.cells);
  const [before, change, last] = cells.slice(-3);
  expect(new Date(before!.from).toISOString()).toBe("2026-03-27T23:00:00.000Z");
  expect(new Date(change!.from).toISOString()).toBe("2026-03-28T23:00:00.000Z");
  expect(new Date(last!.from).toISOString()).toBe("2026-03-29T22:00:00.000Z");
  expect(change!.to - change!.from).toBe(23 * 3_600_000);
  expect(last!.to - last!.from).toBe(24 * 3_600_000);
});

test("cells follow each other without gap or overlap", () => {
  for (const zone of ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Apia"]) {
    for (const grain of ["minute", "hour", "day"] as const) {
      const cells = emptyCells(at("2026-11-02T03:30:00Z"), grain, zone);
      cells.slice(1).forEach((cell, index) => expect(cell.from).toBe(cells[index]!.to));
      expect(cellStart(cells[5]!.from, grain, zone)).toBe(cells[5]!.from);
    }
  }
});

test("a cell shows the worst of its outcomes", () => {
  const cells = emptyCells(at("2026-02-24T10:00:00Z"), "hour", "UTC");
  const entry = (time: string, outcome: LedgerEntry["outcome"], more: Partial<LedgerEntry> = {}): LedgerEntry => ({
    logicalTime: time,
    count: 1,
    outcome,
    ...more,
  });
  fill(cells, [
    entry("2026-02-24T09:00:00Z", "FIRED"),
    entry("2026-02-24T09:30:00Z", "MISSED"),
    entry("2026-02-24T08:00:00Z", "FIRED_LATE"),
    entry("2026-02-24T05:00:00Z", "SKIPPED", { until: "2026-02-24T06:59:59Z", count: 120 }),
  ]);
  const hour = (time: string) => cells.find((cell) => cell.from === at(time))!;
  expect(worst(hour("2026-02-24T09:00:00Z"))).toBe("MISSED");
  expect(worst(hour("2026-02-24T08:00:00Z"))).toBe("FIRED_LATE");
  expect(worst(hour("2026-02-24T07:00:00Z"))).toBeUndefined();
  expect(hour("2026-02-24T05:00:00Z").counts.SKIPPED).toBe(60);
  expect(hour("2026-02-24T06:00:00Z").counts.SKIPPED).toBe(60);
});

test("the grain fits how often a job is due", () => {
  expect(grainFor(5_000)).toBe("minute");
  expect(grainFor(3_600_000)).toBe("hour");
  expect(grainFor(86_400_000)).toBe("day");
  expect(grainFor(undefined)).toBe("day");
});
