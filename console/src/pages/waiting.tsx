import { Trans, useLingui } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Ban, CircleCheck, RotateCcw } from "lucide-react";
import { useState } from "react";
import type { Run } from "../api/client";
import { useChanges } from "../api/live";
import { waitingQuery } from "../api/waiting";
import { amount } from "../lib/time";
import { Button } from "../ui/button";
import { Failure, Loading, Nothing } from "../ui/feedback";
import { JobName } from "../ui/job-name";
import { LiveSign } from "../ui/live-sign";
import { PageHead } from "../ui/page";
import { TenantFilter } from "../ui/tenant-filter";
import { Time } from "../ui/time";
import { ConfirmDialog, type Decision } from "./decision";

export function Waiting() {
  const { t } = useLingui();
  const { tenant } = useSearch({ from: "/waiting" });
  const navigate = useNavigate({ from: "/waiting" });
  const waiting = useQuery(waitingQuery(tenant));
  const narrowed = tenant ? `&tenantId=${encodeURIComponent(tenant)}` : "";
  const { live, problem } = useChanges(`/api/v1/runs/watch?state=NEEDS_CONFIRMATION${narrowed}`, [["waiting"]]);
  const [asked, setAsked] = useState<{ run: Run; decision: Decision }>();
  return (
    <>
      <PageHead
        name={t`Waiting for you`}
        title={<Trans>Waiting for you</Trans>}
        below={
          <span className="flex flex-wrap items-center gap-x-3">
            <Trans>
              Runs of jobs that must not run twice, whose executor was lost. Look whether the work was done, then
              decide.
            </Trans>
            <LiveSign live={live} problem={problem} />
          </span>
        }
      >
        <TenantFilter
          value={tenant}
          onChange={(chosen) => void navigate({ search: { tenant: chosen }, replace: true })}
        />
      </PageHead>
      {waiting.error && (
        <div className="mb-3">
          <Failure error={waiting.error} retry={() => void waiting.refetch()} />
        </div>
      )}
      {waiting.data?.nextPageToken && (
        <p role="status" className="mb-3 rounded-lg bg-warn-wash p-3">
          <Trans>The newest {amount(waiting.data.items.length)} are listed. More follow when these are decided.</Trans>
        </p>
      )}
      {waiting.isPending ? (
        <div className="card">
          <Loading />
        </div>
      ) : waiting.data?.items.length === 0 ? (
        <div className="card">
          <Nothing icon={CircleCheck} title={<Trans>No run waits for a person.</Trans>} />
        </div>
      ) : (
        <ul className="space-y-2" aria-label={t`Runs that wait for a person`}>
          {waiting.data?.items.map((run) => (
            <li key={run.runId} className="card flex flex-wrap items-center gap-x-4 gap-y-3 p-4">
              <div className="min-w-56 flex-1">
                <span className="font-medium">
                  <JobName jobId={run.jobId} ask />
                </span>
                <span className="hostile text-faint"> {run.tenantId}</span>
                <p className="text-[0.9rem] text-soft">
                  <Link to="/runs/$runId" params={{ runId: run.runId }} className="link">
                    <Trans>run {run.runId}</Trans>
                  </Link>
                  {" · "}
                  <Trans>due</Trans> <Time at={run.logicalTime ?? run.createdAt} />
                  {run.executorId && (
                    <>
                      {" "}
                      · <Trans>lost with {run.executorId}</Trans>
                    </>
                  )}
                </p>
                {run.waitReason && <p className="hostile text-[0.9rem]">{run.waitReason}</p>}
              </div>
              <div className="flex flex-wrap gap-2">
                <Button size="small" onClick={() => setAsked({ run, decision: "RERUN" })}>
                  <RotateCcw aria-hidden className="size-3.5" /> <Trans>Run it again</Trans>
                </Button>
                <Button size="small" onClick={() => setAsked({ run, decision: "SUCCEEDED" })}>
                  <CircleCheck aria-hidden className="size-3.5" /> <Trans>It did its work</Trans>
                </Button>
                <Button size="small" kind="danger" onClick={() => setAsked({ run, decision: "FAILED" })}>
                  <Ban aria-hidden className="size-3.5" /> <Trans>It failed</Trans>
                </Button>
              </div>
            </li>
          ))}
        </ul>
      )}
      {asked && <ConfirmDialog run={asked.run} decision={asked.decision} onClose={() => setAsked(undefined)} />}
    </>
  );
}
