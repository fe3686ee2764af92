import { Plural, Trans, useLingui } from "@lingui/react/macro";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { Copy, MoreHorizontal, Pause, Pencil, Play, RotateCcw, Trash2, Zap } from "lucide-react";
import { lazy, Suspense, useState, type ReactNode } from "react";
import { deleteJob, pauseJob, resumeJob, retryRun } from "../api/actions";
import { problemOf, type Job, type Run } from "../api/client";
import { useChanges } from "../api/live";
import { jobQuery, runsOfJobQuery } from "../api/queries";
import { shortTrigger, zoneOf } from "../lib/schedule";
import { amount } from "../lib/time";
import { Button, ButtonLink } from "../ui/button";
import { ActionDialog } from "../ui/dialog";
import { Failure, Loading, Nothing } from "../ui/feedback";
import { LiveSign } from "../ui/live-sign";
import { Item, Menu } from "../ui/menu";
import { Fact, Facts, PageHead, Section } from "../ui/page";
import { readOn, ShowMore, useRows } from "../ui/paging";
import { RunSays, RunSource } from "../ui/run-cells";
import { State } from "../ui/state";
import { RunStrip, stateOf } from "../ui/strip";
import { Table, type Column } from "../ui/table";
import { Span, Time, TimeInZones } from "../ui/time";
import { complain, tell } from "../ui/toast";
import { RunAgainDialog } from "./run-again";
import { TriggerDialog } from "./trigger";

const Calendar = lazy(() => import("./calendar"));
const Backfills = lazy(() => import("./backfill"));
const MissingNotice = lazy(() => import("./backfill").then((page) => ({ default: page.MissingNotice })));
const Statistics = lazy(() => import("./statistics").then((page) => ({ default: page.Statistics })));
const Versions = lazy(() => import("./versions"));
const WhyJob = lazy(() => import("./why").then((page) => ({ default: page.WhyJob })));
const Definition = lazy(() => import("./definition"));
const Trail = lazy(() => import("../ui/trail"));

