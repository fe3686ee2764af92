// What tests ask of the node: its API with a token, jobs and runs, and executors of pools.
import { spawn } from "node:child_process";
import { inject } from "vitest";

export const server = () => inject("server");
export const token = () => inject("token");

type Call = (method: string, path: string, body?: unknown, headers?: HeadersInit) => Promise<any>;

/** Calls of a node's API with a token. */
export const callOf =
  (base: string, bearer: string): Call =>
  async (method, path, body, headers = {}) => {
    const response = await fetch(base + path, {
      method,
      headers: { Authorization: `Bearer ${bearer}`, "Content-Type": "application/json", ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  };

export const call: Call = (...what) => callOf(server(), token())(...what);

const shell = (script: string) => ({
  kind: "COMMAND",
  command: ["/bin/sh", "-c", script],
  env: { PATH: "/usr/bin:/bin" },
});

/** A job that is started by hand. */
export const jobSpec = (name: string, script: string, more: Record<string, unknown> = {}) => ({
  name,
  trigger: { type: "MANUAL" },
  action: shell(script),
  retryPolicy: { maxAttempts: 1 },
  ...more,
});

export async function job(name: string, script: string, more: Record<string, unknown> = {}): Promise<number> {
  return (await call("POST", "/api/v1/jobs", jobSpec(name, script, more))).jobId;
}

export async function trigger(jobId: number, body: unknown = {}): Promise<number> {
  return (await call("POST", `/api/v1/jobs/${jobId}/trigger`, body)).runId;
}

/** Asks until it is so. */
export async function until<T>(
  what: string,
  ask: () => Promise<T>,
  fits: (value: T) => boolean,
  patienceMs = 40_000,
): Promise<T> {
  const end = Date.now() + patienceMs;
  for (;;) {
    const value = await ask();
    if (fits(value)) return value;
    if (Date.now() > end) throw new Error(`${what} did not come: ${JSON.stringify(value)}`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

export const ended = (runId: number) =>
  until(
    `the end of run ${runId}`,
    () => call("GET", `/api/v1/runs/${runId}`),
    (run) => ["SUCCESS", "FAILED", "TIMEOUT", "CANCELED"].includes(run.state),
  );

export const running = (runId: number) =>
  until(
    `the body of run ${runId}`,
    () => call("GET", `/api/v1/runs/${runId}`),
    (run) => run.state === "RUNNING",
  );

/** A job that was paused for some of the seconds in which it was due, or for all of them: these instants made no run. Later ones do not come. */
export async function missingInstants(name: string, script: string, more: Record<string, unknown> = {}, all = false) {
  const begun = await now();
  const endAt = new Date(begun + (all ? 4_000 : 7_000)).toISOString();
  const jobId = await job(name, script, { trigger: { type: "FIXED_RATE", everySec: 1, endAt }, ...more });
  await call("POST", `/api/v1/jobs/${jobId}/pause`, { reason: "an outage" });
  await until("some due instants by the node's clock", now, (at) => at > begun + 4_500);
  await call("POST", `/api/v1/jobs/${jobId}/resume`, {});
  const get = () => call("GET", `/api/v1/jobs/${jobId}`);
  await until("the last instant", get, ({ nextFireAt }) => nextFireAt === null);
  return jobId;
}

const now = async () => Date.parse((await call("GET", "/api/v1/cluster/node")).now);

/** An executor of a pool; what it returns ends it. */
export function startExecutor(pool: string, how: "SIGTERM" | "SIGKILL" = "SIGTERM"): () => Promise<void> {
  const args = ["executor", "--rpc", inject("rpc"), "--pool", pool, "--id", `of-${pool}`, "--log", "error"];
  const env = { ...process.env, CAMPANILE_API_TOKEN: token() };
  const executor = spawn(inject("program"), args, { stdio: "ignore", env });
  const gone = new Promise<void>((done) => executor.once("exit", () => done()));
  return () => {
    executor.kill(how);
    return gone;
  };
}

/** Runs the body of a run on an executor that dies under it. */
export async function loseExecutor(pool: string, runId: number) {
  const kill = startExecutor(pool, "SIGKILL");
  await running(runId);
  await kill();
}

/** A DAG whose middle node fails until `flag` is there; the last one follows it. */
export async function dag(name: string, flag: string): Promise<number> {
  await job(`${name}-load`, "true");
  await job(`${name}-check`, `test -e ${flag}`);
  await job(`${name}-report`, "true");
  const nodes = ["load", "check", "report"].map((id) => ({ id, job: `${name}-${id}` }));
  const edges = [
    { from: "load", to: "check" },
    { from: "check", to: "report" },
  ];
  const action = { kind: "DAG", nodes, edges };
  return (await call("POST", "/api/v1/jobs", { name, trigger: { type: "MANUAL" }, action })).jobId;
}
