import { expect, test } from "vitest";
import { byCause, fingerprint } from "../../src/lib/cause";

test("texts that differ in numbers, ids, times and addresses have one cause", () => {
  const alike = [
    ["timed out after 30 s", "timed out after 45 s"],
    ["row 7f3c2a90-1234-4abc-8def-0123456789ab is locked", "row 00000000-1111-2222-3333-444444444444 is locked"],
    ["at 2026-02-24T09:00:00.120Z: no space", "at 2025-12-31 23:59:59: no space"],
    ["connect 10.0.0.7:5432 refused", "connect 192.168.1.20:5433 refused"],
    ["object deadbeef01 is gone", "object 0123456789abcdef is gone"],
    ["exit code 2: no file 17\nsecond line 1", "exit code 2: no file 99\nother"],
  ];
  for (const [one, other] of alike) expect(fingerprint(one!)).toBe(fingerprint(other!));
});

test("exit codes and statuses are causes of their own", () => {
  expect(fingerprint("exit code 1: x")).not.toBe(fingerprint("exit code 2: x"));
  expect(fingerprint("HTTP 503")).not.toBe(fingerprint("HTTP 404"));
  expect(fingerprint("no such table")).not.toBe(fingerprint("no such file"));
});

test("the largest group is first and knows its jobs", () => {
  const items = [
    { text: "a 1", jobId: 1, job: "one" },
    { text: "b", jobId: 2, job: "two" },
    { text: "a 2", jobId: 3, job: "three" },
  ];
  const groups = byCause(items, (item) => item);
  expect(groups.map((group) => [group.cause, group.items.length])).toEqual([
    ["a #", 2],
    ["b", 1],
  ]);
  expect([...groups[0]!.jobs]).toEqual([
    [1, "one"],
    [3, "three"],
  ]);
});

test("a long text costs no more than a short one", () => {
  expect(fingerprint("x".repeat(1_000_000)).length).toBeLessThanOrEqual(240);
});
