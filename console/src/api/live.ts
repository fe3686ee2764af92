// Reads what a page shows again when the node says that it changed: at most once a second, however much changes.
import { useQueryClient, type QueryKey } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { follow, type Live, type ServerEvent } from "./events";
import type { Problem } from "./client";

const LEAST_MS = 1_000;

export function useChanges(
  path: string | null,
  keys: QueryKey[],
  onEvent?: (event: ServerEvent) => void,
): { live: Live; problem?: Problem } {
  const client = useQueryClient();
  const [state, setState] = useState<{ live: Live; problem?: Problem }>({ live: "connecting" });
  const latest = useRef({ keys, onEvent });
  latest.current = { keys, onEvent };
  useEffect(() => {
    if (!path) return;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    void follow(path, {
      signal: stop.signal,
      onState: (live, problem) => !stop.signal.aborted && setState({ live, problem }),
      onEvent: (event) => {
        latest.current.onEvent?.(event);
        timer ??= setTimeout(() => {
          timer = undefined;
          for (const queryKey of latest.current.keys) void client.invalidateQueries({ queryKey });
        }, LEAST_MS);
      },
    });
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [path, client]);
  return state;
}
