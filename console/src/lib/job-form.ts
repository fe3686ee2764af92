// The form of a job: its fields as a person edits them, and the way from and to a definition. What the form does not know stays as it is.
import * as v from "valibot";
import type { Schemas } from "../api/client";
import { localField } from "./time";

export type Spec = Schemas["JobSpec"];

const pairsOf = (map: Record<string, string> | undefined) =>
  Object.entries(map ?? {})
    .map(([name, value]) => `${name}=${value}`)
    .join("\n");

/** Annotations that a field with a line for each can show. Those of several lines stay as they are. */
const ofOneLine = (map: Record<string, string> | undefined) =>
  Object.fromEntries(Object.entries(map ?? {}).filter(([, value]) => !/[\r\n]/.test(value)));
const ofManyLines = (map: Record<string, string> | undefined) =>
  Object.fromEntries(Object.entries(map ?? {}).filter(([, value]) => /[\r\n]/.test(value)));

/** Lines of `name=value`; the names of lines that are not so. */
export function parsePairs(text: string): { map: Record<string, string>; wrong: string[] } {
  const map: Record<string, string> = {};
  const wrong: string[] = [];
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const at = line.indexOf("=");
    if (at <= 0) wrong.push(line.trim());
    else map[line.slice(0, at).trim()] = line.slice(at + 1);
  }
  return { map, wrong };
}

/** Hooks of each kind that a job may have. */
const HOOKS = 4;
const HOOK_KINDS = ["onFailure", "onTimeout", "onDeadLetter", "onSuccess"] as const;

/** Names of jobs with commas between them. */
const namesIn = (text: string) =>
  text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");

export const isJsonObject = (text: string) => {
  if (text.trim() === "") return true;
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value);
  } catch {
    return false;
  }
};

const pairs = v.pipe(
  v.string(),
  v.check((text) => parsePairs(text).wrong.length === 0, "pairs"),
);
const json = v.pipe(v.string(), v.check(isJsonObject, "json"));
const jobs = v.pipe(
  v.string(),
  v.check((text) => namesIn(text).length <= HOOKS, "hooks"),
);
const line = v.pipe(v.string(), v.maxLength(256, "long"));
const whole = (least: number) => v.pipe(v.number("number"), v.integer("number"), v.minValue(least, "number"));
const seconds = v.pipe(v.number("number"), v.minValue(0, "number"));

/** Messages are codes; the page has the sentences. The node checks everything once more. */
export const schema = v.pipe(
  v.object({
    name: v.pipe(
      v.string(),
      v.trim(),
      v.nonEmpty("required"),
      v.maxLength(128, "name"),
      v.regex(/^[\p{L}\p{N}._/-]+$/u, "name"),
    ),
    tenantId: v.string(),
    displayName: line,
    description: v.pipe(v.string(), v.maxLength(8192, "long")),
    owner: line,
    annotations: pairs,
    type: v.picklist(["CRON", "FIXED_RATE", "FIXED_DELAY", "ONCE", "MANUAL"]),
    expr: v.string(),
    timezone: v.string(),
    gap: v.picklist(["SHIFT", "SKIP"]),
    overlap: v.picklist(["FIRST", "SECOND", "BOTH"]),
    every: v.pipe(v.number("number"), v.minValue(0, "number")),
    unit: v.picklist(["1", "60", "3600", "86400"]),
    at: v.string(),
    misfirePolicy: v.picklist(["SKIP", "FIRE_ONCE_NOW", "FIRE_ALL_MISSED"]),
    misfireThresholdSec: whole(0),
    kind: v.picklist(["COMMAND", "HTTP", "HANDLER", "DAG"]),
    shell: v.boolean(),
    command: v.string(),
    env: pairs,
    method: v.picklist(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]),
    url: v.string(),
    headers: pairs,
    body: v.string(),
    handler: v.string(),
    graph: json,
    params: json,
    secretParams: pairs,
    labels: pairs,
    executorSelector: v.pipe(v.string(), v.trim(), v.nonEmpty("required")),
    timeoutSec: whole(1),
    maxAttempts: whole(1),
    backoff: v.picklist(["FIXED", "EXPONENTIAL"]),
    baseDelaySec: seconds,
    maxDelaySec: seconds,
    concurrencyPolicy: v.picklist(["ALLOW", "FORBID", "REPLACE", "QUEUE_ONE"]),
    idempotent: v.boolean(),
    deadLetter: v.boolean(),
    priority: v.pipe(whole(0), v.maxValue(1000, "number")),
    onFailure: jobs,
    onTimeout: jobs,
    onDeadLetter: jobs,
    onSuccess: jobs,
  }),
  v.forward(
    v.check((form) => form.type !== "CRON" || form.expr.trim() !== "", "required"),
    ["expr"],
  ),
  v.forward(
    v.check(
      (form) => !["FIXED_RATE", "FIXED_DELAY"].includes(form.type) || form.every * Number(form.unit) >= 1,
      "number",
    ),
    ["every"],
  ),
  v.forward(
    v.check((form) => form.type !== "ONCE" || Number.isFinite(Date.parse(form.at)), "required"),
    ["at"],
  ),
  v.forward(
    v.check((form) => form.kind !== "COMMAND" || form.command.trim() !== "", "required"),
    ["command"],
  ),
  v.forward(
    v.check((form) => form.kind !== "HTTP" || /^https?:\/\/./.test(form.url.trim()), "url"),
    ["url"],
  ),
  v.forward(
    v.check((form) => form.kind !== "DAG" || form.graph.trim() !== "", "required"),
    ["graph"],
  ),
);

