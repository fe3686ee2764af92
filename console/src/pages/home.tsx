// What is wrong now? First what needs somebody, worst first, each with the way to it; then the numbers.
import { Plural, Trans, useLingui } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ChevronRight, CircleCheck, Inbox } from "lucide-react";
import { useMemo } from "react";
import type { Run } from "../api/client";
import { loadQuery } from "../api/explain";
import { causesQuery, FAILED, failuresQuery, poolsQuery, runningQuery, tenantsQuery } from "../api/queries";
import { byCause, failureCause } from "../lib/cause";
import { absolute, amount, DAY_MS, HOUR_MS, nodeNow } from "../lib/time";
import { useIsOperator } from "../shell";
import { Failure, Loading } from "../ui/feedback";
import { JobName } from "../ui/job-name";
import { Meter } from "../ui/meter";
import { PageHead, Section } from "../ui/page";
import { RunLink } from "../ui/run-cells";
import { Span, Time } from "../ui/time";
import { Numbers } from "./numbers";
import { useTroubles } from "./troubles";

export function Home() {
  const { t } = useLingui();
  const operator = useIsOperator() ?? false;
  const { troubles, pending, error, retry } = useTroubles(operator);
  return (
    <>
      <PageHead name={t`What is wrong now?`} title={<Trans>What is wrong now?</Trans>} />
      {error !== null && error !== undefined && (
        <div className="mb-4">
          <Failure error={error} retry={retry} />
        </div>
      )}
      <section aria-label={t`What needs you`} className="mb-4" aria-live="polite">
        {pending ? (
          <div className="card">
            <Loading lines={2} />
          </div>
        ) : troubles.length === 0 ? (
          <div className="card flex items-center gap-3 p-4">
            <CircleCheck aria-hidden className="size-6 text-good" />
            <p>
              <strong>
                <Trans>Nothing needs you.</Trans>
              </strong>{" "}
              <span className="text-soft">
                <Trans>No failed run in a day, no dead letter, nobody waits in vain.</Trans>
              </span>
            </p>
          </div>
        ) : (
          <ul className="card divide-y divide-line overflow-hidden">
            {troubles.map(({ tone, text, to, search, key }) => (
              <li key={key}>
                <Link to={to} search={search} className="group flex items-center gap-3 px-4 py-3 hover:bg-sunken">
                  <span
                    aria-hidden
                    className={`size-2.5 shrink-0 rounded-full ${{ bad: "bg-bad", warn: "bg-warn", ask: "bg-ask" }[tone]}`}
                  />
                  <span className={`hostile min-w-0 flex-1 ${tone === "bad" ? "font-medium" : ""}`}>{text}</span>
                  <ChevronRight aria-hidden className="size-4 shrink-0 text-faint group-hover:text-ink" />
                </Link>
              </li>
            ))}
          </ul>
        )}
      </section>
      {operator && <Numbers />}
      <div className="grid gap-x-4 xl:grid-cols-2">
        <Running />
        <NextHour />
        <Causes />
        <DeadLetters />
        {operator ? <Pools /> : <OwnTenant />}
      </div>
    </>
  );
}

const SHOWN = 5;

