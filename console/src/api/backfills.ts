// Backfills and replays: what they would do, how far they are, and what changes them.
import { queryOptions } from "@tanstack/react-query";
import { cellStart } from "../lib/ledger";
import { zoneOf } from "../lib/schedule";
import { nodeNow } from "../lib/time";
import { read } from "./actions";
import { api, good, Problem, type Job, type Schemas } from "./client";
import { SLOW_MS } from "./queries";

export type Backfill = Schemas["BackfillView"];
/** What a person asks for. REPLAY is a call of its own. */
export interface BackfillPlan extends Omit<Schemas["BackfillBody"], "mode" | "dryRun"> {
  mode: Schemas["BackfillMode"];
}

const ACTIVE_MS = 2_000;
export const isActive = (backfill: Backfill | null | undefined) =>
  backfill != null && !["DONE", "CANCELED"].includes(backfill.state ?? "DONE");

/** The newest backfill of a job; null when it has none. */
export const backfillQuery = (jobId: number) =>
  queryOptions({
    queryKey: ["backfill", jobId],
    queryFn: async ({ signal }): Promise<Backfill | null> => {
      try {
        return await good(api.GET("/api/v1/jobs/{jobId}/backfill", { signal, params: { path: { jobId } } }));
      } catch (thrown) {
        if (thrown instanceof Problem && thrown.status === 404) return null;
        throw thrown;
      }
    },
    refetchInterval: (query) => (isActive(query.state.data) ? ACTIVE_MS : SLOW_MS),
  });

function send(jobId: number, { mode, ...plan }: BackfillPlan, dryRun: boolean, signal?: AbortSignal) {
  const params = { path: { jobId } };
  if (mode !== "REPLAY")
    return good(api.POST("/api/v1/jobs/{jobId}/backfill", { signal, params, body: { ...plan, mode, dryRun } }));
  const { unknown: _, ...body } = plan;
  return good(api.POST("/api/v1/jobs/{jobId}/replay", { signal, params, body: { ...body, dryRun } }));
}

/** What it would do. Nothing begins. */
export const dryRunQuery = (jobId: number, plan: BackfillPlan) =>
  queryOptions({
    queryKey: ["dryRun", jobId, plan],
    queryFn: ({ signal }) => send(jobId, plan, true, signal),
    staleTime: 0,
    gcTime: 0,
    retry: false,
  });

const changed = (jobId: number) => read(["backfill", jobId], ["runs"], ["allRuns"], ["ledger"], ["missing", jobId]);

export async function startBackfill(jobId: number, plan: BackfillPlan): Promise<Backfill> {
  const started = await send(jobId, plan, false);
  await changed(jobId);
  return started;
}

export async function steerBackfill(of: Backfill, how: "pause" | "resume" | "cancel", reason?: string) {
  const path = { backfillId: of.backfillId ?? 0 };
  const body = reason ? { reason } : {};
  if (how === "pause") await good(api.POST("/api/v1/backfills/{backfillId}/pause", { params: { path }, body }));
  else if (how === "resume") await good(api.POST("/api/v1/backfills/{backfillId}/resume", { params: { path }, body }));
  else await good(api.DELETE("/api/v1/backfills/{backfillId}", { params: { path, query: body } }));
  await changed(of.jobId);
}

/** Jobs whose past can run. */
export const canBackfill = (job: Job) =>
  job.status !== "DELETED" && (job.trigger.type === "CRON" || job.trigger.type === "FIXED_RATE");

/** What is missing since yesterday began in the job's zone, or since the job is there. Null: nothing can be missing. */
export const missingQuery = (job: Job) =>
  queryOptions({
    queryKey: ["missing", job.jobId],
    queryFn: async ({ signal }): Promise<Backfill | null> => {
      const now = nodeNow();
      const yesterday = cellStart(
        cellStart(now, "day", zoneOf(job.trigger) ?? "UTC") - 1,
        "day",
        zoneOf(job.trigger) ?? "UTC",
      );
      const from = new Date(Math.max(yesterday, Date.parse(job.createdAt))).toISOString();
      try {
        return await send(job.jobId, { mode: "MISSING", from, to: new Date(now).toISOString() }, true, signal);
      } catch (thrown) {
        // The job is paused, or nothing was due: then there is nothing to offer.
        if (thrown instanceof Problem && !thrown.isPassing) return null;
        throw thrown;
      }
    },
    enabled: canBackfill(job),
    staleTime: 60_000,
    retry: false,
  });
