import { Plural, Trans, useLingui } from "@lingui/react/macro";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { ClipboardList, Pause, Play, Plus, Trash2, Zap } from "lucide-react";
import { useDeferredValue, useEffect, useState } from "react";
import { deleteJob, newKey, pauseJob, resumeJob, triggerJob } from "../api/actions";
import { api, good, pulse, type Job } from "../api/client";
import { jobQueryOf, jobsQuery, LARGEST_PAGE, type JobsFilter } from "../api/queries";
import { shortTrigger, zoneOf } from "../lib/schedule";
import { amount } from "../lib/time";
import { useIsOperator } from "../shell";
import { BulkDialog, type BulkAction } from "../ui/bulk";
import { Button, ButtonLink } from "../ui/button";
import { Failure, Loading, Nothing } from "../ui/feedback";
import { PageHead } from "../ui/page";
import { readOn, ShowMore, useRows } from "../ui/paging";
import { State, Tag } from "../ui/state";
import { Table, type Column } from "../ui/table";
import { TenantFilter } from "../ui/tenant-filter";
import { Time } from "../ui/time";

/** Which jobs are chosen: some, or all that fit the filter, however many pages they are on. */
type Chosen = { all: false; ids: ReadonlyMap<string, Job> } | { all: true; but: ReadonlySet<string> };
const NONE: Chosen = { all: false, ids: new Map() };
/** Jobs that a bulk action looks at, at most. */
const BULK_MOST = 50_000;

