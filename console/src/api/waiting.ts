// Runs that wait for a person. The API lists runs by job only, and only runs of jobs that are not idempotent wait: this looks at those,
// within a limit, and says how far it got. New ones are seen at once through the watch of runs.
import { queryOptions } from "@tanstack/react-query";
import { api, good, type Job, type Run } from "./client";
import { LARGEST_PAGE } from "./queries";

const MOST_PAGES = 5;
const MOST_JOBS = 200;
const AT_ONCE = 4;
const RUNS = 100;

export interface Waiting {
  items: { run: Run; job: Job }[];
  /** Jobs whose runs were read. */
  looked: number;
  /** Everything was looked at. */
  whole: boolean;
}

async function find(tenantId: string | undefined, signal: AbortSignal): Promise<Waiting> {
  const jobs: Job[] = [];
  let pageToken: string | undefined;
  let pages = 0;
  do {
    const page = await good(
      api.GET("/api/v1/jobs", { signal, params: { query: { tenantId, pageSize: LARGEST_PAGE, pageToken } } }),
    );
    jobs.push(...page.items.filter((job) => !job.idempotent && job.runCount > 0));
    pageToken = page.nextPageToken ?? undefined;
    pages += 1;
  } while (pageToken && pages < MOST_PAGES);
  const looked = jobs.slice(0, MOST_JOBS);
  const items: Waiting["items"] = [];
  let next = 0;
  const worker = async () => {
    while (next < looked.length) {
      const job = looked[next++]!;
      const page = await good(
        api.GET("/api/v1/jobs/{jobId}/runs", {
          signal,
          params: { path: { jobId: job.jobId }, query: { pageSize: RUNS } },
        }),
      );
      items.push(...page.items.filter((run) => run.state === "NEEDS_CONFIRMATION").map((run) => ({ run, job })));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  items.sort((a, b) => a.run.createdAt.localeCompare(b.run.createdAt));
  return { items, looked: looked.length, whole: !pageToken && looked.length === jobs.length };
}

export const waitingQuery = (tenant?: string) =>
  queryOptions({
    queryKey: ["waiting", tenant],
    queryFn: ({ signal }) => find(tenant, signal),
    staleTime: 30_000,
    refetchInterval: 60_000,
  });
