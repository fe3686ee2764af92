// Why a run or a job is as it is, and the numbers about jobs that the node computes when it is asked.
import { queryOptions } from "@tanstack/react-query";
import { nodeNow } from "../lib/time";
import { api, good, type LedgerEntry } from "./client";
import { FAST_MS, LARGEST_PAGE, SLOW_MS } from "./queries";

/** Versions that a node keeps of a job, all in one answer. */
const VERSIONS = 100;

export const explainRunQuery = (runId: number, open: boolean) =>
  queryOptions({
    queryKey: ["explainRun", runId],
    queryFn: ({ signal }) => good(api.GET("/api/v1/runs/{runId}/explain", { signal, params: { path: { runId } } })),
    refetchInterval: open ? FAST_MS : false,
  });

/** How the job stands now, or what became of one of its instants. */
export const explainJobQuery = (jobId: number, at?: string) =>
  queryOptions({
    queryKey: ["explainJob", jobId, at],
    queryFn: ({ signal }) =>
      good(api.GET("/api/v1/jobs/{jobId}/explain", { signal, params: { path: { jobId }, query: { at } } })),
    refetchInterval: at === undefined ? FAST_MS : false,
    placeholderData: (was) => (was && was.at === undefined && at === undefined ? was : undefined),
  });

/** How far back the last decided instant is looked for, ms. A job that is due often has it in the first, which is then short. */
const LOOKS_MS = [600_000, 26 * 3_600_000, 32 * 86_400_000, 370 * 86_400_000];

/** The last due instant about which the node decided; null when there is none. */
export const lastInstantQuery = (jobId: number) =>
  queryOptions({
    queryKey: ["lastInstant", jobId],
    queryFn: async ({ signal }): Promise<LedgerEntry | null> => {
      const to = new Date(nodeNow()).toISOString();
      for (const back of LOOKS_MS) {
        const query = { from: new Date(nodeNow() - back).toISOString(), to, pageSize: LARGEST_PAGE };
        const read = await good(api.GET("/api/v1/jobs/{jobId}/ledger", { signal, params: { path: { jobId }, query } }));
        const last = read.items.at(-1);
        if (last) return last;
      }
      return null;
    },
    refetchInterval: SLOW_MS,
  });

export const statisticsQuery = (jobId: number, window: string) =>
  queryOptions({
    queryKey: ["statistics", jobId, window],
    queryFn: ({ signal }) =>
      good(api.GET("/api/v1/jobs/{jobId}/statistics", { signal, params: { path: { jobId }, query: { window } } })),
    placeholderData: (was) => was,
    refetchInterval: SLOW_MS,
  });

/** Every version that is kept, each compared with the one before it, or with `against`. */
export const versionsQuery = (jobId: number, against?: number) =>
  queryOptions({
    queryKey: ["versions", jobId, against],
    queryFn: ({ signal }) =>
      good(
        api.GET("/api/v1/jobs/{jobId}/versions", {
          signal,
          params: { path: { jobId }, query: { against, pageSize: VERSIONS } },
        }),
      ),
    refetchInterval: SLOW_MS,
  });

/** Instants of the next hour by minute. */
export const loadQuery = (tenant?: string) =>
  queryOptions({
    queryKey: ["load", tenant],
    queryFn: ({ signal }) =>
      good(api.GET("/api/v1/schedules/load", { signal, params: { query: { minutes: 60, tenantId: tenant } } })),
    refetchInterval: SLOW_MS,
  });
