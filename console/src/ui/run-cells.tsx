// What several tables of runs show in the same way.
import { Trans, useLingui } from "@lingui/react/macro";
import { Link } from "@tanstack/react-router";
import type { Run } from "../api/client";
import { sourceText, Tag } from "./state";

export function RunLink({ runId }: { runId: number }) {
  return (
    <Link to="/runs/$runId" params={{ runId }} className="link tabular-nums">
      {runId}
    </Link>
  );
}

export function RunSource({ run }: { run: Run }) {
  const { i18n } = useLingui();
  return <span className="whitespace-nowrap text-soft">{i18n._(sourceText(run.source))}</span>;
}

/** Marks of a run besides its state. */
export function RunTags({ run }: { run: Pick<Run, "deadLetter" | "compensated"> }) {
  return (
    <>
      {run.deadLetter && (
        <Tag tone="bad">
          <Trans>dead letter</Trans>
        </Tag>
      )}
      {run.compensated && (
        <Tag tone="warn">
          <Trans>compensated</Trans>
        </Tag>
      )}
    </>
  );
}

/** The last error, or why the run waits. */
export function RunSays({ run }: { run: Run }) {
  return (
    <span className="hostile line-clamp-2">
      <RunTags run={run} />{" "}
      <span className={run.lastError ? "text-bad" : "text-soft"}>{run.lastError ?? run.waitReason ?? ""}</span>
    </span>
  );
}
