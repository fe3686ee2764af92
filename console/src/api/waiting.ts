// Runs that wait for a person. New ones are seen at once through the watch of runs.
import { queryOptions } from "@tanstack/react-query";
import { api, good } from "./client";
import { LARGEST_PAGE } from "./queries";

export const waitingQuery = (tenant?: string) =>
  queryOptions({
    queryKey: ["waiting", tenant],
    queryFn: ({ signal }) =>
      good(
        api.GET("/api/v1/runs", {
          signal,
          params: { query: { state: "NEEDS_CONFIRMATION", tenantId: tenant, pageSize: LARGEST_PAGE } },
        }),
      ),
    staleTime: 30_000,
    refetchInterval: 60_000,
  });
