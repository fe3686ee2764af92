// Starts a run that has ended once more. What its compensation undid is done again only when somebody insists.
import { Trans, useLingui } from "@lingui/react/macro";
import { useState } from "react";
import { redrive, retryRun } from "../api/actions";
import type { Run } from "../api/client";
import { ActionDialog } from "../ui/dialog";
import { Check } from "../ui/field";
import { tell } from "../ui/toast";

interface Props {
  run: Pick<Run, "runId" | "compensated">;
  how: "retry" | "redrive";
  /** A run of a DAG has nodes in place of attempts. */
  isDag?: boolean;
  onClose: () => void;
}

export function RunAgainDialog({ run: { runId, compensated = false }, how, isDag = false, onClose }: Props) {
  const { t } = useLingui();
  const [insists, setInsists] = useState(false);
  return (
    <ActionDialog
      danger={compensated}
      title={how === "redrive" ? t`Redrive run ${runId}` : t`Run ${runId} again`}
      action={how === "redrive" ? <Trans>Redrive</Trans> : <Trans>Run again</Trans>}
      canGo={!compensated || insists}
      run={async (reason) => {
        await (how === "redrive" ? redrive : retryRun)(runId, reason, compensated);
        tell(<Trans>Run {runId} runs again.</Trans>);
      }}
      onClose={onClose}
    >
      <p>
        {how === "redrive" ? (
          <Trans>It leaves the dead letters and runs again, with all its attempts.</Trans>
        ) : isDag ? (
          <Trans>
            Nodes that failed or were canceled run again, and what did not run because of them follows. What succeeded
            does not run again.
          </Trans>
        ) : (
          <Trans>It gets a new generation with all its attempts, and keeps its due instant and params.</Trans>
        )}
      </p>
      {compensated && (
        <div className="space-y-3 rounded-lg bg-warn-wash p-3">
          <p>
            <Trans>
              The compensation of this run was started: a job that undoes what the run did. If the run goes on, it does
              again what was undone, and the compensation is not started a second time. A new run of the job has a
              compensation of its own.
            </Trans>
          </p>
          <Check label={<Trans>Run it again all the same</Trans>}>
            <input type="checkbox" checked={insists} onChange={(event) => setInsists(event.target.checked)} />
          </Check>
        </div>
      )}
    </ActionDialog>
  );
}
