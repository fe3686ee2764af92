// What pages read. Each read has a limit, and lists that are watched ask again at most every few seconds while the page is seen.
import { infiniteQueryOptions, QueryClient, queryOptions } from "@tanstack/react-query";
import { learnNodeTime } from "../lib/time";
import { api, good, problemOf, raw, type Schemas } from "./client";
import { parseMetrics, type Reading } from "../lib/metrics";

export const LIST_PAGE = 100;
/** Largest page that a node gives. */
export const LARGEST_PAGE = 1000;
export const SLOW_MS = 15_000;
export const FAST_MS = 5_000;

export const client = new QueryClient({
  defaultOptions: {
    queries: {
      // The node may be reached although the browser calls itself offline; whether it answers is seen by asking.
      networkMode: "always",
      staleTime: 2_000,
      retry: (count, thrown) => count < 2 && problemOf(thrown).isPassing,
      refetchIntervalInBackground: false,
      structuralSharing: true,
    },
  },
});

/** Lists are read from their first page on; each page names the next one. */
const FROM_THE_FIRST_PAGE = {
  initialPageParam: undefined as string | undefined,
  getNextPageParam: (page: { nextPageToken?: string | null }) => page.nextPageToken ?? undefined,
};

export interface JobsFilter {
  text?: string;
  status?: "ENABLED" | "PAUSED" | "DELETED";
  tenant?: string;
  labels?: string;
}

export const jobQueryOf = (filter: JobsFilter) => ({
  text: filter.text || undefined,
  status: filter.status,
  tenantId: filter.tenant || undefined,
  labels: filter.labels || undefined,
});

export const jobsQuery = (filter: JobsFilter) =>
  infiniteQueryOptions({
    queryKey: ["jobs", filter],
    queryFn: ({ pageParam, signal }) =>
      good(
        api.GET("/api/v1/jobs", {
          signal,
          params: { query: { ...jobQueryOf(filter), pageSize: LIST_PAGE, pageToken: pageParam } },
        }),
      ),
    ...FROM_THE_FIRST_PAGE,
    refetchInterval: SLOW_MS,
  });

export const jobQuery = (jobId: number) =>
  queryOptions({
    queryKey: ["job", jobId],
    queryFn: ({ signal }) => good(api.GET("/api/v1/jobs/{jobId}", { signal, params: { path: { jobId } } })),
    refetchInterval: SLOW_MS,
  });

export const runsOfJobQuery = (jobId: number) =>
  infiniteQueryOptions({
    queryKey: ["runs", jobId],
    queryFn: ({ pageParam, signal }) =>
      good(
        api.GET("/api/v1/jobs/{jobId}/runs", {
          signal,
          params: { path: { jobId }, query: { pageSize: LIST_PAGE, pageToken: pageParam } },
        }),
      ),
    ...FROM_THE_FIRST_PAGE,
    refetchInterval: SLOW_MS,
  });

export const runQuery = (runId: number) =>
  queryOptions({
    queryKey: ["run", runId],
    queryFn: ({ signal }) => good(api.GET("/api/v1/runs/{runId}", { signal, params: { path: { runId } } })),
    refetchInterval: (query) => (query.state.data && isFinal(query.state.data.state) ? false : SLOW_MS),
  });

/** The nodes of a run of a DAG. */
export const nodesQuery = (runId: number) =>
  queryOptions({
    queryKey: ["nodes", runId],
    queryFn: ({ signal }) => good(api.GET("/api/v1/runs/{runId}/nodes", { signal, params: { path: { runId } } })),
    refetchInterval: (query) => (query.state.data && isFinal(query.state.data.state) ? false : FAST_MS),
  });

export const isFinal = (state: string) => ["SUCCESS", "FAILED", "TIMEOUT", "CANCELED", "SKIPPED"].includes(state);

