import { Trans, useLingui } from "@lingui/react/macro";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { newKey, triggerJob } from "../api/actions";
import type { Job } from "../api/client";
import { ActionDialog } from "../ui/dialog";
import { Field } from "../ui/field";
import { tell } from "../ui/toast";

interface Props {
  job: Pick<Job, "jobId" | "name" | "params"> & { status?: string };
  /** Params of a run that is to run again with others. */
  params?: unknown;
  onClose: () => void;
}

/** A value that is no object, or text that is no JSON, is wrong. Empty text means: as the job says. */
export function parseParams(text: string): { params?: Record<string, unknown>; wrong?: string } {
  if (text.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    if (value === null || typeof value !== "object" || Array.isArray(value)) return { wrong: "object" };
    return { params: value as Record<string, unknown> };
  } catch (thrown) {
    return { wrong: thrown instanceof Error ? thrown.message : String(thrown) };
  }
}

export function TriggerDialog({ job, params, onClose }: Props) {
  const { t } = useLingui();
  const navigate = useNavigate();
  const [text, setText] = useState(params === undefined ? "" : JSON.stringify(params, null, 2));
  // One key for this dialog: a click that is repeated makes one run.
  const [key] = useState(newKey);
  const parsed = parseParams(text);
  const own = JSON.stringify(job.params ?? {}, null, 2);
  return (
    <ActionDialog
      title={t`Run ${job.name} now`}
      action={<Trans>Run now</Trans>}
      canGo={!parsed.wrong}
      run={async (reason) => {
        const run = await triggerJob(job.jobId, parsed.params, reason, key);
        tell(<Trans>Run {run.runId} is made.</Trans>);
        await navigate({ to: "/runs/$runId", params: { runId: run.runId } });
      }}
      onClose={onClose}
    >
      {job.status === "PAUSED" && (
        <p className="rounded-lg bg-warn-wash p-3 text-warn">
          <Trans>The job is paused: the node refuses the run until it is resumed.</Trans>
        </p>
      )}
      <Field
        label={<Trans>Params</Trans>}
        hint={<Trans>A JSON object. Its values are laid over the job's params by their names.</Trans>}
        error={parsed.wrong === "object" ? <Trans>Write an object: {'{"name": value}'}</Trans> : parsed.wrong}
      >
        <textarea
          className="input"
          rows={6}
          spellCheck={false}
          placeholder={own}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </Field>
    </ActionDialog>
  );
}
