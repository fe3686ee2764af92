// What a person says of a run that the node cannot decide about.
import { Trans, useLingui } from "@lingui/react/macro";
import { Ban, CircleCheck, RotateCcw } from "lucide-react";
import { confirmRun } from "../api/actions";
import type { Run, Schemas } from "../api/client";
import { Button } from "../ui/button";
import { ActionDialog } from "../ui/dialog";
import { tell } from "../ui/toast";

export type Decision = Schemas["ConfirmDecision"];

export function ConfirmDialog({
  run,
  decision,
  onClose,
}: {
  run: Pick<Run, "runId">;
  decision: Decision;
  onClose: () => void;
}) {
  const { t } = useLingui();
  const texts = {
    RERUN: {
      title: t`Run ${run.runId} again`,
      text: t`Choose this if the lost attempt did not do its work, or if doing it twice does no harm.`,
      action: t`Run it again`,
    },
    SUCCEEDED: {
      title: t`Run ${run.runId} did its work`,
      text: t`Choose this if you have checked that the work was done. The run ends as succeeded.`,
      action: t`It succeeded`,
    },
    FAILED: {
      title: t`Run ${run.runId} failed`,
      text: t`The run ends as failed and is not tried again.`,
      action: t`It failed`,
    },
    ENDED: {
      title: t`The body of run ${run.runId} has ended`,
      text: t`Choose this only if you have checked that the process is gone. The attempt ends now, and another one may start.`,
      action: t`It has ended`,
    },
  }[decision];
  return (
    <ActionDialog
      danger={decision === "FAILED"}
      title={texts.title}
      action={texts.action}
      run={async (reason) => {
        await confirmRun(run.runId, decision, reason);
        tell(<Trans>Run {run.runId} is decided.</Trans>);
      }}
      onClose={onClose}
    >
      <p>{texts.text}</p>
    </ActionDialog>
  );
}

export function NeedsPerson({ run, onAsk }: { run: Run; onAsk: (asked: Decision) => void }) {
  return (
    <section className="mb-4 rounded-[10px] border border-ask/40 bg-ask-wash p-4">
      <h2 className="font-semibold text-ask">
        <Trans>This run waits for you</Trans>
      </h2>
      <p className="mt-1 max-w-prose">
        <Trans>
          Its executor was lost while the body ran, and the job is not idempotent: running it twice may do harm. Look
          whether the work was done, then decide.
        </Trans>
      </p>
      {run.waitReason && <p className="hostile mt-1 text-soft">{run.waitReason}</p>}
      <div className="mt-3 flex flex-wrap gap-2">
        <Button kind="primary" onClick={() => onAsk("RERUN")}>
          <RotateCcw aria-hidden className="size-4" /> <Trans>Run it again</Trans>
        </Button>
        <Button onClick={() => onAsk("SUCCEEDED")}>
          <CircleCheck aria-hidden className="size-4" /> <Trans>It did its work</Trans>
        </Button>
        <Button kind="danger" onClick={() => onAsk("FAILED")}>
          <Ban aria-hidden className="size-4" /> <Trans>It failed</Trans>
        </Button>
      </div>
    </section>
  );
}
