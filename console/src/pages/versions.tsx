// Every version of a definition that is kept: who changed what, when and why, and the way back.
import { Trans, useLingui } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { History, Undo2 } from "lucide-react";
import { useState } from "react";
import { rollBack } from "../api/actions";
import type { Job, Schemas } from "../api/client";
import { versionsQuery } from "../api/explain";
import { Button } from "../ui/button";
import { ActionDialog } from "../ui/dialog";
import { Failure, Loading, Nothing } from "../ui/feedback";
import { Tag } from "../ui/state";
import { Time } from "../ui/time";
import { tell } from "../ui/toast";
import { FieldChanges } from "./changes";

type Version = Schemas["VersionView"];

export default function Versions({ job }: { job: Job }) {
  const { t } = useLingui();
  // An edit and a roll back have it read again.
  const versions = useQuery({ ...versionsQuery(job.jobId), placeholderData: (was) => was });
  const [asked, setAsked] = useState<Version>();
  const items = versions.data?.items ?? [];
  if (versions.error && items.length === 0)
    return <Failure error={versions.error} retry={() => void versions.refetch()} />;
  return (
    <>
      {versions.isPending ? (
        <div className="card">
          <Loading />
        </div>
      ) : items.length === 0 ? (
        <div className="card">
          <Nothing icon={History} title={<Trans>No version is kept.</Trans>} />
        </div>
      ) : (
        <ol className="space-y-3" aria-label={t`Versions`}>
          {items.map((version) => (
            <li key={version.version} className="card p-4">
              <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
                <h3 className="font-semibold">
                  <Trans>Version {version.version}</Trans>
                </h3>
                {version.version === job.version && (
                  <Tag tone="good">
                    <Trans>now</Trans>
                  </Tag>
                )}
                <span className="text-soft">
                  <Time at={version.at} />
                </span>
                {version.who && <span className="hostile">{version.who}</span>}
                {version.operation && <code className="text-faint">{version.operation}</code>}
                {version.reason && <q className="hostile text-soft">{version.reason}</q>}
                <span className="flex-1" />
                {version.version !== job.version && (
                  <Button size="small" disabled={job.status === "DELETED"} onClick={() => setAsked(version)}>
                    <Undo2 aria-hidden className="size-3.5" /> <Trans>Roll back to version {version.version}</Trans>
                  </Button>
                )}
              </div>
              {version.comparedWith != null ? (
                <div className="mt-3">
                  <p className="mb-1.5 text-[0.86rem] text-soft">
                    <Trans>What changed since version {version.comparedWith}</Trans>
                  </p>
                  <FieldChanges of={version.changes} />
                </div>
              ) : (
                <p className="mt-1 text-[0.86rem] text-soft">
                  <Trans>The version before it is not kept, or there is none.</Trans>
                </p>
              )}
            </li>
          ))}
        </ol>
      )}
      {asked && <RollBack job={job} to={asked.version} onClose={() => setAsked(undefined)} />}
    </>
  );
}

function RollBack({ job, to, onClose }: { job: Job; to: number; onClose: () => void }) {
  const { t } = useLingui();
  // Compared with the definition of now: what the roll back changes.
  const compared = useQuery(versionsQuery(job.jobId, job.version));
  const target = compared.data?.items.find((version) => version.version === to);
  return (
    <ActionDialog
      wide
      title={t`Roll ${job.name} back to version ${to}`}
      action={<Trans>Roll back</Trans>}
      canGo={target !== undefined}
      run={async (reason) => {
        const made = await rollBack(job, to, reason);
        tell(
          <Trans>
            {job.name} has the definition of version {to}, as version {made.version}.
          </Trans>,
        );
      }}
      onClose={onClose}
    >
      <p>
        <Trans>
          The job gets the definition of version {to} as a new version. Nothing of its history is lost. Secret params
          keep their values of now.
        </Trans>
      </p>
      {target ? (
        <FieldChanges of={target.changes} />
      ) : compared.error ? (
        <Failure compact error={compared.error} />
      ) : (
        <Loading lines={3} />
      )}
    </ActionDialog>
  );
}
