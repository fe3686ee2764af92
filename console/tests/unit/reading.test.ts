import { expect, test } from "vitest";
import { eventParser, type ServerEvent } from "../../src/api/events";
import { LogText, matches, MOST_CHARS, plain } from "../../src/lib/log";
import { between, parseMetrics, quantile } from "../../src/lib/metrics";
import { absolute, duration, relative } from "../../src/lib/time";
import { height } from "../../src/ui/strip";

test("events are read however the bytes arrive", () => {
  const stream =
    'retry: 1000\n\n: beat\n\nid: 1-10\nevent: log\ndata: {"text":"a\\nb"}\n\nevent: end\ndata: {"x":1}\n\n';
  for (const size of [1, 2, 7, stream.length]) {
    const events: ServerEvent[] = [];
    const feed = eventParser((event) => events.push(event));
    for (let at = 0; at < stream.length; at += size) feed(stream.slice(at, at + size));
    expect(events).toEqual([
      { name: "log", id: "1-10", data: { text: "a\nb" } },
      { name: "end", id: undefined, data: { x: 1 } },
    ]);
  }
});

test("lines of a log are joined over pieces, and the oldest go when there are too many", () => {
  const log = new LogText();
  for (const piece of ["one\ntw", "o\n", "", "three"]) log.add(piece);
  expect(log.lines).toEqual(["one", "two", "three"]);
  log.add("\n\n");
  expect(log.lines).toEqual(["one", "two", "three", ""]);
  log.add(`${"x".repeat(MOST_CHARS)}\nlast`);
  expect(log.dropped).toBe(5);
  expect(log.lines).toEqual(["last"]);
});

test("colours of a terminal and lines that were written over are not shown", () => {
  expect(plain("\u001b[31mred\u001b[0m text")).toBe("red text");
  expect(plain("10 %\r50 %\r100 %")).toBe("100 %");
  expect(matches(["Error one", "fine", "an error"], "error")).toEqual([0, 2]);
});

test("quantiles come from what was observed between two readings", () => {
  const text = (counts: number[], fires: number) =>
    [1, 10, 100]
      .map((bound, index) => `trigger_delay_ms_bucket{le="${bound}"} ${counts[index]}`)
      .concat(
        `trigger_delay_ms_bucket{le="+Inf"} ${counts[3]}`,
        `trigger_delay_ms_count ${counts[3]}`,
        `schedule_fires_total ${fires}`,
      )
      .join("\n");
  const [before, after] = [parseMetrics(text([5, 5, 5, 5], 5), 0), parseMetrics(text([5, 104, 105, 105], 105), 1)];
  const seen = between(before.lateness, after.lateness);
  expect(seen.count).toBe(100);
  expect(quantile(seen, 0.5)).toBeCloseTo(5.5, 1);
  expect(quantile(seen, 0.999)).toBeGreaterThan(10);
  expect(quantile(between(after.lateness, after.lateness), 0.5)).toBeUndefined();
  expect(after.fires - before.fires).toBe(100);
});

test("times are the same instant in every zone", () => {
  const ms = Date.parse("2026-03-29T00:30:00.250Z");
  expect(absolute(ms, "UTC")).toBe("2026-03-29 00:30:00.250");
  expect(absolute(ms, "Asia/Shanghai", true)).toBe("2026-03-29 08:30:00.250 Asia/Shanghai");
  expect(absolute(Date.parse("2026-03-29T22:00:00Z"), "Europe/Berlin")).toBe("2026-03-30 00:00:00");
  expect(absolute(ms, "Not/AZone")).toBe("2026-03-29 00:30:00.250");
  expect([0, 999, 1000, 61_000, 3_600_000, 90_000_000].map(duration)).toEqual([
    "0 ms",
    "999 ms",
    "1 s",
    "1 min 1 s",
    "1 h",
    "1 d 1 h",
  ]);
  expect(relative(ms - 80_000, ms)).toBe("80 sec. ago");
  expect(relative(ms + 7_200_000, ms)).toBe("in 2 hr.");
});

test("a bar is never higher than its box", () => {
  for (const [ms, most] of [
    [0, 0],
    [1, 1],
    [5000, 5000],
    [1, 86_400_000],
  ] as const) {
    expect(height(ms, most)).toBeGreaterThan(0);
    expect(height(ms, most)).toBeLessThanOrEqual(64);
  }
});