export interface RunsFilter {
  /** Comma-separated. Without it: open runs, then failed ones; of one job all. */
  state?: string;
  tenant?: string;
  job?: number;
  labels?: string;
  source?: Schemas["Source"];
  from?: string;
  to?: string;
}

/** Groups of states as people ask for them. */
export const OPEN = "PENDING,QUEUED,RUNNING,RETRY_WAIT,SUSPECTED_LOST,NEEDS_CONFIRMATION";
export const WAITING = "PENDING,QUEUED,RETRY_WAIT";
export const FAILED = "FAILED,TIMEOUT";

/** Pages of a list of runs that are read again as time goes on. */
const LIVE_PAGES = 2;

/**
 * Runs of all jobs. They are asked for again every few seconds rather than watched: a busy system has more changes a second than a page
 * can take. A page may have few runs although more follow.
 */
export const allRunsQuery = ({ tenant, job, ...filter }: RunsFilter) =>
  infiniteQueryOptions({
    queryKey: ["allRuns", { tenant, job, ...filter }],
    queryFn: ({ pageParam, signal }) =>
      good(
        api.GET("/api/v1/runs", {
          signal,
          params: { query: { ...filter, tenantId: tenant, jobId: job, pageSize: LIST_PAGE, pageToken: pageParam } },
        }),
      ),
    ...FROM_THE_FIRST_PAGE,
    // Whoever has read further sees what was there.
    refetchInterval: (query) => ((query.state.data?.pages.length ?? 1) <= LIVE_PAGES ? FAST_MS : false),
  });

/** What runs now: the newest, as many as one list has. */
export const runningQuery = queryOptions({
  queryKey: ["allRuns", "running"],
  queryFn: ({ signal }) =>
    good(api.GET("/api/v1/runs", { signal, params: { query: { state: "RUNNING", pageSize: LIST_PAGE } } })),
  refetchInterval: FAST_MS,
});

/** The newest failures, as many as one answer has. */
export const failuresQuery = (tenant?: string) =>
  queryOptions({
    queryKey: ["failures", tenant],
    queryFn: ({ signal }) =>
      good(
        api.GET("/api/v1/runs", {
          signal,
          params: { query: { state: FAILED, tenantId: tenant, pageSize: LARGEST_PAGE } },
        }),
      ),
    refetchInterval: SLOW_MS,
  });

/** Dead letters by cause, the most frequent first. */
export const causesQuery = (tenant?: string) =>
  queryOptions({
    queryKey: ["deadLetters", "causes", tenant],
    queryFn: ({ signal }) =>
      good(api.GET("/api/v1/dead-letters/causes", { signal, params: { query: { tenantId: tenant } } })),
    refetchInterval: SLOW_MS,
  });

const lettersPage = (
  cause: string | undefined,
  tenantId: string | undefined,
  pageSize: number,
  pageToken?: string,
) => ({
  params: { query: { cause, tenantId, pageSize, pageToken } },
});

/** Dead letters of one cause, or all of them. */
export const lettersQuery = (cause: string | undefined, tenant?: string) =>
  infiniteQueryOptions({
    queryKey: ["deadLetters", "of", cause, tenant],
    queryFn: ({ pageParam, signal }) =>
      good(api.GET("/api/v1/dead-letters", { signal, ...lettersPage(cause, tenant, LIST_PAGE, pageParam) })),
    ...FROM_THE_FIRST_PAGE,
    refetchInterval: SLOW_MS,
  });

/** Every dead letter of a cause, at most `most` of them: for what is done to all. */
export async function lettersOf(cause: string, tenant: string | undefined, most: number, signal: AbortSignal) {
  const found: Schemas["DeadLetterView"][] = [];
  let pageToken: string | undefined;
  do {
    const page = await good(
      api.GET("/api/v1/dead-letters", { signal, ...lettersPage(cause, tenant, LARGEST_PAGE, pageToken) }),
    );
    found.push(...page.items);
    pageToken = page.nextPageToken ?? undefined;
  } while (pageToken && found.length < most);
  return found;
}