/** What runs now, the newest first. */
function Running() {
  const { t } = useLingui();
  const running = useQuery(runningQuery);
  const items = running.data?.items ?? [];
  return (
    <Section
      title={
        <Link to="/runs" search={{ state: "RUNNING" }} className="hover:underline">
          <Trans>Running now</Trans>{" "}
          {running.data && (
            <span className="text-soft tabular-nums">
              {amount(items.length)}
              {running.data.nextPageToken ? "+" : ""}
            </span>
          )}
        </Link>
      }
      flush
    >
      {running.error ? (
        <Failure compact error={running.error} />
      ) : running.isPending ? (
        <Loading lines={3} />
      ) : items.length === 0 ? (
        <p className="p-4 text-soft">
          <Trans>Nothing.</Trans>
        </p>
      ) : (
        <ul className="divide-y divide-line" aria-label={t`Running now`}>
          {items.slice(0, SHOWN).map((run) => (
            <li key={run.runId} className="flex flex-wrap items-center gap-x-3 px-4 py-2">
              <RunLink runId={run.runId} />
              <span className="min-w-0 flex-1">
                <JobName jobId={run.jobId} ask />
              </span>
              <Span from={run.startedAt} to={run.endedAt} />
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

/** Due instants of the next hour by minute: many in one minute wait for each other. */
function NextHour() {
  const { t } = useLingui();
  const load = useQuery(loadQuery());
  const items = load.data?.items ?? [];
  const total = items.reduce((sum, { count }) => sum + count, 0);
  const most = Math.max(...items.map(({ count }) => count), 1);
  const fullest = items.find(({ count }) => count === most);
  const timeOf = (at: string) => absolute(Date.parse(at)).slice(11, 16);
  return (
    <Section
      title={
        <Link to="/jobs" search={{ status: "ENABLED" }} className="hover:underline">
          <Trans>Due in the next hour</Trans>{" "}
          {load.data && (
            <span className="text-soft tabular-nums">
              {amount(total)}
              {load.data.truncated ? "+" : ""}
            </span>
          )}
        </Link>
      }
    >
      {load.error ? (
        <Failure compact error={load.error} />
      ) : load.isPending ? (
        <Loading lines={3} />
      ) : (
        <>
          <div
            role="img"
            aria-label={t`Due instants by minute: ${items.map(({ count }) => count).join(", ")}`}
            className="flex h-20 items-end gap-[2px]"
          >
            {items.map(({ at, count }) => (
              <span key={at} title={t`${timeOf(at)}: ${amount(count)} due`} className="flex h-full flex-1 items-end">
                <span
                  className={`w-full rounded-t-[2px] ${count > 0 ? (at === fullest?.at ? "bg-accent" : "bg-accent/55") : "bg-line"}`}
                  style={{ height: `${count > 0 ? Math.max(6, (100 * count) / most) : 3}%` }}
                />
              </span>
            ))}
          </div>
          <p className="mt-1 flex justify-between text-[0.8rem] text-faint tabular-nums" aria-hidden>
            <span>{items[0] && timeOf(items[0].at)}</span>
            <span>{items.length > 0 && timeOf(items.at(-1)!.at)}</span>
          </p>
          <p className="mt-2 text-[0.9rem] text-soft">
            <Plural value={load.data.jobs} one="# job is due" other="# jobs are due" />
            {fullest && total > 0 && (
              <>
                ,{" "}
                <Trans>
                  at most {amount(most)} in a minute, at {timeOf(fullest.at)}
                </Trans>
              </>
            )}
            {load.data.truncated && (
              <>
                . <Trans>There are more than the node counts.</Trans>
              </>
            )}
          </p>
        </>
      )}
    </Section>
  );
}

function DeadLetters() {
  const { t } = useLingui();
  const causes = useQuery(causesQuery());
  const items = causes.data?.items ?? [];
  return (
    <Section
      title={
        <Link to="/dead-letters" className="hover:underline">
          <Trans>Dead letters, by cause</Trans>
        </Link>
      }
      flush
    >
      {causes.error ? (
        <Failure compact error={causes.error} />
      ) : causes.isPending ? (
        <Loading lines={3} />
      ) : items.length === 0 ? (
        <p className="flex items-center gap-2 p-4 text-soft">
          <Inbox aria-hidden className="size-4" /> <Trans>None.</Trans>
        </p>
      ) : (
        <ul className="divide-y divide-line" aria-label={t`Causes of dead letters`}>
          {items.slice(0, CAUSES).map((cause) => (
            <li key={cause.cause} className="flex items-start gap-3 px-4 py-2.5">
              <Link
                to="/dead-letters"
                search={{ cause: cause.cause }}
                aria-label={t`${amount(cause.count)} dead letters of this cause`}
                className="w-10 shrink-0 text-right font-semibold tabular-nums hover:underline"
              >
                {amount(cause.count)}
              </Link>
              <span className="min-w-0 flex-1">
                <Link
                  to="/dead-letters"
                  search={{ cause: cause.cause }}
                  className="hostile line-clamp-2 hover:underline"
                >
                  {cause.reason}
                </Link>
                <span className="text-[0.86rem] text-soft">
                  <Plural value={cause.jobs} one="# job" other="# jobs" />, <Trans>the newest</Trans>{" "}
                  <Time at={cause.lastAt} />
                </span>
              </span>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

const CAUSES = 6;

function Causes() {
  const { t } = useLingui();
  const failures = useQuery(failuresQuery());
  const groups = useMemo(() => {
    const since = nodeNow() - DAY_MS;
    return byCause(
      (failures.data?.items ?? []).filter((run) => Date.parse(run.endedAt ?? run.createdAt) > since),
      failureCause,
    );
  }, [failures.data]);
  return (
    <Section
      title={
        <Link to="/failures" className="hover:underline">
          <Trans>Failed in the last day, by cause</Trans>
        </Link>
      }
      flush
    >
      {failures.isPending ? (
        <Loading lines={3} />
      ) : groups.length === 0 ? (
        <p className="flex items-center gap-2 p-4 text-soft">
          <Inbox aria-hidden className="size-4" /> <Trans>None.</Trans>
        </p>
      ) : (
        <>
          <Hours runs={groups.flatMap((group) => group.items)} />
          <ul className="divide-y divide-line" aria-label={t`Causes`}>
            {groups.slice(0, CAUSES).map((group) => (
              <li key={group.cause} className="flex items-start gap-3 px-4 py-2.5">
                <Link
                  to="/failures"
                  search={{ cause: group.cause }}
                  aria-label={t`${amount(group.items.length)} failed runs of this cause`}
                  className="w-10 shrink-0 text-right font-semibold tabular-nums hover:underline"
                >
                  {amount(group.items.length)}
                </Link>
                <span className="min-w-0 flex-1">
                  <Link to="/failures" search={{ cause: group.cause }} className="hostile line-clamp-2 hover:underline">
                    {group.sample}
                  </Link>
                  <span className="flex flex-wrap gap-x-3 text-[0.86rem] text-soft">
                    {[...group.jobs.keys()].slice(0, 2).map((jobId) => (
                      <JobName key={jobId} jobId={jobId} ask />
                    ))}
                    {group.jobs.size > 2 && <span>+{group.jobs.size - 2}</span>}
                    <Time at={group.items[0]?.endedAt} />
                  </span>
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
    </Section>
  );
}

const HOURS = 24;

/** Failures by hour: whether it is getting worse. */
function Hours({ runs }: { runs: Run[] }) {
  const { t } = useLingui();
  const end = Math.ceil(nodeNow() / HOUR_MS) * HOUR_MS;
  const counts = Array.from({ length: HOURS }, () => 0);
  for (const run of runs) {
    const index = HOURS - 1 - Math.floor((end - 1 - Date.parse(run.endedAt ?? run.createdAt)) / HOUR_MS);
    if (index >= 0 && index < HOURS) counts[index]! += 1;
  }
  const most = Math.max(...counts, 1);
  return (
    <div
      role="group"
      aria-label={t`Failures by hour`}
      className="flex h-14 items-end gap-[3px] border-b border-line px-4 pt-3"
    >
      {counts.map((count, index) => {
        const from = end - (HOURS - index) * HOUR_MS;
        const bar = (
          <span
            className={`w-full rounded-t-[2px] ${count > 0 ? "bg-bad/75" : "bg-line"}`}
            style={{ height: `${count > 0 ? Math.max(8, (100 * count) / most) : 4}%` }}
          />
        );
        return count === 0 ? (
          <span key={index} className="flex h-full flex-1 items-end">
            {bar}
          </span>
        ) : (
          <Link
            key={index}
            to="/runs"
            search={{
              state: FAILED,
              from: new Date(from).toISOString(),
              to: new Date(from + HOUR_MS - 1).toISOString(),
            }}
            title={t`${absolute(from).slice(11, 16)}: ${count} failed`}
            aria-label={t`${absolute(from).slice(11, 16)}: ${count} failed`}
            className="flex h-full flex-1 items-end hover:bg-sunken"
          >
            {bar}
          </Link>
        );
      })}
    </div>
  );
}

function Pools() {
  const { t } = useLingui();
  const pools = useQuery(poolsQuery);
  const sorted = [...(pools.data?.items ?? [])]
    .sort((a, b) => b.waiting - a.waiting || b.running - a.running)
    .slice(0, 8);
  return (
    <Section
      title={
        <Link to="/executors" className="hover:underline">
          <Trans>Pools</Trans>
        </Link>
      }
    >
      {pools.isPending ? (
        <Loading lines={3} />
      ) : sorted.length === 0 ? (
        <p className="text-soft">
          <Trans>No pool has executors or runs.</Trans>
        </p>
      ) : (
        <ul className="space-y-3">
          {sorted.map((pool) => (
            <li key={pool.name} className="grid grid-cols-[minmax(0,1fr)_minmax(7rem,11rem)] items-center gap-4">
              <span className="min-w-0">
                <Link to="/executors" className="hostile font-medium hover:underline">
                  {pool.name}
                </Link>
                <span className="block text-[0.86rem] text-soft">
                  <Plural value={pool.executors} one="# executor" other="# executors" />
                  {pool.waiting > 0 && (
                    <span className="text-warn">
                      {" "}
                      · <Trans>{amount(pool.waiting)} waiting</Trans>
                    </span>
                  )}
                </span>
              </span>
              <Meter
                used={pool.running}
                most={pool.running + pool.credit}
                label={t`Slots in use of ${pool.name}`}
                none={t`no slot`}
              />
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

function OwnTenant() {
  const { t } = useLingui();
  const tenants = useQuery(tenantsQuery);
  const own = tenants.data?.items[0];
  if (!own) return null;
  return (
    <Section
      title={
        <Link to="/tenants" className="hover:underline">
          <Trans>Limits and use</Trans>
        </Link>
      }
    >
      <div className="space-y-3">
        {(
          [
            [t`Runs at once`, own.running, own.quota.maxConcurrentRuns],
            [t`Waiting runs`, own.waiting, own.quota.maxQueuedRuns],
            [t`Jobs`, own.jobs, own.quota.maxJobs],
          ] as const
        ).map(([name, used, most]) => (
          <div key={name} className="grid grid-cols-2 items-center gap-4">
            <span>{name}</span>
            <Meter used={used} most={most} label={name} />
          </div>
        ))}
      </div>
    </Section>
  );
}