export type Form = v.InferOutput<typeof schema>;

const SHELL = ["/bin/sh", "-c"];

export const blank: Spec = {
  name: "",
  tenantId: "default",
  trigger: {
    type: "CRON",
    expr: "0 2 * * *",
    dialect: "AUTO",
    timezone: "UTC",
    gap: "SHIFT",
    overlap: "FIRST",
    startAt: null,
    endAt: null,
    jitterSec: 0,
    misfirePolicy: "FIRE_ONCE_NOW",
    misfireThresholdSec: 60,
    maxCatchUp: 1000,
  },
  action: { kind: "COMMAND", command: [...SHELL, ""], env: {}, cwd: null, stdin: null, outputCapKb: 256 },
  concurrencyPolicy: "FORBID",
  retryPolicy: { maxAttempts: 3, backoff: "EXPONENTIAL", baseDelaySec: 10, maxDelaySec: 3600, jitter: 0.2 },
  timeoutSec: 3600,
  idempotent: true,
  onLostContact: "CONTINUE",
  deadLetter: true,
  executorSelector: "default",
  params: {},
  labels: {},
  priority: 100,
  resources: { cpu: 0.1, memoryMb: 64, storageMb: 0 },
} as Spec;

export function formOf(spec: Spec): Form {
  const { trigger } = spec;
  const action = spec.action ?? { kind: "HANDLER" as const, name: spec.name };
  const every = trigger.type === "FIXED_RATE" || trigger.type === "FIXED_DELAY" ? trigger.everySec : 300;
  const unit = ([86_400, 3600, 60, 1] as const).find((length) => every % length === 0) ?? 1;
  const shell =
    action.kind === "COMMAND" &&
    action.command.length === 3 &&
    action.command[0] === SHELL[0] &&
    action.command[1] === SHELL[1];
  return {
    name: spec.name,
    tenantId: spec.tenantId ?? "default",
    displayName: spec.displayName ?? "",
    description: spec.description ?? "",
    owner: spec.owner ?? "",
    annotations: pairsOf(ofOneLine(spec.annotations)),
    // The node answers with none of the other words for ONCE.
    type: trigger.type === "DELAY" || trigger.type === "IMMEDIATE" ? "ONCE" : trigger.type,
    expr: trigger.type === "CRON" ? trigger.expr : "0 2 * * *",
    timezone: (trigger.type === "CRON" && trigger.timezone) || "UTC",
    gap: (trigger.type === "CRON" && trigger.gap) || "SHIFT",
    overlap: (trigger.type === "CRON" && trigger.overlap) || "FIRST",
    every: every / unit,
    unit: String(unit) as Form["unit"],
    at: trigger.type === "ONCE" ? localField(trigger.at) : "",
    misfirePolicy: (trigger.type !== "MANUAL" && trigger.misfirePolicy) || "FIRE_ONCE_NOW",
    misfireThresholdSec: trigger.type !== "MANUAL" ? (trigger.misfireThresholdSec ?? 60) : 60,
    kind: action.kind,
    shell: action.kind !== "COMMAND" || shell,
    command: action.kind === "COMMAND" ? (shell ? (action.command[2] ?? "") : action.command.join("\n")) : "",
    env: action.kind === "COMMAND" ? pairsOf(action.env) : "",
    method: (action.kind === "HTTP" && action.method) || "POST",
    url: action.kind === "HTTP" ? action.url : "",
    headers: action.kind === "HTTP" ? pairsOf(action.headers) : "",
    body:
      action.kind === "HTTP" && action.body != null
        ? typeof action.body === "string"
          ? action.body
          : JSON.stringify(action.body, null, 2)
        : "",
    handler: action.kind === "HANDLER" ? action.name : "",
    graph: action.kind === "DAG" ? graphText(action) : "",
    params:
      Object.keys((spec.params as object | undefined) ?? {}).length > 0 ? JSON.stringify(spec.params, null, 2) : "",
    secretParams: pairsOf(spec.secretParams),
    labels: pairsOf(spec.labels),
    executorSelector: spec.executorSelector ?? "default",
    timeoutSec: spec.timeoutSec ?? 3600,
    maxAttempts: spec.retryPolicy?.maxAttempts ?? 3,
    backoff: spec.retryPolicy?.backoff ?? "EXPONENTIAL",
    baseDelaySec: spec.retryPolicy?.baseDelaySec ?? 10,
    maxDelaySec: spec.retryPolicy?.maxDelaySec ?? 3600,
    concurrencyPolicy: spec.concurrencyPolicy ?? "FORBID",
    idempotent: spec.idempotent ?? true,
    deadLetter: spec.deadLetter ?? true,
    priority: spec.priority ?? 100,
    onFailure: hookNames(spec, "onFailure"),
    onTimeout: hookNames(spec, "onTimeout"),
    onDeadLetter: hookNames(spec, "onDeadLetter"),
    onSuccess: hookNames(spec, "onSuccess"),
  };
}