export function Jobs() {
  const { t } = useLingui();
  const filter = useSearch({ from: "/jobs" });
  const navigate = useNavigate({ from: "/jobs" });
  const operator = useIsOperator();
  const setFilter = (change: Partial<JobsFilter>) =>
    void navigate({
      search: (was) => Object.fromEntries(Object.entries({ ...was, ...change }).filter(([, value]) => value)),
      replace: true,
    });
  const jobs = useInfiniteQuery({ ...jobsQuery(useDeferredValue(filter)), placeholderData: (was) => was });
  const rows = useRows(jobs.data);
  const [chosen, setChosen] = useState<Chosen>(NONE);
  const [action, setAction] = useState<"pause" | "resume" | "trigger" | "delete" | undefined>();
  const filterText = JSON.stringify(filter);
  useEffect(() => setChosen(NONE), [filterText]);
  const count = chosen.all ? undefined : chosen.ids.size;
  const isFiltered = filterText !== "{}";

  const columns: Column<Job>[] = [
    {
      name: "name",
      head: t`Job`,
      main: true,
      bare: true,
      cell: (job) => (
        <span className="block">
          <Link to="/jobs/$jobId" params={{ jobId: job.jobId }} className="link hostile font-medium">
            {job.name}
          </Link>
          {job.displayName && <span className="hostile ml-2">{job.displayName}</span>}
          {job.action?.kind === "DAG" && (
            <span className="ml-2">
              <Tag>{t`DAG`}</Tag>
            </span>
          )}
          {operator && <span className="hostile ml-2 text-[0.86rem] text-faint">{job.tenantId}</span>}
          {Object.entries(job.labels).length > 0 && (
            <span className="mt-0.5 flex flex-wrap gap-1">
              {Object.entries(job.labels).map(([key, value]) => (
                <button
                  key={key}
                  type="button"
                  title={t`Only jobs with this label`}
                  onClick={() => setFilter({ labels: `${key}=${value}` })}
                >
                  <Tag>
                    {key}={value}
                  </Tag>
                </button>
              ))}
            </span>
          )}
        </span>
      ),
    },
    {
      name: "status",
      head: t`Status`,
      cell: (job) => <State of={job.quarantineReason ? "QUARANTINED" : job.status} />,
    },
    {
      name: "schedule",
      head: t`Schedule`,
      cell: (job) => (
        <span className="hostile whitespace-nowrap max-sm:whitespace-normal">{shortTrigger(job.trigger)}</span>
      ),
    },
    { name: "next", head: t`Next`, cell: (job) => <Time at={job.nextFireAt} zone={zoneOf(job.trigger)} /> },
    {
      name: "last",
      head: t`Last run`,
      cell: (job) => (
        <span className="inline-flex items-center gap-2 whitespace-nowrap">
          {job.lastRunState && <State of={job.lastRunState} plain />}
          <Time at={job.lastRunAt} zone={zoneOf(job.trigger)} />
        </span>
      ),
    },
    {
      name: "runs",
      head: t`Runs`,
      num: true,
      from: "lg",
      cell: (job) => (
        <Link to="/jobs/$jobId" params={{ jobId: job.jobId }} className="link">
          {amount(job.runCount)}
        </Link>
      ),
    },
  ];
  const has = (key: string) => (chosen.all ? !chosen.but.has(key) : chosen.ids.has(key));
  const toggle = (key: string) =>
    setChosen((was) => {
      if (was.all) {
        const but = new Set(was.but);
        if (!but.delete(key)) but.add(key);
        return { all: true, but };
      }
      const ids = new Map(was.ids);
      const job = rows.find((row) => String(row.jobId) === key);
      if (!ids.delete(key) && job) ids.set(key, job);
      return { all: false, ids };
    });
  const allShown = rows.length > 0 && rows.every((job) => has(String(job.jobId)));
  const toggleAll = () =>
    setChosen(allShown ? NONE : { all: false, ids: new Map(rows.map((job) => [String(job.jobId), job])) });

  return (
    <>
      <PageHead name={t`Jobs`} title={<Trans>Jobs</Trans>}>
        <ButtonLink kind="primary" to="/jobs/new">
          <Plus aria-hidden className="size-4" /> <Trans>Create a job</Trans>
        </ButtonLink>
      </PageHead>
      <div className="mb-3 flex flex-wrap items-center gap-2">
        <Filter
          value={filter.text ?? ""}
          onChange={(text) => setFilter({ text })}
          label={t`Part of a name or text`}
          type="search"
          className="max-w-72 min-w-40 flex-1"
        />
        <select
          className="input w-auto"
          aria-label={t`Status`}
          value={filter.status ?? ""}
          onChange={(event) => setFilter({ status: (event.target.value || undefined) as JobsFilter["status"] })}
        >
          <option value="">{t`any status`}</option>
          <option value="ENABLED">{t`enabled`}</option>
          <option value="PAUSED">{t`paused`}</option>
          <option value="DELETED">{t`deleted`}</option>
        </select>
        <TenantFilter value={filter.tenant} onChange={(tenant) => setFilter({ tenant })} />
        <Filter
          value={filter.labels ?? ""}
          onChange={(labels) => setFilter({ labels })}
          label={t`Labels: team=pay,tier!=test`}
          className="max-w-56 min-w-36 flex-1"
        />
        {isFiltered && (
          <Button kind="ghost" onClick={() => void navigate({ search: {} })}>
            <Trans>Clear</Trans>
          </Button>
        )}
      </div>
      {(chosen.all || chosen.ids.size > 0) && (
        <div
          role="region"
          aria-label={t`What is selected`}
          className="appear sticky top-15 z-20 mb-3 flex flex-wrap items-center gap-2 rounded-[10px] border border-accent/40 bg-accent-wash px-3 py-2"
        >
          <span className="font-medium">
            {chosen.all ? (
              chosen.but.size === 0 ? (
                <Trans>All jobs that match</Trans>
              ) : (
                <Trans>All jobs that match, but {chosen.but.size}</Trans>
              )
            ) : (
              <Plural value={count ?? 0} one="# job" other="# jobs" />
            )}
          </span>
          {!chosen.all && allShown && jobs.hasNextPage && (
            <button type="button" className="link" onClick={() => setChosen({ all: true, but: new Set() })}>
              <Trans>Select all that match, also on further pages</Trans>
            </button>
          )}
          <span className="flex-1" />
          <Button size="small" onClick={() => setAction("pause")}>
            <Pause aria-hidden className="size-3.5" /> <Trans>Pause</Trans>
          </Button>
          <Button size="small" onClick={() => setAction("resume")}>
            <Play aria-hidden className="size-3.5" /> <Trans>Resume</Trans>
          </Button>
          <Button size="small" onClick={() => setAction("trigger")}>
            <Zap aria-hidden className="size-3.5" /> <Trans>Run now</Trans>
          </Button>
          <Button size="small" kind="danger" onClick={() => setAction("delete")}>
            <Trash2 aria-hidden className="size-3.5" /> <Trans>Delete</Trans>
          </Button>
          <Button size="small" kind="ghost" onClick={() => setChosen(NONE)}>
            <Trans>Clear</Trans>
          </Button>
        </div>
      )}
      {jobs.error && (
        <div className="mb-3">
          <Failure error={jobs.error} retry={() => void jobs.refetch()} />
        </div>
      )}
      <div className="card overflow-hidden">
        {jobs.isPending ? (
          <Loading lines={10} />
        ) : rows.length === 0 ? (
          <Nothing
            icon={ClipboardList}
            title={isFiltered ? <Trans>No job matches.</Trans> : <Trans>There is no job yet.</Trans>}
          >
            {isFiltered ? (
              <Button onClick={() => void navigate({ search: {} })} className="mt-1">
                <Trans>Clear the filter</Trans>
              </Button>
            ) : (
              <p>
                <Trans>Create one here, or keep jobs in files and bring them in with `campanile apply`.</Trans>
              </p>
            )}
          </Nothing>
        ) : (
          <Table
            label={t`Jobs`}
            columns={columns}
            rows={rows}
            rowKey={(job) => String(job.jobId)}
            onOpen={(job) => void navigate({ to: "/jobs/$jobId", params: { jobId: job.jobId } })}
            selection={{ has, toggle, all: allShown, toggleAll }}
            onEnd={() => readOn(jobs)}
          />
        )}
      </div>
      {rows.length > 0 && (
        <div className="mt-2 flex flex-wrap items-center justify-between gap-2 text-[0.86rem] text-faint">
          <span>
            {jobs.hasNextPage ? (
              <Trans>{amount(rows.length)} shown, more follow</Trans>
            ) : (
              <Plural value={rows.length} one="# job" other="# jobs" />
            )}
            {" · "}
            <Trans>answered in {Math.round(pulse.ms)} ms</Trans>
          </span>
          <ShowMore list={jobs} />
        </div>
      )}
      {action && (
        <JobsAction
          what={action}
          chosen={chosen}
          filter={filter}
          onClose={() => setAction(undefined)}
          onDone={() => setChosen(NONE)}
        />
      )}
    </>
  );
}

