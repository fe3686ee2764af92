// What a caller would write with types that are generated from the API's document. It is compiled, never run.
import type { paths } from "./api";

type Body<Path extends keyof paths> = paths[Path] extends {
  post: { requestBody?: { content: { "application/json": infer Content } } };
}
  ? Content
  : never;
type Answer<Path extends keyof paths> = paths[Path] extends {
  get: { responses: { 200: { content: { "application/json": infer Content } } } };
}
  ? Content
  : never;

type Create = Body<"/api/v1/jobs">;
type Job = Answer<"/api/v1/jobs/{jobId}">;
type Run = Answer<"/api/v1/runs/{runId}">;

// Only what has no default must be said.
export const least: Create = { name: "hello", trigger: { type: "MANUAL" } };
export const daily: Create = {
  name: "daily_billing",
  trigger: { type: "CRON", expr: "0 2 * * *", timezone: "Europe/Berlin" },
  retryPolicy: { maxAttempts: 5 },
  action: { kind: "COMMAND", command: ["/usr/bin/bill", "--all"] },
  labels: { team: "pay" },
  params: { customer: 7 },
};
export const web: Create = {
  name: "notify",
  trigger: { type: "FIXED_RATE", everySec: 30 },
  action: { kind: "HTTP", url: "https://example.org/hook" },
};
export const start: Body<"/api/v1/jobs/{jobId}/trigger"> = { params: { n: 1 } };
export const pause: Body<"/api/v1/jobs/{jobId}/pause"> = {};

// @ts-expect-error A job needs a trigger.
export const without: Create = { name: "hello" };
// @ts-expect-error A cron trigger needs its expression.
export const noExpression: Create = { name: "hello", trigger: { type: "CRON" } };

// What an answer always has needs no check.
export function shown(job: Job, run: Run): string {
  const due = job.nextFireAt ?? "never";
  return `${job.jobId} ${job.name} ${job.timeoutSec.toFixed()} ${job.retryPolicy.maxAttempts.toFixed()} ${due} ${run.runId} ${run.state}`;
}
