// Many calls one after the other, a few at a time, with progress and an end before the end.
import { problemOf, type Problem } from "../api/client";

export interface Progress {
  total: number;
  done: number;
  failed: { what: string; problem: Problem }[];
  state: "running" | "ended" | "stopped";
}

const AT_ONCE = 4;
const TRIES = 5;

/** Goes through the items. A call that an overloaded node refuses is made again after a while. */
export async function each<T>(
  items: T[],
  name: (item: T) => string,
  call: (item: T) => Promise<unknown>,
  onProgress: (progress: Progress) => void,
  signal: AbortSignal,
): Promise<Progress> {
  const progress: Progress = { total: items.length, done: 0, failed: [], state: "running" };
  let next = 0;
  const tell = () => onProgress({ ...progress, failed: [...progress.failed] });
  tell();
  const worker = async () => {
    while (next < items.length && !signal.aborted) {
      const item = items[next++]!;
      for (let attempt = 1; ; attempt += 1) {
        try {
          await call(item);
        } catch (thrown) {
          const problem = problemOf(thrown);
          if (problem.isPassing && attempt < TRIES && !signal.aborted) {
            await new Promise((resolve) => setTimeout(resolve, 300 * 2 ** attempt));
            continue;
          }
          progress.failed.push({ what: name(item), problem });
        }
        break;
      }
      progress.done += 1;
      tell();
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, worker));
  progress.state = signal.aborted ? "stopped" : "ended";
  tell();
  return progress;
}
