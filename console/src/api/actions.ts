// Changes, each with what is to be read again afterwards.
import { api, good, type Job, type JobSpec, type Run, type Schemas } from "./client";
import { client } from "./queries";

/** While many changes are made, lists are read again once, at their end. */
export const many = { underWay: false };

/** What changed is read again. */
export const read = async (...keys: unknown[][]) => {
  if (!many.underWay) await Promise.all(keys.map((queryKey) => client.invalidateQueries({ queryKey })));
};
const because = (reason?: string) => (reason ? { reason } : {});
const job = (jobId: number) => ({ path: { jobId } });
const run = (runId: number) => ({ path: { runId } });

export async function pauseJob(jobId: number, reason?: string) {
  await good(api.POST("/api/v1/jobs/{jobId}/pause", { params: job(jobId), body: because(reason) }));
  await read(["jobs"], ["job", jobId], ["explainJob", jobId]);
}

export async function resumeJob(jobId: number, reason?: string) {
  await good(api.POST("/api/v1/jobs/{jobId}/resume", { params: job(jobId), body: because(reason) }));
  await read(["jobs"], ["job", jobId], ["explainJob", jobId]);
}

export async function deleteJob(jobId: number, reason?: string) {
  await good(api.DELETE("/api/v1/jobs/{jobId}", { params: { ...job(jobId), query: because(reason) } }));
  await read(["jobs"], ["job", jobId]);
}

export async function triggerJob(
  jobId: number,
  params: unknown,
  reason: string | undefined,
  key: string,
): Promise<Run> {
  const body = { ...(params === undefined ? {} : { params }), ...because(reason), manualRunId: key };
  const made = await good(api.POST("/api/v1/jobs/{jobId}/trigger", { params: job(jobId), body }));
  await read(["runs", jobId], ["job", jobId]);
  return made;
}

export async function createJob(spec: Schemas["JobSpec"], key: string) {
  const created = await good(api.POST("/api/v1/jobs", { params: { header: { "Idempotency-Key": key } }, body: spec }));
  await read(["jobs"]);
  return created;
}

export async function replaceJob(was: Job, spec: JobSpec) {
  const body = { version: was.version, spec };
  const job = await good(api.PUT("/api/v1/jobs/{jobId}", { params: { path: { jobId: was.jobId } }, body }));
  await read(["jobs"], ["job", was.jobId], ["versions", was.jobId]);
  return job;
}

/** Gives the job the definition of an earlier version, unless somebody changed it since `was` was read. */
export async function rollBack(was: Job, to: number, reason?: string) {
  const body = { to, version: was.version, ...because(reason) };
  const job = await good(api.POST("/api/v1/jobs/{jobId}/rollback", { params: { path: { jobId: was.jobId } }, body }));
  await read(["jobs"], ["job", was.jobId], ["versions", was.jobId], ["explainJob", was.jobId]);
  return job;
}

export async function cancelRun(runId: number, reason?: string) {
  await good(api.POST("/api/v1/runs/{runId}/cancel", { params: run(runId), body: because(reason) }));
  await ofRun(runId);
}

/** `force`: also if its compensation was started. */
export async function retryRun(runId: number, reason?: string, force = false) {
  await good(api.POST("/api/v1/runs/{runId}/retry", { params: run(runId), body: { ...because(reason), force } }));
  await ofRun(runId);
}

export async function retryNodes(runId: number, body: Schemas["DagRetryBody"]) {
  await good(api.POST("/api/v1/runs/{runId}/nodes/retry", { params: run(runId), body }));
  await ofRun(runId);
}

export async function markNode(runId: number, body: Schemas["DagMarkBody"]) {
  await good(api.POST("/api/v1/runs/{runId}/nodes/mark", { params: run(runId), body }));
  await ofRun(runId);
}

export async function confirmRun(runId: number, decision: Schemas["ConfirmDecision"], reason?: string) {
  await good(api.POST("/api/v1/runs/{runId}/confirm", { params: run(runId), body: { decision, ...because(reason) } }));
  await ofRun(runId);
}

/** `force`: also if its compensation was started. */
export async function redrive(runId: number, reason?: string, force = false) {
  const body = { ...because(reason), force };
  await good(api.POST("/api/v1/dead-letters/{runId}/redrive", { params: run(runId), body }));
  await ofRun(runId);
}

export async function discard(runId: number, reason?: string) {
  await good(api.POST("/api/v1/dead-letters/{runId}/discard", { params: run(runId), body: because(reason) }));
  await ofRun(runId);
}

export async function resend(runId: number, reason?: string) {
  await good(api.POST("/api/v1/outbox/{runId}/resend", { params: run(runId), body: because(reason) }));
  await read(["outbox"]);
}

export async function discardMessages(runId: number, reason?: string) {
  await good(api.POST("/api/v1/outbox/{runId}/discard", { params: run(runId), body: because(reason) }));
  await read(["outbox"]);
}

/** A run changed: itself, and the lists that it may be in. */
export const ofRun = (runId: number) =>
  read(
    ["run", runId],
    ["nodes", runId],
    ["explainRun", runId],
    ["runs"],
    ["allRuns"],
    ["failures"],
    ["deadLetters"],
    ["waiting"],
    ["outbox"],
  );

export async function setTenant(tenantId: string, quota: Schemas["TenantBodyInput"]) {
  await good(api.PUT("/api/v1/tenants/{tenantId}", { params: { path: { tenantId } }, body: quota }));
  await read(["tenants"]);
}

export async function pauseTenant(tenantId: string, paused: boolean, reason?: string) {
  const params = { path: { tenantId } };
  const body = because(reason);
  await (paused
    ? good(api.POST("/api/v1/tenants/{tenantId}/pause", { params, body }))
    : good(api.POST("/api/v1/tenants/{tenantId}/resume", { params, body })));
  await read(["tenants"]);
}

export async function deleteTenant(tenantId: string, reason?: string) {
  await good(api.DELETE("/api/v1/tenants/{tenantId}", { params: { path: { tenantId }, query: because(reason) } }));
  await read(["tenants"]);
}

export async function pauseSystem(paused: boolean, reason?: string) {
  const body = because(reason);
  await (paused ? good(api.POST("/api/v1/system/pause", { body })) : good(api.POST("/api/v1/system/resume", { body })));
}

export async function acceptClock(reason?: string) {
  await good(api.POST("/api/v1/cluster/clock/accept", { body: because(reason) }));
  await read(["node"]);
}

export async function cordon(node: string, on: boolean, reason?: string) {
  const params = { path: { node } };
  const body = because(reason);
  await (on
    ? good(api.POST("/api/v1/cluster/members/{node}/cordon", { params, body }))
    : good(api.POST("/api/v1/cluster/members/{node}/uncordon", { params, body })));
  await read(["members"], ["moves"]);
}

/** A key that makes a repeated call one change. */
export const newKey = () =>
  `console-${crypto.randomUUID?.() ?? [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
