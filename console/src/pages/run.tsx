import { Plural, Trans, useLingui } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { Ban, CircleCheck, Inbox, Pencil, RotateCcw, Trash2 } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { cancelRun, discard } from "../api/actions";
import { useChanges } from "../api/live";
import { isFinal, jobQuery, runQuery } from "../api/queries";
import { zoneOf } from "../lib/schedule";
import { duration } from "../lib/time";
import { Button } from "../ui/button";
import { ActionDialog } from "../ui/dialog";
import { Failure, Loading } from "../ui/feedback";
import { Json, SecretNames } from "../ui/json";
import { LiveSign } from "../ui/live-sign";
import { Fact, Facts, PageHead, Section } from "../ui/page";
import { RunLink, RunTags } from "../ui/run-cells";
import { sourceText, State } from "../ui/state";
import { stateOf } from "../ui/strip";
import { Span, Time, TimeInZones } from "../ui/time";
import { tell } from "../ui/toast";
import { Attempts } from "./attempts";
import { ConfirmDialog, NeedsPerson, type Decision } from "./decision";
import { RunAgainDialog } from "./run-again";
import { TriggerDialog } from "./trigger";

const WhyRun = lazy(() => import("./why").then((page) => ({ default: page.WhyRun })));
const Log = lazy(() => import("./log"));
const RunNodes = lazy(() => import("./nodes").then((page) => ({ default: page.RunNodes })));

type Asked = "cancel" | "retry" | "redrive" | "discard" | "again" | Decision;