export const outboxQuery = (tenant?: string) =>
  queryOptions({
    queryKey: ["outbox", tenant],
    queryFn: ({ signal }) =>
      good(api.GET("/api/v1/outbox", { signal, params: { query: { tenantId: tenant, pageSize: LARGEST_PAGE } } })),
    refetchInterval: SLOW_MS,
  });

export const nodeQuery = queryOptions({
  queryKey: ["node"],
  queryFn: async ({ signal }) => {
    const node = await good(api.GET("/api/v1/cluster/node", { signal }));
    learnNodeTime(node.now);
    return node;
  },
  refetchInterval: FAST_MS,
});

export const poolsQuery = queryOptions({
  queryKey: ["pools"],
  queryFn: ({ signal }) => good(api.GET("/api/v1/pools", { signal })),
  refetchInterval: FAST_MS,
});

export const executorsQuery = queryOptions({
  queryKey: ["executors"],
  queryFn: ({ signal }) => good(api.GET("/api/v1/executors", { signal })),
  refetchInterval: FAST_MS,
});

export const tenantsQuery = queryOptions({
  queryKey: ["tenants"],
  queryFn: ({ signal }) => good(api.GET("/api/v1/tenants", { signal })),
  refetchInterval: SLOW_MS,
});

/** A node that is alone on a directory of its own has no members, shards and moves to ask for. */
export const isCluster = (node: Schemas["NodeView"] | undefined) => (node?.nodes?.length ?? 0) > 0;

export const membersQuery = queryOptions({
  queryKey: ["members"],
  queryFn: ({ signal }) => good(api.GET("/api/v1/cluster/members", { signal })),
  refetchInterval: FAST_MS,
});

export const shardsQuery = queryOptions({
  queryKey: ["shards"],
  queryFn: ({ signal }) => good(api.GET("/api/v1/cluster/shards", { signal })),
  refetchInterval: FAST_MS,
});

export const movesQuery = queryOptions({
  queryKey: ["moves"],
  queryFn: ({ signal }) => good(api.GET("/api/v1/cluster/plan", { signal })),
  refetchInterval: FAST_MS,
});

export const clusterEventsQuery = queryOptions({
  queryKey: ["clusterEvents"],
  queryFn: ({ signal }) => good(api.GET("/api/v1/cluster/events", { signal })),
  refetchInterval: FAST_MS,
});

/** Readings of the last ten minutes that this page was open. */
export const readings: Reading[] = [];
const READINGS = 120;

export const metricsQuery = queryOptions({
  queryKey: ["metrics"],
  queryFn: async ({ signal }) => {
    const reading = parseMetrics(await (await raw("/metrics", { signal })).text(), Date.now());
    // The node began anew: its counters did too.
    if (reading.fires < (readings.at(-1)?.fires ?? 0)) readings.length = 0;
    readings.push(reading);
    if (readings.length > READINGS) readings.shift();
    return reading.at;
  },
  refetchInterval: FAST_MS,
  retry: false,
});

export interface AuditFilter {
  tenant?: string;
  who?: string;
  operation?: string;
  outcome?: string;
  jobId?: number;
  runId?: number;
  from?: string;
  to?: string;
}

export const auditParams = ({ tenant, ...rest }: AuditFilter) => ({ ...rest, tenantId: tenant });

export const auditQuery = (filter: AuditFilter) =>
  infiniteQueryOptions({
    queryKey: ["audit", filter],
    queryFn: ({ pageParam, signal }) =>
      good(
        api.GET("/api/v1/audit", {
          signal,
          params: { query: { ...auditParams(filter), pageSize: LIST_PAGE, pageToken: pageParam } },
        }),
      ),
    ...FROM_THE_FIRST_PAGE,
    refetchInterval: SLOW_MS,
  });
