// The newest backfill or replay of a job: how far it is, and what can be done about it.
import { Plural, Trans, useLingui } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Ban, CalendarSync, History, Pause, Play } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { backfillQuery, canBackfill, isActive, missingQuery, steerBackfill, type Backfill } from "../api/backfills";
import type { Job } from "../api/client";
import { client, FAILED, OPEN } from "../api/queries";
import { cellStart } from "../lib/ledger";
import { zoneOf } from "../lib/schedule";
import { absolute, amount, duration, nodeNow } from "../lib/time";
import { Button } from "../ui/button";
import { ActionDialog } from "../ui/dialog";
import { Failure, Loading, Nothing } from "../ui/feedback";
import { Fact, Facts, Section } from "../ui/page";
import { State } from "../ui/state";
import { Time } from "../ui/time";
import { BackfillDialog, type Stretch } from "./backfill-dialog";

/** Yesterday and today until now, in the job's zone. */
function lately(job: Job): Stretch {
  const now = nodeNow();
  const zone = zoneOf(job.trigger) ?? "UTC";
  return { from: cellStart(cellStart(now, "day", zone) - 1, "day", zone), to: now };
}

/** Offers to run what is missing since yesterday; nothing when nothing is. */
export function MissingNotice({ job }: { job: Job }) {
  const missing = useQuery(missingQuery(job));
  const [asked, setAsked] = useState(false);
  const found = missing.data;
  if (!found || found.missing === 0) return null;
  return (
    <div
      role="status"
      className="mb-4 flex flex-wrap items-center gap-3 rounded-[10px] border border-warn/40 bg-warn-wash p-4"
    >
      <CalendarSync aria-hidden className="size-5 shrink-0 text-warn" />
      <p className="min-w-52 flex-1">
        <strong>
          <Plural value={found.missing} one="# due instant made no run" other="# due instants made no run" />
        </strong>{" "}
        <span className="text-soft">
          <Trans>
            since <Time at={found.from} />
          </Trans>
        </span>
      </p>
      <Button onClick={() => setAsked(true)}>
        <Trans>Backfill them</Trans>
      </Button>
      {asked && (
        <BackfillDialog
          job={job}
          stretch={{ from: Date.parse(found.from), to: Date.parse(found.to) }}
          onClose={() => setAsked(false)}
        />
      )}
    </div>
  );
}

type Asked = "backfill" | "replay" | "pause" | "resume" | "cancel";

export default function Backfills({ job }: { job: Job }) {
  const { t } = useLingui();
  const query = useQuery(backfillQuery(job.jobId));
  const [asked, setAsked] = useState<Asked>();
  const close = () => setAsked(undefined);
  const of = query.data;
  const active = isActive(of);
  // What it ran is in the calendar and in the lists when it has ended.
  const was = useRef(active);
  useEffect(() => {
    if (was.current && !active) {
      for (const key of ["runs", "ledger", "missing"]) void client.invalidateQueries({ queryKey: [key] });
    }
    was.current = active;
  }, [active]);
  const offers = canBackfill(job) && !active;
  return (
    <>
      <Section
        title={<Trans>Backfill</Trans>}
        actions={
          <>
            {active && of?.state === "RUNNING" && (
              <Button size="small" onClick={() => setAsked("pause")}>
                <Pause aria-hidden className="size-3.5" /> <Trans>Pause the backfill</Trans>
              </Button>
            )}
            {active && of?.state === "PAUSED" && (
              <Button size="small" onClick={() => setAsked("resume")}>
                <Play aria-hidden className="size-3.5" /> <Trans>Resume the backfill</Trans>
              </Button>
            )}
            {active && of?.state !== "CANCELING" && (
              <Button size="small" kind="danger" onClick={() => setAsked("cancel")}>
                <Ban aria-hidden className="size-3.5" /> <Trans>Cancel the backfill</Trans>
              </Button>
            )}
            <Button size="small" disabled={!offers} onClick={() => setAsked("replay")}>
              <History aria-hidden className="size-3.5" /> <Trans>Replay</Trans>
            </Button>
            <Button size="small" kind="primary" disabled={!offers} onClick={() => setAsked("backfill")}>
              <CalendarSync aria-hidden className="size-3.5" /> <Trans>Backfill a stretch</Trans>
            </Button>
          </>
        }
      >
        {query.error && <Failure compact error={query.error} retry={() => void query.refetch()} />}
        {query.isPending ? (
          <Loading lines={3} />
        ) : of ? (
          <Progress of={of} zone={zoneOf(job.trigger) ?? "UTC"} />
        ) : (
          !query.error && (
            <Nothing icon={CalendarSync} title={<Trans>The job has no backfill.</Trans>}>
              {canBackfill(job) ? (
                <Trans>
                  A backfill runs instants of the past that made no run or whose run failed. A replay runs again what
                  has run.
                </Trans>
              ) : (
                <Trans>Only jobs with a cron expression or a fixed rate have instants of the past to run.</Trans>
              )}
            </Nothing>
          )
        )}
      </Section>
      {(asked === "backfill" || asked === "replay") && (
        <BackfillDialog
          job={job}
          stretch={lately(job)}
          mode={asked === "replay" ? "REPLAY" : "MISSING"}
          onClose={close}
        />
      )}
      {of && asked === "pause" && (
        <ActionDialog
          title={t`Pause the backfill of ${job.name}`}
          action={<Trans>Pause the backfill</Trans>}
          run={(reason) => steerBackfill(of, "pause", reason)}
          onClose={close}
        >
          <p>
            <Trans>It starts no further run until somebody resumes it. Its open runs go on.</Trans>
          </p>
        </ActionDialog>
      )}
      {of && asked === "resume" && (
        <ActionDialog
          title={t`Resume the backfill of ${job.name}`}
          action={<Trans>Resume the backfill</Trans>}
          run={(reason) => steerBackfill(of, "resume", reason)}
          onClose={close}
        >
          <p>
            <Trans>It goes on where it stopped.</Trans>
          </p>
        </ActionDialog>
      )}
      {of && asked === "cancel" && (
        <ActionDialog
          danger
          title={t`Cancel the backfill of ${job.name}`}
          action={<Trans>Cancel the backfill</Trans>}
          run={(reason) => steerBackfill(of, "cancel", reason)}
          onClose={close}
        >
          <p>
            <Trans>It starts nothing more, and its open runs are canceled. Runs that have ended stay.</Trans>
          </p>
        </ActionDialog>
      )}
    </>
  );
}