export function triggerOf(form: Form, base: Spec["trigger"]): Schemas["TriggerInput"] {
  const { misfirePolicy, misfireThresholdSec } = form;
  // What the form does not show is kept only while the kind of trigger is the same.
  const kept = base.type === form.type ? base : {};
  switch (form.type) {
    case "CRON": {
      const same = base.type === "CRON" && base.expr === form.expr.trim();
      return {
        ...kept,
        type: "CRON",
        expr: form.expr.trim(),
        dialect: same ? base.dialect : "AUTO",
        timezone: form.timezone.trim() || "UTC",
        gap: form.gap,
        overlap: form.overlap,
        misfirePolicy,
        misfireThresholdSec,
      };
    }
    case "FIXED_RATE":
      return {
        ...kept,
        type: "FIXED_RATE",
        everySec: Math.round(form.every * Number(form.unit)),
        misfirePolicy,
        misfireThresholdSec,
      };
    case "FIXED_DELAY":
      return {
        ...kept,
        type: "FIXED_DELAY",
        everySec: Math.round(form.every * Number(form.unit)),
        misfirePolicy,
        misfireThresholdSec,
      };
    case "ONCE": {
      const at = form.at ? new Date(form.at) : undefined;
      // The field has whole seconds: an instant that was not touched keeps its milliseconds.
      const same = base.type === "ONCE" && base.at && localField(base.at) === form.at;
      return {
        type: "ONCE",
        at: same ? base.at : at && Number.isFinite(at.getTime()) ? at.toISOString() : null,
        misfirePolicy,
        misfireThresholdSec,
      };
    }
    case "MANUAL":
      return { type: "MANUAL" };
  }
}

/** A DAG is edited as JSON: all of the action but its kind. */
function graphText({ kind: _, ...graph }: { kind: "DAG" }): string {
  return JSON.stringify(graph, null, 2);
}

function actionOf(form: Form, base: Spec["action"]): Spec["action"] {
  const kept = base?.kind === form.kind ? base : {};
  switch (form.kind) {
    case "COMMAND": {
      const command = form.shell ? [...SHELL, form.command] : form.command.split("\n").filter((line) => line !== "");
      return { ...kept, kind: "COMMAND", command, env: parsePairs(form.env).map } as Spec["action"];
    }
    case "HTTP":
      return {
        ...kept,
        kind: "HTTP",
        method: form.method,
        url: form.url.trim(),
        headers: parsePairs(form.headers).map,
        body: bodyOf(form.body),
      } as Spec["action"];
    case "HANDLER":
      return form.handler.trim() === "" ? undefined : { kind: "HANDLER", name: form.handler.trim() };
    case "DAG":
      return { ...JSON.parse(form.graph), kind: "DAG" } as Spec["action"];
  }
}

