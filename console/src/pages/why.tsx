// Why is it as it is? What the node says of a run, and of a job: when it fires next, and what became of an instant.
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { explainJobQuery, explainRunQuery, lastInstantQuery } from "../api/explain";
import type { Job, Run } from "../api/client";
import { isFinal } from "../api/queries";
import { zoneOf } from "../lib/schedule";
import { absolute, viewerZone } from "../lib/time";
import { Button } from "../ui/button";
import { Failure, Loading } from "../ui/feedback";
import { InstantInput } from "../ui/instant-input";
import { Section } from "../ui/page";
import { Reasons } from "../ui/reasons";

export function WhyRun({ run }: { run: Run }) {
  const why = useQuery(explainRunQuery(run.runId, !isFinal(run.state)));
  return (
    <Section title={<Trans>Why?</Trans>}>
      {why.data ? (
        <Reasons of={why.data.reasons} empty={<Trans>The node has nothing to say about this run.</Trans>} />
      ) : why.error ? (
        <Failure compact error={why.error} retry={() => void why.refetch()} />
      ) : (
        <Loading lines={2} />
      )}
    </Section>
  );
}

/** `at`: an instant that was asked for. Without it the last one about which the node decided is explained. */
export function WhyJob({ job, at }: { job: Job; at: string | undefined }) {
  const navigate = useNavigate({ from: "/jobs/$jobId" });
  const zone = zoneOf(job.trigger);
  const choose = (instant: string | undefined) =>
    void navigate({ search: (was) => ({ ...was, at: instant }), replace: true, resetScroll: false });
  const now = useQuery(explainJobQuery(job.jobId));
  const last = useQuery({ ...lastInstantQuery(job.jobId), enabled: at === undefined });
  const instant = at ?? last.data?.until ?? last.data?.logicalTime;
  const then = useQuery({ ...explainJobQuery(job.jobId, instant), enabled: instant !== undefined });
  return (
    <Section title={<Trans>When does it fire next, and why not?</Trans>}>
      {now.data ? (
        <Reasons of={now.data.reasons} empty={<Trans>The node has nothing to say about this job.</Trans>} />
      ) : now.error ? (
        <Failure compact error={now.error} retry={() => void now.refetch()} />
      ) : (
        <Loading lines={2} />
      )}
      {(instant !== undefined || job.trigger.type !== "MANUAL") && (
        <div className="mt-4 border-t border-line pt-3">
          <h3 className="mb-2 flex flex-wrap items-baseline gap-x-2 text-[0.9rem]">
            <span className="font-semibold">
              {at === undefined ? <Trans>The last due instant</Trans> : <Trans>The instant</Trans>}
            </span>
            {instant !== undefined && (
              <time dateTime={instant} className="text-soft tabular-nums">
                {absolute(Date.parse(instant), zone ?? "UTC", true)}
              </time>
            )}
          </h3>
          {instant === undefined ? (
            <p className="text-soft">
              {last.isPending ? <Trans>Looking…</Trans> : <Trans>The node has decided about none yet.</Trans>}
            </p>
          ) : then.data ? (
            <Reasons of={then.data.reasons} />
          ) : then.error ? (
            <Failure compact error={then.error} />
          ) : (
            <Loading lines={2} />
          )}
          <div className="mt-3 flex flex-wrap items-center gap-2">
            <label htmlFor="instant" className="text-[0.9rem] text-soft">
              <Trans>Another instant, in your zone {viewerZone()}</Trans>
            </label>
            <InstantInput id="instant" className="w-auto" value={at} onChange={choose} />
            {at !== undefined && (
              <Button size="small" kind="ghost" onClick={() => choose(undefined)}>
                <Trans>The last due instant again</Trans>
              </Button>
            )}
          </div>
        </div>
      )}
    </Section>
  );
}
