// Runs of all jobs. What is looked for is in the address, so that every number elsewhere can lead to its runs.
import { Plural, Trans, useLingui } from "@lingui/react/macro";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { ListChecks, X } from "lucide-react";
import { pulse, type Run } from "../api/client";
import { useChanges } from "../api/live";
import { allRunsQuery, FAILED, OPEN, WAITING, type RunsFilter } from "../api/queries";
import { amount, viewerZone } from "../lib/time";
import { useIsOperator } from "../shell";
import { Button } from "../ui/button";
import { Failure, Loading, Nothing } from "../ui/feedback";
import { InstantInput } from "../ui/instant-input";
import { JobName } from "../ui/job-name";
import { LiveSign } from "../ui/live-sign";
import { PageHead } from "../ui/page";
import { readOn, ShowMore, useRows } from "../ui/paging";
import { RunLink, RunSays, RunSource } from "../ui/run-cells";
import { SOURCES, sourceText, State } from "../ui/state";
import { stateOf } from "../ui/strip";
import { Table, type Column } from "../ui/table";
import { TenantFilter } from "../ui/tenant-filter";
import { Span, Time } from "../ui/time";
import { Filter } from "./jobs";

export function Runs() {
  const { t, i18n } = useLingui();
  const filter = useSearch({ from: "/runs" });
  const navigate = useNavigate({ from: "/runs" });
  const operator = useIsOperator();
  const setFilter = (change: Partial<RunsFilter>) =>
    void navigate({
      search: (was) => Object.fromEntries(Object.entries({ ...was, ...change }).filter(([, value]) => value)),
      replace: true,
    });
  const query = allRunsQuery(filter);
  const runs = useInfiniteQuery(query);
  const rows = useRows(runs.data);
  // The runs of one job are few enough to be watched.
  const isWatched = filter.job !== undefined;
  const { live, problem } = useChanges(isWatched ? `/api/v1/runs/watch?jobId=${filter.job}` : null, [query.queryKey]);
  const states: [string, string][] = [
    [OPEN, t`all that are open`],
    ["RUNNING", t`running`],
    [WAITING, t`waiting`],
    ["SUSPECTED_LOST", t`suspected lost`],
    ["NEEDS_CONFIRMATION", t`needs a person`],
    [FAILED, t`failed or timed out`],
    ["FAILED", t`failed`],
    ["TIMEOUT", t`timed out`],
    ["SUCCESS", t`succeeded`],
    ["CANCELED", t`canceled`],
    ["SKIPPED", t`skipped`],
  ];
  const isOther = filter.state !== undefined && !states.some(([state]) => state === filter.state);
  const columns: Column<Run>[] = [
    { name: "state", head: t`State`, bare: true, cell: (run) => <State of={stateOf(run)} /> },
    {
      name: "run",
      head: t`Run`,
      cell: (run) => <RunLink runId={run.runId} />,
    },
    {
      name: "job",
      head: t`Job`,
      cell: (run) => (
        <span>
          <JobName jobId={run.jobId} ask />
          {operator && <span className="hostile ml-2 text-[0.86rem] text-faint">{run.tenantId}</span>}
        </span>
      ),
    },
    { name: "due", head: t`Due`, cell: (run) => <Time at={run.logicalTime ?? run.createdAt} /> },
    { name: "took", head: t`Took`, cell: (run) => <Span from={run.startedAt} to={run.endedAt} /> },
    {
      name: "source",
      head: t`Source`,
      from: "lg",
      cell: (run) => <RunSource run={run} />,
    },
    {
      name: "executor",
      head: t`Executor`,
      from: "xl",
      cell: (run) => <span className="hostile text-soft">{run.executorId ?? ""}</span>,
    },
    {
      name: "why",
      head: t`What it says`,
      main: true,
      bare: true,
      cell: (run) => <RunSays run={run} />,
    },
  ];
  return (
    <>
      <PageHead
        name={t`Runs`}
        title={<Trans>Runs</Trans>}
        below={
          <span className="flex flex-wrap items-center gap-x-3">
            <Trans>Open runs first, then ended ones, the newest first.</Trans>
            {isWatched && <LiveSign live={live} problem={problem} />}
          </span>
        }
      />
      <div className="mb-3 flex flex-wrap items-center gap-2">
        <select
          className="input w-auto"
          aria-label={t`State`}
          value={filter.state ?? ""}
          onChange={(event) => setFilter({ state: event.target.value || undefined })}
        >
          <option value="">{filter.job === undefined ? t`open or failed` : t`any state`}</option>
          {isOther && <option value={filter.state}>{filter.state}</option>}
          {states.map(([state, text]) => (
            <option key={state} value={state}>
              {text}
            </option>
          ))}
        </select>
        <TenantFilter value={filter.tenant} onChange={(tenant) => setFilter({ tenant })} />
        <select
          className="input w-auto"
          aria-label={t`Source`}
          value={filter.source ?? ""}
          onChange={(event) => setFilter({ source: (event.target.value || undefined) as RunsFilter["source"] })}
        >
          <option value="">{t`any source`}</option>
          {Object.keys(SOURCES).map((source) => (
            <option key={source} value={source}>
              {i18n._(sourceText(source))}
            </option>
          ))}
        </select>
        <Filter
          value={filter.labels ?? ""}
          onChange={(labels) => setFilter({ labels })}
          label={t`Labels: team=pay,tier!=test`}
          className="max-w-56 min-w-36 flex-1"
        />
        <span className="flex flex-wrap items-center gap-2">
          <Instant label={t`Since`} value={filter.from} onChange={(from) => setFilter({ from })} />
          <Instant label={t`Until`} value={filter.to} onChange={(to) => setFilter({ to })} />
        </span>
        {filter.job !== undefined && (
          <span className="inline-flex items-center gap-1.5 rounded-lg bg-accent-wash px-2.5 py-1.5">
            <Trans>of the job</Trans> <JobName jobId={filter.job} ask />
            <Button
              size="small"
              kind="ghost"
              aria-label={t`Runs of all jobs`}
              onClick={() => setFilter({ job: undefined })}
            >
              <X aria-hidden className="size-4" />
            </Button>
          </span>
        )}
        {Object.keys(filter).length > 0 && (
          <Button kind="ghost" onClick={() => void navigate({ search: {} })}>
            <Trans>Clear</Trans>
          </Button>
        )}
      </div>
      {runs.error && (
        <div className="mb-3">
          <Failure error={runs.error} retry={() => void runs.refetch()} />
        </div>
      )}
      <div className="card overflow-hidden">
        {runs.isPending ? (
          <Loading lines={10} />
        ) : rows.length === 0 && !runs.error ? (
          <Nothing icon={ListChecks} title={<Trans>No run matches.</Trans>}>
            {runs.hasNextPage && <Trans>The node looked at a part of them only: go on with the button below.</Trans>}
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
      {runs.data && (
        <div className="mt-2 flex flex-wrap items-center justify-between gap-2 text-[0.86rem] text-faint">
          <span>
            {runs.hasNextPage ? (
              <Trans>{amount(rows.length)} shown, more follow</Trans>
            ) : (
              <Plural value={rows.length} one="# run" other="# runs" />
            )}
            {" · "}
            <Trans>answered in {Math.round(pulse.ms)} ms</Trans>
          </span>
          <ShowMore list={runs} />
        </div>
      )}
    </>
  );
}

/** An instant of the filter, in the viewer's zone. */
function Instant({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
}) {
  return (
    <label className="inline-flex items-center gap-1.5 text-[0.86rem] text-soft" title={viewerZone()}>
      {label}
      <InstantInput className="w-auto" value={value} onChange={onChange} />
    </label>
  );
}