/** A field that changes the address when the person stops typing. */
export function Filter({
  value,
  onChange,
  label,
  className,
  type = "text",
}: {
  value: string;
  onChange: (value: string | undefined) => void;
  label: string;
  className?: string;
  type?: "text" | "search";
}) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => onChange(text || undefined), 250);
    return () => clearTimeout(timer);
  });
  return (
    <input
      type={type}
      className={`input ${className}`}
      aria-label={label}
      placeholder={label}
      value={text}
      spellCheck={false}
      onChange={(event) => setText(event.target.value)}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        // The browser would empty the field: what was searched for is to stay.
        event.preventDefault();
        event.currentTarget.blur();
      }}
    />
  );
}

function JobsAction({
  what,
  chosen,
  filter,
  onClose,
  onDone,
}: {
  what: "pause" | "resume" | "trigger" | "delete";
  chosen: Chosen;
  filter: JobsFilter;
  onClose: () => void;
  onDone: () => void;
}) {
  const { t } = useLingui();
  const find = async (signal: AbortSignal) => {
    if (!chosen.all) return [...chosen.ids.values()];
    const found: Job[] = [];
    let pageToken: string | undefined;
    do {
      const query = { ...jobQueryOf(filter), pageSize: LARGEST_PAGE, pageToken };
      const page = await good(api.GET("/api/v1/jobs", { signal, params: { query } }));
      found.push(...page.items.filter((job) => !chosen.but.has(String(job.jobId))));
      pageToken = page.nextPageToken ?? undefined;
    } while (pageToken && found.length < BULK_MOST);
    return found;
  };
  const name = (job: Job) => job.name;
  const actions: Record<typeof what, BulkAction<Job>> = {
    pause: {
      title: t`Pause jobs`,
      text: t`Paused jobs start nothing more. Bodies that run go on.`,
      button: t`Pause`,
      fits: (job) => job.status === "ENABLED",
      call: (job, reason) => pauseJob(job.jobId, reason),
      undo: { label: t`Resume them again`, call: (job) => resumeJob(job.jobId, t`undone in the console`) },
    },
    resume: {
      title: t`Resume jobs`,
      text: t`Resumed jobs fire again from their next due instant on.`,
      button: t`Resume`,
      fits: (job) => job.status === "PAUSED" || !!job.quarantineReason,
      call: (job, reason) => resumeJob(job.jobId, reason),
      undo: { label: t`Pause them again`, call: (job) => pauseJob(job.jobId, t`undone in the console`) },
    },
    trigger: {
      title: t`Run jobs now`,
      text: t`Each of them gets one run with its own params.`,
      button: t`Run now`,
      fits: (job) => job.status !== "DELETED",
      call: (job, reason) => triggerJob(job.jobId, undefined, reason, newKey()),
    },
    delete: {
      title: t`Delete jobs`,
      text: t`Deleted jobs never fire again. Their history stays.`,
      button: t`Delete`,
      danger: true,
      fits: (job) => job.status !== "DELETED",
      call: (job, reason) => deleteJob(job.jobId, reason),
    },
  };
  return <BulkDialog action={actions[what]} find={find} name={name} onClose={onClose} onDone={onDone} />;
}