/** JSON is sent as JSON, anything else as text. */
function bodyOf(text: string): unknown {
  if (text.trim() === "") return null;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" ? value : text;
  } catch {
    return text;
  }
}

export function specOf(form: Form, base: Spec): Spec {
  const secretParams = parsePairs(form.secretParams).map;
  const spec = {
    ...(form.kind === "DAG" && base.action?.kind !== "DAG" ? withoutAttempts(base) : base),
    name: form.name.trim(),
    tenantId: form.tenantId.trim() || "default",
    displayName: form.displayName.trim(),
    description: form.description.trim(),
    owner: form.owner.trim(),
    annotations: { ...ofManyLines(base.annotations), ...parsePairs(form.annotations).map },
    trigger: triggerOf(form, base.trigger),
    action: actionOf(form, base.action),
    params: form.params.trim() === "" ? {} : JSON.parse(form.params),
    secretParams,
    labels: parsePairs(form.labels).map,
    ...(form.kind === "DAG" ? {} : attemptsOf(form, base)),
    concurrencyPolicy: form.concurrencyPolicy,
    hooks: { ...base.hooks, ...hooksOf(form, base) },
  };
  return trimmed(spec) as Spec;
}

const hookNames = (spec: Spec, kind: (typeof HOOK_KINDS)[number]) =>
  (spec.hooks?.[kind] ?? []).map((hook) => hook.job).join(", ");

/** The form has names only: a hook that is still named keeps its params and whether it is a compensation. */
function hooksOf(form: Form, base: Spec) {
  return Object.fromEntries(
    HOOK_KINDS.map((kind) => {
      const rest = [...(base.hooks?.[kind] ?? [])];
      const hooks = namesIn(form[kind]).map((job) => {
        const at = rest.findIndex((hook) => hook.job === job);
        return at < 0 ? { job } : rest.splice(at, 1)[0];
      });
      return [kind, hooks];
    }),
  );
}

/** How and where a body runs. */
function attemptsOf(form: Form, base: Spec) {
  return {
    executorSelector: form.executorSelector.trim(),
    timeoutSec: form.timeoutSec,
    retryPolicy: {
      ...base.retryPolicy,
      maxAttempts: form.maxAttempts,
      backoff: form.backoff,
      baseDelaySec: form.baseDelaySec,
      maxDelaySec: form.maxDelaySec,
    },
    idempotent: form.idempotent,
    deadLetter: form.deadLetter,
    priority: form.priority,
  };
}

/** A DAG has no attempts, and the node refuses what is about them. */
const withoutAttempts = ({ retryPolicy: _, timeoutSec: __, ...spec }: Spec) => spec;

/** Without what is empty and need not be there, as the node writes it too. */
function trimmed(spec: Record<string, unknown>) {
  const { action, secretParams, hooks, displayName, description, owner, annotations, ...rest } = spec;
  const texts = Object.entries({ displayName, description, owner }).filter(([, text]) => text);
  const lists = Object.entries((hooks as Spec["hooks"]) ?? {}).filter(([, jobs]) => (jobs?.length ?? 0) > 0);
  return {
    ...rest,
    ...Object.fromEntries(texts),
    ...(Object.keys(annotations as object).length > 0 ? { annotations } : {}),
    ...(action === undefined || action === null ? {} : { action }),
    ...(Object.keys(secretParams as object).length > 0 ? { secretParams } : {}),
    ...(lists.length > 0 ? { hooks: Object.fromEntries(lists) } : {}),
  };
}

const READ_ONLY = [
  "jobId",
  "status",
  "version",
  "createdAt",
  "updatedAt",
  "nextFireAt",
  "lastRunAt",
  "lastRunState",
  "runCount",
  "quarantineReason",
];

/** The definition within what is read of a job. */
export function specIn(job: Schemas["JobView"]): Spec {
  return Object.fromEntries(Object.entries(job).filter(([name]) => !READ_ONLY.includes(name))) as unknown as Spec;
}
