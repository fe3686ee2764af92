// A list that is read page by page: its rows so far, and the way to more of them.
import { Trans } from "@lingui/react/macro";
import type { InfiniteData } from "@tanstack/react-query";
import { useMemo } from "react";
import { Button } from "./button";

interface Reading {
  hasNextPage: boolean;
  isFetchingNextPage: boolean;
  fetchNextPage: () => Promise<unknown>;
}

export function useRows<T>(data: InfiniteData<{ items: T[] }> | undefined): T[] {
  return useMemo(() => data?.pages.flatMap((page) => page.items) ?? [], [data]);
}

/** Reads the next page, unless there is none or it is being read. */
export function readOn(list: Reading) {
  if (list.hasNextPage && !list.isFetchingNextPage) void list.fetchNextPage();
}

export function ShowMore({ list, className = "" }: { list: Reading; className?: string }) {
  if (!list.hasNextPage) return null;
  return (
    <div className={`flex justify-end ${className}`}>
      <Button size="small" disabled={list.isFetchingNextPage} onClick={() => readOn(list)}>
        <Trans>Show more</Trans>
      </Button>
    </div>
  );
}