export function JobPage() {
  const { t } = useLingui();
  const { jobId } = useParams({ from: "/jobs/$jobId" });
  const { tab, window, at } = useSearch({ from: "/jobs/$jobId" });
  const job = useQuery(jobQuery(jobId));
  const { live, problem } = useChanges(`/api/v1/runs/watch?jobId=${jobId}`, [
    ["job", jobId],
    ["runs", jobId],
  ]);
  const [asked, setAsked] = useState<"trigger" | "pause" | "resume" | "delete" | undefined>();
  const navigate = useNavigate();
  if (job.isPending) return <Loading lines={10} />;
  if (!job.data) return <Failure error={job.error} retry={() => void job.refetch()} />;
  const of = job.data;
  const deleted = of.status === "DELETED";
  const tabs = [
    [undefined, t`Runs`],
    ["calendar", t`Calendar`],
    ["backfill", t`Backfill`],
    ["definition", t`Definition`],
    ["versions", t`Versions`],
    ["audit", t`Audit`],
  ] as const;
  return (
    <>
      <PageHead
        name={of.name}
        title={
          <>
            {of.name} <State of={of.quarantineReason ? "QUARANTINED" : of.status} />
          </>
        }
        below={
          <span className="flex flex-wrap items-center gap-x-3 gap-y-1">
            {of.displayName && <span className="hostile font-medium text-ink">{of.displayName}</span>}
            <span className="hostile">{of.tenantId}</span>
            <span className="hostile">{shortTrigger(of.trigger)}</span>
            <span className="text-faint">
              <Trans>
                job {of.jobId}, version {of.version}
              </Trans>
            </span>
            <LiveSign live={live} problem={problem} />
          </span>
        }
      >
        <Button kind="primary" disabled={deleted} onClick={() => setAsked("trigger")}>
          <Zap aria-hidden className="size-4" /> <Trans>Run now</Trans>
        </Button>
        {of.status === "PAUSED" || of.quarantineReason ? (
          <Button onClick={() => setAsked("resume")}>
            <Play aria-hidden className="size-4" /> <Trans>Resume</Trans>
          </Button>
        ) : (
          <Button disabled={deleted} onClick={() => setAsked("pause")}>
            <Pause aria-hidden className="size-4" /> <Trans>Pause</Trans>
          </Button>
        )}
        <ButtonLink to="/jobs/$jobId/edit" params={{ jobId }} disabled={deleted}>
          <Pencil aria-hidden className="size-4" /> <Trans>Edit</Trans>
        </ButtonLink>
        <Menu
          trigger={
            <Button kind="ghost" aria-label={t`More`}>
              <MoreHorizontal aria-hidden className="size-4.5" />
            </Button>
          }
        >
          <Item onSelect={() => void navigate({ to: "/jobs/new", search: { from: jobId } })}>
            <Copy aria-hidden className="size-4" /> <Trans>Create one like it</Trans>
          </Item>
          <Item danger disabled={deleted} onSelect={() => setAsked("delete")}>
            <Trash2 aria-hidden className="size-4" /> <Trans>Delete</Trans>
          </Item>
        </Menu>
      </PageHead>
      {of.quarantineReason && (
        <div role="alert" className="mb-4 rounded-[10px] border border-bad/40 bg-bad-wash p-4">
          <p className="font-medium text-bad">
            <Trans>
              The node put this job aside, because deciding about it failed again and again. Resume tries it again.
            </Trans>
          </p>
          <p className="hostile mt-1">{of.quarantineReason}</p>
        </div>
      )}
      <Texts job={of} />
      <nav aria-label={t`Parts of this page`} className="mb-4 flex gap-1 overflow-x-auto border-b border-line">
        {tabs.map(([name, text]) => (
          <Link
            key={text}
            to="/jobs/$jobId"
            params={{ jobId }}
            search={{ tab: name }}
            aria-current={tab === name ? "page" : undefined}
            className={`-mb-px border-b-2 px-3 py-2 whitespace-nowrap ${tab === name ? "border-accent font-medium text-accent" : "border-transparent text-soft hover:text-ink"}`}
          >
            {text}
          </Link>
        ))}
      </nav>
      <Suspense fallback={<Loading />}>
        {tab === undefined && (
          <>
            <MissingNotice job={of} />
            <Runs job={of}>
              <div className="grid items-start gap-x-4 lg:grid-cols-2">
                <WhyJob job={of} at={at} />
                <Statistics job={of} window={window ?? "24h"} />
              </div>
            </Runs>
          </>
        )}
        {tab === "calendar" && <Calendar job={of} />}
        {tab === "backfill" && <Backfills job={of} />}
        {tab === "definition" && <Definition job={of} />}
        {tab === "versions" && <Versions job={of} />}
        {tab === "audit" && <Trail filter={{ jobId }} />}
      </Suspense>
      {asked === "trigger" && <TriggerDialog job={of} onClose={() => setAsked(undefined)} />}
      {asked === "pause" && (
        <ActionDialog
          title={t`Pause ${of.name}`}
          action={<Trans>Pause</Trans>}
          run={async (reason) => {
            await pauseJob(jobId, reason);
            tell(<Trans>{of.name} is paused.</Trans>, {
              label: t`Resume`,
              run: () =>
                void resumeJob(jobId, t`undone in the console`).catch((thrown) => complain(problemOf(thrown).message)),
            });
          }}
          onClose={() => setAsked(undefined)}
        >
          <p>
            <Trans>It starts nothing more until somebody resumes it. A body that runs goes on.</Trans>
          </p>
        </ActionDialog>
      )}
      {asked === "resume" && (
        <ActionDialog
          title={t`Resume ${of.name}`}
          action={<Trans>Resume</Trans>}
          run={async (reason) => {
            await resumeJob(jobId, reason);
            tell(<Trans>{of.name} fires again.</Trans>);
          }}
          onClose={() => setAsked(undefined)}
        >
          <p>
            <Trans>It fires again from its next due instant on. What was due meanwhile is not made up for.</Trans>
          </p>
        </ActionDialog>
      )}
      {asked === "delete" && (
        <ActionDialog
          danger
          title={t`Delete ${of.name}`}
          action={<Trans>Delete</Trans>}
          run={async (reason) => {
            await deleteJob(jobId, reason);
            tell(<Trans>{of.name} is deleted.</Trans>);
            await navigate({ to: "/jobs" });
          }}
          onClose={() => setAsked(undefined)}
        >
          <p>
            <Trans>It never fires again, and its name becomes free. Its runs and its ledger stay.</Trans>
          </p>
        </ActionDialog>
      )}
    </>
  );
}