export function RunPage() {
  const { t, i18n } = useLingui();
  const { runId } = useParams({ from: "/runs/$runId" });
  const { attempt: wanted, contains, level, tail } = useSearch({ from: "/runs/$runId" });
  const navigate = useNavigate({ from: "/runs/$runId" });
  const query = useQuery(runQuery(runId));
  const run = query.data;
  const open = run !== undefined && !isFinal(run.state);
  const { live, problem } = useChanges(open ? `/api/v1/runs/${runId}/watch` : null, [
    ["run", runId],
    ["nodes", runId],
    ["explainRun", runId],
  ]);
  const job = useQuery({ ...jobQuery(run?.jobId ?? 0), enabled: run !== undefined, retry: false });
  const [asked, setAsked] = useState<Asked | undefined>();
  if (query.isPending) return <Loading lines={10} />;
  if (!run) return <Failure error={query.error} retry={() => void query.refetch()} />;
  const zone = job.data ? zoneOf(job.data.trigger) : undefined;
  const state = stateOf(run);
  const name = job.data?.name ?? t`job ${run.jobId}`;
  const shownAttempt = wanted ?? run.attempts.at(-1)?.attempt;
  const close = () => setAsked(undefined);
  // A run of a DAG has nodes in place of attempts.
  const isDag = job.data?.action?.kind === "DAG";
  return (
    <>
      <PageHead
        name={`${name} · ${run.runId}`}
        title={
          <>
            <Link to="/jobs/$jobId" params={{ jobId: run.jobId }} className="link hostile">
              {name}
            </Link>
            <span className="text-faint">/</span>
            <span className="tabular-nums">{run.runId}</span>
            <State of={state} />
            <RunTags run={run} />
          </>
        }
        below={
          <span className="flex flex-wrap items-center gap-x-3">
            <span className="hostile">{run.tenantId}</span>
            <LiveSign live={open ? live : "over"} problem={open ? problem : undefined} />
          </span>
        }
      >
        {run.deadLetter ? (
          <>
            <Button kind="primary" onClick={() => setAsked("redrive")}>
              <Inbox aria-hidden className="size-4" /> <Trans>Redrive</Trans>
            </Button>
            <Button onClick={() => setAsked("discard")}>
              <Trash2 aria-hidden className="size-4" /> <Trans>Discard</Trans>
            </Button>
          </>
        ) : (
          isFinal(run.state) && (
            <Button kind="primary" onClick={() => setAsked("retry")}>
              <RotateCcw aria-hidden className="size-4" /> <Trans>Run again</Trans>
            </Button>
          )
        )}
        <Button onClick={() => setAsked("again")} disabled={!job.data || job.data.status === "DELETED"}>
          <Pencil aria-hidden className="size-4" /> <Trans>With other params</Trans>
        </Button>
        {open && (
          <Button kind="danger" onClick={() => setAsked("cancel")}>
            <Ban aria-hidden className="size-4" /> <Trans>Cancel</Trans>
          </Button>
        )}
      </PageHead>

      {run.state === "NEEDS_CONFIRMATION" && <NeedsPerson run={run} onAsk={setAsked} />}
      {run.stopping && (
        <div className="mb-4 flex flex-wrap items-center gap-3 rounded-[10px] border border-warn/40 bg-warn-wash p-4">
          <p className="min-w-64 flex-1">
            <Trans>The body was told to stop and has not ended. No other body of this run starts until it has.</Trans>{" "}
            <span className="text-soft">{run.stopping.reason}</span>
          </p>
          <Button onClick={() => setAsked("ENDED")}>
            <CircleCheck aria-hidden className="size-4" /> <Trans>It has ended</Trans>
          </Button>
        </div>
      )}
      {run.lastError && (
        <div className="mb-4 rounded-[10px] border border-bad/40 bg-bad-wash p-4">
          <p className="font-medium text-bad">
            <Trans>The last error</Trans>
          </p>
          <pre className="hostile mt-0.5 max-h-56 overflow-auto whitespace-pre-wrap">{run.lastError}</pre>
        </div>
      )}

      <Section>
        <Facts>
          <Fact name={<Trans>Due</Trans>}>
            {run.logicalTime ? (
              <TimeInZones at={run.logicalTime} zone={zone} />
            ) : (
              <span className="text-soft">
                <Trans>not by schedule</Trans>
              </span>
            )}
          </Fact>
          <Fact name={<Trans>Began</Trans>}>
            <TimeInZones at={run.startedAt} zone={zone} />
            {run.logicalTime && run.startedAt && (
              <span className="text-[0.86rem] text-soft">
                <Trans>{duration(Math.max(0, Date.parse(run.startedAt) - Date.parse(run.logicalTime)))} late</Trans>
              </span>
            )}
          </Fact>
          <Fact name={<Trans>Took</Trans>}>
            <Span from={run.startedAt} to={run.endedAt} />
          </Fact>
          {isDag ? (
            <Fact name={<Trans>Generation</Trans>}>{run.generation}</Fact>
          ) : (
            <>
              <Fact name={<Trans>Executor</Trans>}>{run.executorId ?? "–"}</Fact>
              <Fact name={<Trans>Attempts</Trans>}>
                {run.attemptCount}
                {run.generation > 1 && (
                  <span className="text-soft">
                    {" "}
                    · <Trans>generation {run.generation}</Trans>
                  </span>
                )}
              </Fact>
            </>
          )}
          {run.dagRunId != null && (
            <Fact name={<Trans>Node of the DAG run</Trans>}>
              <RunLink runId={run.dagRunId} />
            </Fact>
          )}
          {run.nextRetryAt && (
            <Fact name={<Trans>Next attempt</Trans>}>
              <Time at={run.nextRetryAt} zone={zone} />
            </Fact>
          )}
          <Fact name={<Trans>Source</Trans>}>
            {i18n._(sourceText(run.source))}
            {run.triggeredBy?.who && (
              <span className="text-soft">
                {" "}
                · <Trans>by {run.triggeredBy.who}</Trans>
              </span>
            )}
          </Fact>
          {run.reason && <Fact name={<Trans>Reason</Trans>}>{run.reason}</Fact>}
          {run.compensated && (
            <Fact name={<Trans>Compensation</Trans>}>
              <Trans>was started, to undo what the run did</Trans>
            </Fact>
          )}
          {run.backfillId != null && run.backfillId > 0 && (
            <Fact name={<Trans>Backfill</Trans>}>
              <Link
                to="/jobs/$jobId"
                params={{ jobId: run.jobId }}
                search={{ tab: "backfill" }}
                className="link tabular-nums"
              >
                {run.backfillId}
              </Link>
            </Fact>
          )}
          {run.traceId && (
            <Fact name={<Trans>Trace</Trans>}>
              <code className="text-[0.82rem]">{run.traceId}</code>
            </Fact>
          )}
          {run.key && (
            <Fact name={<Trans>Key of the caller</Trans>}>
              <code>{run.key}</code>
            </Fact>
          )}
        </Facts>
      </Section>

      <Suspense fallback={<Loading lines={3} />}>
        <WhyRun run={run} />
      </Suspense>

      {isDag ? (
        <Suspense fallback={<Loading />}>
          <RunNodes run={run} />
        </Suspense>
      ) : (
        <Section title={<Plural value={run.attempts.length} one="# attempt" other="# attempts" />} flush>
          {run.attempts.length === 0 ? (
            <p className="p-4 text-soft">
              <Trans>None yet.</Trans>
            </p>
          ) : (
            <Attempts run={run} shown={shownAttempt} />
          )}
        </Section>
      )}

      {run.attempts.length > 0 && shownAttempt !== undefined && (
        <Suspense fallback={<Loading />}>
          <Log
            key={`${run.runId}-${run.generation}-${shownAttempt}`}
            run={run}
            attempt={shownAttempt}
            filter={{ contains, level, tail }}
            onFilter={(change) =>
              void navigate({
                search: (was) => ({ ...was, ...change }),
                replace: true,
                resetScroll: false,
              })
            }
            onAttempt={(attempt) => void navigate({ search: (was) => ({ ...was, attempt }), replace: true })}
          />
        </Suspense>
      )}

      <div className="grid gap-x-4 lg:grid-cols-2">
        <Section title={<Trans>Params</Trans>}>
          <Json value={run.effectiveParams ?? run.params} empty={<Trans>none</Trans>} />
          <SecretNames of={run.secretParams} />
          {run.effectiveParams !== undefined && run.params !== undefined && run.params !== null && (
            <details className="mt-2">
              <summary className="text-soft">
                <Trans>As they came with the trigger</Trans>
              </summary>
              <div className="mt-2">
                <Json value={run.params} empty={<Trans>none</Trans>} />
              </div>
            </details>
          )}
        </Section>
        <Section title={<Trans>Result</Trans>}>
          <Json value={run.result} empty={<Trans>none</Trans>} />
        </Section>
      </div>

      {asked === "again" && job.data && (
        <TriggerDialog job={job.data} params={run.params ?? undefined} onClose={close} />
      )}
      {asked === "cancel" && (
        <ActionDialog
          danger
          title={t`Cancel run ${runId}`}
          action={<Trans>Cancel the run</Trans>}
          run={(reason) => cancelRun(runId, reason)}
          onClose={close}
        >
          <p>
            <Trans>A body that runs is told to stop. The run ends as canceled and is not tried again.</Trans>
          </p>
        </ActionDialog>
      )}
      {(asked === "retry" || asked === "redrive") && (
        <RunAgainDialog run={run} how={asked} isDag={isDag} onClose={close} />
      )}
      {asked === "discard" && (
        <ActionDialog
          danger
          title={t`Discard the dead letter of run ${runId}`}
          action={<Trans>Discard</Trans>}
          run={async (reason) => {
            await discard(runId, reason);
            tell(<Trans>The dead letter is put away. The run stays.</Trans>);
          }}
          onClose={close}
        >
          <p>
            <Trans>It leaves the list of dead letters and does not run again. The run and its log stay.</Trans>
          </p>
        </ActionDialog>
      )}
      {(asked === "RERUN" || asked === "SUCCEEDED" || asked === "FAILED" || asked === "ENDED") && (
        <ConfirmDialog run={run} decision={asked} onClose={close} />
      )}
    </>
  );
}
