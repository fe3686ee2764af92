import { Plural, Trans } from "@lingui/react/macro";
import { useEffect, useRef, useState } from "react";
import { many } from "../api/actions";
import { problemOf } from "../api/client";
import { client } from "../api/queries";
import { each, type Progress } from "../lib/bulk";
import { amount } from "../lib/time";
import { Button } from "./button";
import { Dialog } from "./dialog";
import { Failure, Loading } from "./feedback";
import { ReasonField } from "./reason-field";

export interface BulkAction<T> {
  title: string;
  text: string;
  button: string;
  danger?: boolean;
  /** Of the others, nothing is asked. */
  fits: (item: T) => boolean;
  call: (item: T, reason: string | undefined) => Promise<unknown>;
  undo?: { label: string; call: (item: T) => Promise<unknown> };
}

interface Props<T> {
  action: BulkAction<T>;
  find: (signal: AbortSignal) => Promise<T[]>;
  name: (item: T) => string;
  onClose: () => void;
  onDone: () => void;
}

/** Counts first, then asks, then shows how far it is. It can be stopped, and undone where that has a meaning. */
export function BulkDialog<T>({ action, find, name, onClose, onDone }: Props<T>) {
  const [items, setItems] = useState<T[]>();
  const [refused, setRefused] = useState<unknown>();
  const [reason, setReason] = useState("");
  const [progress, setProgress] = useState<Progress>();
  const [undoing, setUndoing] = useState(false);
  const stop = useRef(new AbortController());
  const done = useRef<T[]>([]);
  useEffect(() => {
    const looking = new AbortController();
    find(looking.signal).then(
      (found) => setItems(found.filter(action.fits)),
      (thrown) => !looking.signal.aborted && setRefused(problemOf(thrown)),
    );
    return () => looking.abort();
    // The dialog is about what was chosen when it opened.
  }, []);
  const run = async (over: T[], call: (item: T) => Promise<unknown>) => {
    stop.current = new AbortController();
    done.current = [];
    const kept = async (item: T) => {
      await call(item);
      done.current.push(item);
    };
    many.underWay = true;
    try {
      await each(over, name, kept, setProgress, stop.current.signal);
    } finally {
      many.underWay = false;
    }
    await client.invalidateQueries();
  };
  const close = () => {
    stop.current.abort();
    onClose();
    if (progress) onDone();
  };
  const goes = progress?.state === "running";
  const succeeded = progress ? progress.done - progress.failed.length : 0;
  return (
    <Dialog title={action.title} onClose={close}>
      {refused !== undefined ? (
        <Failure error={refused} />
      ) : !items ? (
        <>
          <p className="text-soft">
            <Trans>Counting…</Trans>
          </p>
          <Loading lines={2} />
        </>
      ) : !progress ? (
        <form
          className="space-y-4"
          onSubmit={(event) => {
            event.preventDefault();
            if (items.length > 0) void run(items, (item) => action.call(item, reason.trim() || undefined));
          }}
        >
          <p>
            <strong>
              <Plural value={items.length} one="# item" other="# items" />.
            </strong>{" "}
            {action.text}
          </p>
          <ReasonField value={reason} onChange={setReason} />
          <div className="flex justify-end gap-2">
            <Button onClick={close}>
              <Trans>Cancel</Trans>
            </Button>
            <Button type="submit" kind={action.danger ? "danger" : "primary"} disabled={items.length === 0}>
              {action.button} ({amount(items.length)})
            </Button>
          </div>
        </form>
      ) : (
        <div className="space-y-4">
          <progress className="w-full" max={progress.total} value={progress.done} aria-label={action.title} />
          <p role="status">
            {goes ? (
              <Trans>
                {amount(progress.done)} of {amount(progress.total)}
              </Trans>
            ) : undoing ? (
              <Trans>
                Undone for {amount(succeeded)} of {amount(progress.total)}.
              </Trans>
            ) : progress.state === "stopped" ? (
              <Trans>
                Stopped: done for {amount(succeeded)} of {amount(progress.total)}.
              </Trans>
            ) : (
              <Trans>
                Done for {amount(succeeded)} of {amount(progress.total)}.
              </Trans>
            )}
          </p>
          {progress.failed.length > 0 && (
            <div role="alert" className="max-h-52 overflow-auto rounded-lg bg-bad-wash p-3">
              <p className="font-medium text-bad">
                <Plural value={progress.failed.length} one="# was refused" other="# were refused" />
              </p>
              <ul className="mt-1 space-y-1 text-[0.86rem]">
                {progress.failed.slice(0, 50).map(({ what, problem }, index) => (
                  <li key={index} className="hostile">
                    <strong>{what}</strong>: {problem.message}
                  </li>
                ))}
              </ul>
            </div>
          )}
          <div className="flex justify-end gap-2">
            {goes ? (
              <Button onClick={() => stop.current.abort()}>
                <Trans>Stop here</Trans>
              </Button>
            ) : (
              <>
                {action.undo && !undoing && done.current.length > 0 && (
                  <Button
                    onClick={() => {
                      setUndoing(true);
                      void run([...done.current], action.undo!.call);
                    }}
                  >
                    {action.undo.label}
                  </Button>
                )}
                <Button kind="primary" onClick={close}>
                  <Trans>Close</Trans>
                </Button>
              </>
            )}
          </div>
        </div>
      )}
    </Dialog>
  );
}