/** What people wrote about it. A link of an annotation is opened only when somebody clicks it. */
function Texts({ job }: { job: Job }) {
  const annotations = Object.entries(job.annotations ?? {});
  if (!job.description && !job.owner && annotations.length === 0) return null;
  return (
    <div className="mb-4 space-y-1">
      {job.description && (
        <p className="hostile max-h-48 max-w-prose overflow-auto whitespace-pre-wrap">{job.description}</p>
      )}
      <ul className="flex flex-wrap gap-x-4 gap-y-1 text-[0.9rem]">
        {job.owner && (
          <li className="hostile">
            <span className="text-faint">
              <Trans>Owner</Trans>
            </span>{" "}
            {job.owner}
          </li>
        )}
        {annotations.map(([name, value]) => (
          <li key={name} className="hostile">
            <span className="text-faint">{name}</span>{" "}
            {/^https?:\/\/\S+$/.test(value) ? (
              <a className="link" href={value} target="_blank" rel="noreferrer noopener">
                {value}
              </a>
            ) : (
              value
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Runs({ job, children }: { job: Job; children: ReactNode }) {
  const { t } = useLingui();
  const navigate = useNavigate();
  const runs = useInfiniteQuery(runsOfJobQuery(job.jobId));
  const rows = useRows(runs.data);
  const zone = zoneOf(job.trigger);
  const [undone, setUndone] = useState<Run>();
  const retry = async (run: Run) => {
    // It would do again what its compensation undid: somebody has to insist.
    if (run.compensated) return setUndone(run);
    try {
      await retryRun(run.runId);
      tell(<Trans>Run {run.runId} runs again.</Trans>);
    } catch (thrown) {
      complain(problemOf(thrown).message);
    }
  };
  const columns = useRunColumns(zone, retry);
  return (
    <>
      <Section>
        <Facts>
          <Fact name={<Trans>Next due</Trans>}>
            {job.nextFireAt ? (
              <TimeInZones at={job.nextFireAt} zone={zone} />
            ) : (
              <span className="text-soft">
                <Trans>nothing is due</Trans>
              </span>
            )}
          </Fact>
          <Fact name={<Trans>Runs so far</Trans>}>
            <Link to="/runs" search={{ job: job.jobId }} className="link">
              {amount(job.runCount)}
            </Link>
          </Fact>
          {job.action?.kind !== "DAG" && <Fact name={<Trans>Pool</Trans>}>{job.executorSelector}</Fact>}
        </Facts>
      </Section>
      {children}
      {runs.error && (
        <div className="mb-3">
          <Failure error={runs.error} retry={() => void runs.refetch()} />
        </div>
      )}
      {rows.length > 0 && (
        <Section title={<Plural value={Math.min(rows.length, 60)} one="The newest run" other="The newest # runs" />}>
          <RunStrip runs={rows} />
        </Section>
      )}
      <div className="card overflow-hidden">
        {runs.isPending ? (
          <Loading />
        ) : rows.length === 0 ? (
          <Nothing icon={RotateCcw} title={<Trans>No run yet.</Trans>}>
            <Trans>Run it now to see whether it works.</Trans>
          </Nothing>
        ) : (
          <Table
            label={t`Runs`}
            columns={columns}
            rows={rows}
            rowKey={(run) => String(run.runId)}
            onOpen={(run) => void navigate({ to: "/runs/$runId", params: { runId: run.runId } })}
            onEnd={() => readOn(runs)}
          />
        )}
      </div>
      <ShowMore list={runs} className="mt-2" />
      {undone && <RunAgainDialog run={undone} how="retry" onClose={() => setUndone(undefined)} />}
    </>
  );
}

function useRunColumns(zone: string | undefined, retry: (run: Run) => void): Column<Run>[] {
  const { t } = useLingui();
  return [
    { name: "state", head: t`State`, bare: true, cell: (run) => <State of={stateOf(run)} /> },
    {
      name: "run",
      head: t`Due`,
      cell: (run): ReactNode => (
        <Link to="/runs/$runId" params={{ runId: run.runId }} className="link whitespace-nowrap">
          <Time at={run.logicalTime ?? run.createdAt} zone={zone} />
        </Link>
      ),
    },
    { name: "took", head: t`Took`, cell: (run) => <Span from={run.startedAt} to={run.endedAt} /> },
    { name: "attempts", head: t`Attempts`, num: true, from: "md", cell: (run) => run.attemptCount },
    {
      name: "source",
      head: t`Source`,
      from: "lg",
      cell: (run) => <RunSource run={run} />,
    },
    {
      name: "why",
      head: t`What it says`,
      main: true,
      bare: true,
      cell: (run) => <RunSays run={run} />,
    },
    {
      name: "act",
      head: <span className="sr-only">{t`Actions`}</span>,
      bare: true,
      cell: (run) =>
        (run.state === "FAILED" || run.state === "TIMEOUT") && (
          <Button size="small" onClick={() => retry(run)} aria-label={t`Retry run ${run.runId}`}>
            <RotateCcw aria-hidden className="size-3.5" /> {t`Retry`}
          </Button>
        ),
    },
  ];
}