function Progress({ of, zone }: { of: Backfill; zone: string }) {
  const { t } = useLingui();
  const modes: Record<Backfill["mode"], string> = {
    MISSING: t`instants that made no run`,
    FAILED: t`instants whose run failed`,
    ALL: t`all instants`,
    REPLAY: t`replay`,
  };
  const { progress } = of;
  const ended = (progress?.succeeded ?? 0) + (progress?.failed ?? 0) + (progress?.canceled ?? 0);
  const total = Math.max(of.toRun, progress?.started ?? 0);
  const runs = { job: of.jobId, source: of.mode === "REPLAY" ? ("REPLAY" as const) : ("BACKFILL" as const) };
  return (
    <div className="space-y-4">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        {of.state && <State of={of.state === "RUNNING" ? "STARTED" : of.state} />}
        <span>{modes[of.mode]}</span>
        <span className="text-soft tabular-nums">
          {absolute(Date.parse(of.from), zone)} – {absolute(Date.parse(of.to), zone)} ({zone})
        </span>
      </div>
      <div>
        <progress
          className="w-full"
          max={Math.max(total, 1)}
          value={total === 0 ? 1 : ended}
          aria-label={t`Progress of the backfill`}
        />
        <p role="status">
          <Trans>
            {amount(ended)} of {amount(total)} runs have ended
          </Trans>
          {isActive(of) && of.estimatedSec != null && (
            <span className="text-soft">
              {" "}
              · <Trans>about {duration(of.estimatedSec * 1000)} left</Trans>
            </span>
          )}
        </p>
      </div>
      {isActive(of) && of.waitReason && (
        <p className="hostile rounded-lg bg-warn-wash p-2.5">
          <Trans>It starts nothing now:</Trans> {of.waitReason}
        </p>
      )}
      {of.stateReason && <p className="hostile text-soft">{of.stateReason}</p>}
      <Facts>
        {progress && (
          <>
            <Fact name={<Trans>Open</Trans>}>
              <Link to="/runs" search={{ ...runs, state: OPEN }} className="link">
                {amount(progress.active)}
              </Link>
            </Fact>
            <Fact name={<Trans>Succeeded</Trans>}>
              <Link to="/runs" search={{ ...runs, state: "SUCCESS" }} className="link">
                {amount(progress.succeeded)}
              </Link>
            </Fact>
            <Fact name={<Trans>Failed</Trans>}>
              <Link to="/runs" search={{ ...runs, state: FAILED }} className="link">
                {amount(progress.failed)}
              </Link>
            </Fact>
            <Fact name={<Trans>Canceled</Trans>}>
              <Link to="/runs" search={{ ...runs, state: "CANCELED" }} className="link">
                {amount(progress.canceled)}
              </Link>
            </Fact>
            {progress.existing > 0 && <Fact name={<Trans>Had a run already</Trans>}>{amount(progress.existing)}</Fact>}
          </>
        )}
        <Fact name={<Trans>Runs at once</Trans>}>{of.parallelism}</Fact>
        <Fact name={<Trans>Began</Trans>}>
          <Time at={of.createdAt} />
          {of.requestedBy && (
            <span className="text-soft">
              {" "}
              · <Trans>by {of.requestedBy}</Trans>
            </span>
          )}
        </Fact>
        {of.endedAt && (
          <Fact name={<Trans>Ended</Trans>}>
            <Time at={of.endedAt} />
          </Fact>
        )}
        {of.reason && <Fact name={<Trans>Reason</Trans>}>{of.reason}</Fact>}
      </Facts>
    </div>
  );
}
