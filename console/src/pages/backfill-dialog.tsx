// Runs a stretch of a job's past. The node counts what it would do before anybody can start it.
import { Plural, Trans, useLingui } from "@lingui/react/macro";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useDeferredValue, useId, useState } from "react";
import { dryRunQuery, startBackfill, type Backfill, type BackfillPlan } from "../api/backfills";
import type { Job } from "../api/client";
import { zoneOf } from "../lib/schedule";
import { absolute, amount, duration, viewerZone } from "../lib/time";
import { ActionDialog } from "../ui/dialog";
import { Failure, Loading } from "../ui/feedback";
import { Check, Field } from "../ui/field";
import { InstantInput } from "../ui/instant-input";
import { Fact, Facts } from "../ui/page";
import { Segments } from "../ui/segments";
import { tell } from "../ui/toast";

/** A stretch of time, both ends included, ms. */
export interface Stretch {
  from: number;
  to: number;
}

interface Props {
  job: Job;
  stretch: Stretch;
  mode?: BackfillPlan["mode"];
  title?: string;
  onClose: () => void;
}

export function BackfillDialog({ job, stretch, mode: first = "MISSING", title, onClose }: Props) {
  const { t } = useLingui();
  const navigate = useNavigate();
  const [{ from, to }, setStretch] = useState(stretch);
  const [mode, setMode] = useState(first);
  const [parallelism, setParallelism] = useState("");
  const [unknown, setUnknown] = useState(false);
  const [hooks, setHooks] = useState(false);
  const id = useId();
  const most = Number(parallelism);
  const isRight = from <= to && (parallelism === "" || (Number.isInteger(most) && most >= 1 && most <= 200));
  const plan: BackfillPlan = {
    from: new Date(from).toISOString(),
    to: new Date(to).toISOString(),
    mode,
    ...(parallelism === "" ? {} : { parallelism: most }),
    ...(unknown && mode !== "REPLAY" ? { unknown: "RUN" } : {}),
    ...(hooks ? { hooks } : {}),
  };
  const planText = useDeferredValue(JSON.stringify(plan));
  const counted = useQuery({
    ...dryRunQuery(job.jobId, JSON.parse(planText) as BackfillPlan),
    enabled: isRight,
    placeholderData: keepPreviousData,
  });
  const isCurrent = counted.data !== undefined && !counted.isFetching && planText === JSON.stringify(plan);
  const toRun = isCurrent && !counted.error ? counted.data.toRun : 0;
  const zone = zoneOf(job.trigger) ?? "UTC";
  const change = (name: keyof Stretch, instant: string | undefined) => {
    if (instant !== undefined) setStretch((was) => ({ ...was, [name]: Date.parse(instant) }));
  };
  return (
    <ActionDialog
      wide
      title={title ?? (first === "REPLAY" ? t`Replay runs of ${job.name}` : t`Backfill ${job.name}`)}
      action={toRun === 0 ? <Trans>Start</Trans> : <Plural value={toRun} one="Start (# run)" other="Start (# runs)" />}
      canGo={isRight && toRun > 0}
      run={async (reason) => {
        await startBackfill(job.jobId, reason ? { ...plan, reason } : plan);
        tell(<Trans>The backfill of {job.name} has begun.</Trans>);
        await navigate({ to: "/jobs/$jobId", params: { jobId: job.jobId }, search: { tab: "backfill" } });
      }}
      onClose={onClose}
    >
      <p className="text-[0.9rem] text-soft tabular-nums">
        {absolute(from, zone)} – {absolute(to, zone)} ({zone})
      </p>
      <div className="grid gap-4 sm:grid-cols-2">
        <Field
          label={<Trans>From, included</Trans>}
          hint={<Trans>In your zone, {viewerZone()}</Trans>}
          error={from > to ? <Trans>The end is before the beginning.</Trans> : undefined}
        >
          <InstantInput value={plan.from} onChange={(instant) => change("from", instant)} />
        </Field>
        <Field label={<Trans>To, included</Trans>}>
          <InstantInput value={plan.to} onChange={(instant) => change("to", instant)} />
        </Field>
      </div>
      {first !== "REPLAY" && (
        <div role="group" aria-labelledby={`${id}-mode`}>
          <p id={`${id}-mode`} className="mb-1 text-[0.9rem] font-medium">
            <Trans>Which instants run</Trans>
          </p>
          <Segments
            name={t`Which instants run`}
            value={mode}
            onChange={setMode}
            of={[
              ["MISSING", t`those that made no run`],
              ["FAILED", t`those whose run failed`],
              ["ALL", t`all of them`],
            ]}
          />
        </div>
      )}
      <Counts of={counted.data} mode={mode} isCurrent={isCurrent} error={counted.error} />
      <details>
        <summary className="text-soft">
          <Trans>How it runs</Trans>
        </summary>
        <div className="mt-3 space-y-3">
          <Field
            label={<Trans>Runs at once</Trans>}
            hint={<Trans>1 to 200. FORBID and QUEUE_ONE allow one run, whatever stands here.</Trans>}
            error={isRight || from > to ? undefined : <Trans>Write a number from 1 to 200.</Trans>}
          >
            <input
              className="input max-w-32"
              inputMode="numeric"
              placeholder={String(counted.data?.parallelism ?? 8)}
              value={parallelism}
              onChange={(event) => setParallelism(event.target.value.trim())}
            />
          </Field>
          {first !== "REPLAY" && (
            <Check
              label={<Trans>Run instants of which the ledger says nothing any more</Trans>}
              hint={<Trans>They may have run before.</Trans>}
            >
              <input type="checkbox" checked={unknown} onChange={(event) => setUnknown(event.target.checked)} />
            </Check>
          )}
          <Check label={<Trans>Start the job's hooks when a run fails</Trans>}>
            <input type="checkbox" checked={hooks} onChange={(event) => setHooks(event.target.checked)} />
          </Check>
        </div>
      </details>
    </ActionDialog>
  );
}

/** What the node counted for the stretch. */
function Counts({
  of,
  mode,
  isCurrent,
  error,
}: {
  of: Backfill | undefined;
  mode: BackfillPlan["mode"];
  isCurrent: boolean;
  error: unknown;
}) {
  const { t } = useLingui();
  if (error) return <Failure compact error={error} />;
  if (!of) return <Loading lines={3} />;
  return (
    <section
      aria-label={t`What it would do`}
      aria-busy={!isCurrent}
      className={`space-y-3 rounded-lg bg-sunken p-3 ${isCurrent ? "" : "opacity-60"}`}
    >
      <p role="status">
        {of.toRun === 0 ? (
          <Trans>Nothing would run.</Trans>
        ) : (
          <strong>
            <Plural value={of.toRun} one="# run would start." other="# runs would start." />
          </strong>
        )}{" "}
        {of.toRun > 0 && of.estimatedSec != null && (
          <span className="text-soft">
            <Trans>About {duration(of.estimatedSec * 1000)} by the usual duration.</Trans>
          </span>
        )}
      </p>
      <Facts>
        <Fact name={<Trans>Instants</Trans>}>{amount(of.instants)}</Fact>
        {mode !== "REPLAY" && <Fact name={<Trans>Without a run</Trans>}>{amount(of.missing)}</Fact>}
        {of.failed != null && <Fact name={<Trans>Whose run failed</Trans>}>{amount(of.failed)}</Fact>}
        {of.existing > 0 && <Fact name={<Trans>Run by an earlier backfill</Trans>}>{amount(of.existing)}</Fact>}
        {of.unknown > 0 && <Fact name={<Trans>The ledger says nothing</Trans>}>{amount(of.unknown)}</Fact>}
        {(of.differing ?? 0) > 0 && (
          <Fact name={<Trans>Of another schedule, do not run</Trans>}>{amount(of.differing ?? 0)}</Fact>
        )}
        {(of.gone ?? 0) > 0 && (
          <Fact name={<Trans>Run is open or not kept any more</Trans>}>{amount(of.gone ?? 0)}</Fact>
        )}
      </Facts>
      {of.hazard && <p className="hostile rounded-lg bg-warn-wash p-2.5 text-warn">{of.hazard}</p>}
    </section>
  );
}
