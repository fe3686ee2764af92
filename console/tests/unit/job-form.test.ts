import * as v from "valibot";
import { expect, test } from "vitest";
import { differences } from "../../src/lib/diff";
import { blank, formOf, isJsonObject, parsePairs, schema, specOf, type Form, type Spec } from "../../src/lib/job-form";

const date = { kind: "COMMAND", command: ["/bin/sh", "-c", "date"], env: {}, cwd: null, stdin: null, outputCapKb: 256 };
const spec = (more: Partial<Spec>): Spec => ({ ...blank, name: "a", action: date as Spec["action"], ...more });

test("a definition that nobody touched comes back as it was", () => {
  const specs: Spec[] = [
    spec({}),
    spec({
      trigger: {
        ...blank.trigger,
        dialect: "QUARTZ",
        expr: "0 0 2 L * ?",
        jitterSec: 30,
        startAt: "2026-01-01T00:00:00.000Z",
      } as Spec["trigger"],
      action: {
        kind: "COMMAND",
        command: ["/bin/echo", "a b", "c"],
        env: { A: "x=y" },
        cwd: "/tmp",
        stdin: "in",
        outputCapKb: 64,
        nice: 5,
        limits: { cpuSec: 3 },
      } as Spec["action"],
      labels: { team: "pay" },
      secretParams: { password: "***" },
      params: { n: 1, nested: { deep: [1, 2] } },
    }),
    spec({
      trigger: {
        type: "FIXED_DELAY",
        everySec: 90,
        startAt: null,
        endAt: null,
        misfirePolicy: "SKIP",
        misfireThresholdSec: 5,
      },
    }),
    spec({
      trigger: {
        type: "FIXED_RATE",
        everySec: 7200,
        anchorAt: "2026-01-01T00:00:01.500Z",
        startAt: null,
        endAt: null,
        jitterSec: 0,
        misfirePolicy: "SKIP",
        misfireThresholdSec: 5,
        maxCatchUp: 9,
      },
    }),
    spec({
      trigger: {
        type: "ONCE",
        at: "2026-02-24T09:00:00.123Z",
        misfirePolicy: "FIRE_ONCE_NOW",
        misfireThresholdSec: 60,
      },
    }),
    spec({ trigger: { type: "MANUAL" }, action: { kind: "HANDLER", name: "h" } }),
    spec({
      action: {
        kind: "HTTP",
        method: "PUT",
        url: "https://x.example/{{runId}}",
        headers: { "X-A": "1" },
        body: { a: [1] },
        expectStatus: [200, 204],
        timeoutSec: 5,
        maxRedirects: 2,
      },
    }),
    spec({ hooks: { onFailure: [{ job: "refund", params: { n: 1 } }] } }),
    spec({
      hooks: {
        onFailure: [{ job: "refund", compensation: true }, { job: "tell" }],
        onSuccess: [{ job: "receipt" }],
      },
    }),
    spec({ hooks: { onDeadLetter: [{ job: "tell" }] } }),
  ];
  for (const was of specs) {
    const form = formOf(was);
    expect(v.safeParse(schema, form).success, JSON.stringify(v.safeParse(schema, form).issues)).toBe(true);
    expect(differences(was, specOf(form, was))).toEqual([]);
  }
});

test("what is wrong is found at its field", () => {
  const wrong = (change: Partial<Form>) => {
    const result = v.safeParse(schema, { ...formOf(spec({})), command: "date", ...change });
    return result.success ? [] : result.issues.map((issue) => issue.path?.[0]?.key);
  };
  expect(wrong({})).toEqual([]);
  expect(wrong({ name: "" })).toContain("name");
  expect(wrong({ name: "<script>" })).toContain("name");
  expect(wrong({ expr: " " })).toContain("expr");
  expect(wrong({ params: "[1]" })).toContain("params");
  expect(wrong({ labels: "novalue" })).toContain("labels");
  expect(wrong({ kind: "HTTP", url: "javascript:alert(1)" })).toContain("url");
  expect(wrong({ type: "ONCE", at: "" })).toContain("at");
  expect(wrong({ type: "FIXED_RATE", every: 0 })).toContain("every");
  expect(wrong({ maxAttempts: Number.NaN })).toContain("maxAttempts");
});

test("an expression that was changed is read anew", () => {
  const was = spec({ trigger: { ...blank.trigger, dialect: "QUARTZ", expr: "0 0 2 L * ?" } as Spec["trigger"] });
  const now = specOf({ ...formOf(was), expr: "0 3 * * *" }, was);
  expect(now.trigger).toMatchObject({ expr: "0 3 * * *", dialect: "AUTO" });
});

test("a DAG comes back as it was, and a new one has nothing about attempts", () => {
  const action = {
    kind: "DAG",
    nodes: [
      { id: "load", job: "a", params: {}, rule: "ALL_SUCCESS" },
      { id: "report", job: "b", params: { n: 1 }, rule: "ALL_DONE", timeoutSec: 9 },
    ],
    edges: [{ from: "load", to: "report", when: "parent.result.rows > 0" }],
    failFast: true,
    maxParallel: 7,
    timeoutSec: 60,
  } as unknown as Spec["action"];
  const was = spec({ action });
  expect(specOf(formOf(was), was)).toEqual(was);
  const now = specOf({ ...formOf(blank), name: "new", kind: "DAG", graph: JSON.stringify({ nodes: [] }) }, blank);
  expect(now.action).toEqual({ kind: "DAG", nodes: [] });
  // The node refuses both for a DAG.
  expect(now).not.toHaveProperty("retryPolicy");
  expect(now).not.toHaveProperty("timeoutSec");
  for (const graph of ["", " ", "[]", "{"])
    expect(
      v.safeParse(schema, { ...formOf(spec({})), kind: "DAG", graph }).issues?.map((issue) => v.getDotPath(issue)),
      graph,
    ).toContain("graph");
});

test("texts for people come back as they were, and go when they are emptied", () => {
  const texts = {
    displayName: "每日计费",
    description: "Closes the books.\nAsk first.",
    owner: "finance@example.org",
    annotations: { runbook: "https://example.org/a=b", steps: "one\ntwo" },
  };
  const was = spec(texts);
  expect(specOf(formOf(was), was)).toEqual(was);
  const emptied = { ...formOf(was), displayName: " ", description: "", owner: "", annotations: "" };
  const now = specOf(emptied, was);
  // A field with a line for each annotation cannot show this one, so it stays.
  expect(now.annotations).toEqual({ steps: "one\ntwo" });
  for (const name of ["displayName", "description", "owner"]) expect(now).not.toHaveProperty(name);
  const long = { ...formOf(was), owner: "w".repeat(257) };
  expect(v.safeParse(schema, long).issues?.map((issue) => [v.getDotPath(issue), issue.message])).toEqual([
    ["owner", "long"],
  ]);
});

test("pairs keep what is behind the first equals sign", () => {
  expect(parsePairs("A=b=c\n\n B =d")).toEqual({ map: { A: "b=c", B: "d" }, wrong: [] });
  expect(parsePairs("=x\ny").wrong).toEqual(["=x", "y"]);
  expect(isJsonObject("null")).toBe(false);
  expect(isJsonObject('{"a":1}')).toBe(true);
});

test("a difference is named by its path", () => {
  expect(differences({ a: { b: 1, c: null }, d: [1] }, { a: { b: 2 }, d: [1, 2] })).toEqual([
    { path: "a.b", was: "1", is: "2" },
    { path: "d", was: "[1]", is: "[1,2]" },
  ]);
});
