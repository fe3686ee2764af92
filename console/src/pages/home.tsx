// What is wrong now? First what needs somebody, worst first, each with the way to it; then the numbers.
import { Plural, Trans, useLingui } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ChevronRight, CircleCheck, Inbox } from "lucide-react";
import { useMemo, type ReactNode } from "react";
import {
  deadLettersQuery,
  executorsQuery,
  failuresQuery,
  isCluster,
  membersQuery,
  metricsQuery,
  nodeQuery,
  outboxQuery,
  poolsQuery,
  readings,
  tenantsQuery,
} from "../api/queries";
import type { Run } from "../api/client";
import { waitingQuery } from "../api/waiting";
import { byCause, failureCause, letterCause } from "../lib/cause";
import { between, quantile } from "../lib/metrics";
import { absolute, amount, duration, nodeNow } from "../lib/time";
import { useIsOperator } from "../shell";
import { Failure, Loading } from "../ui/feedback";
import { JobName } from "../ui/job-name";
import { Meter } from "../ui/meter";
import { PageHead, Section } from "../ui/page";
import { TONES, type Tone } from "../ui/state";
import { Time } from "../ui/time";

interface Trouble {
  tone: Extract<Tone, "bad" | "warn" | "ask">;
  text: ReactNode;
  to: string;
  search?: Record<string, string>;
  key: string;
}

const DAY_MS = 86_400_000;
const LATE_MS = 2_000;
const NEAR = 0.8;

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
        <Causes />
        {operator ? <Pools /> : <OwnTenant />}
      </div>
    </>
  );
}

function useTroubles(operator: boolean) {
  const { t } = useLingui();
  const only = { enabled: operator };
  const node = useQuery({ ...nodeQuery, ...only });
  const members = useQuery({ ...membersQuery, enabled: isCluster(node.data) });
  const pools = useQuery({ ...poolsQuery, ...only });
  const executors = useQuery({ ...executorsQuery, ...only });
  const tenants = useQuery(tenantsQuery);
  const failures = useQuery(failuresQuery());
  const letters = useQuery(deadLettersQuery());
  const outbox = useQuery(outboxQuery());
  const waiting = useQuery(waitingQuery());
  useQuery({ ...metricsQuery, ...only });
  const found: Trouble[] = [];
  const add = (tone: Trouble["tone"], key: string, to: string, text: ReactNode, search?: Record<string, string>) =>
    found.push({ tone, key, to, text, search });

  if (node.data && !node.data.ready)
    add("bad", "ready", "/cluster", <Trans>The node is not ready: {node.data.notReadyReasons.join("; ")}</Trans>);
  for (const member of members.data?.items ?? []) {
    if (member.state === "SUSPECTED")
      add("bad", `m-${member.name}`, "/cluster", <Trans>Node {member.name} does not answer</Trans>);
    if (member.state === "CLOCK_WRONG")
      add(
        "bad",
        `m-${member.name}`,
        "/cluster",
        <Trans>The clock of node {member.name} is wrong: it fires nothing</Trans>,
      );
  }
  for (const missing of node.data?.missing ?? [])
    add(
      "bad",
      `x-${missing.node}`,
      "/cluster",
      <Trans>
        Nothing is heard of node {missing.node}: {missing.reason}
      </Trans>,
    );
  const broken = node.data?.files?.broken.length ?? 0;
  if (broken > 0)
    add(
      "warn",
      "files",
      "/cluster",
      <Plural value={broken} one="# file of jobs is broken" other="# files of jobs are broken" />,
    );
  for (const pool of pools.data?.items ?? []) {
    if (pool.waiting > 0 && pool.executors === 0)
      add(
        "bad",
        `p-${pool.name}`,
        "/executors",
        <Plural
          value={pool.waiting}
          one={`# run waits in pool ${pool.name}, which no executor serves`}
          other={`# runs wait in pool ${pool.name}, which no executor serves`}
        />,
      );
    else if (pool.waiting > 0 && pool.credit === 0)
      add(
        "warn",
        `p-${pool.name}`,
        "/executors",
        <Plural
          value={pool.waiting}
          one={`# run waits in pool ${pool.name}: every slot is taken`}
          other={`# runs wait in pool ${pool.name}: every slot is taken`}
        />,
      );
  }
  for (const executor of executors.data?.items ?? []) {
    if (executor.state === "DISCONNECTED" || executor.state === "SUSPECTED_LOST")
      add(
        "bad",
        `e-${executor.executorId}`,
        "/executors",
        <Trans>
          Executor {executor.executorId} is not heard of, last <Time at={executor.lastHeartbeatAt} />
        </Trans>,
      );
  }
  const waits = waiting.data?.items.length ?? 0;
  if (waits > 0)
    add(
      "ask",
      "waiting",
      "/waiting",
      <Plural value={waits} one="# run waits for a person" other="# runs wait for a person" />,
    );
  const dead = letters.data?.items ?? [];
  const groups = byCause(dead, letterCause);
  if (dead.length > 0) {
    const more = letters.data?.nextPageToken ? "+" : "";
    const causes = groups.length;
    add(
      "bad",
      "dead",
      "/dead-letters",
      <>
        <strong>
          {amount(dead.length)}
          {more}
        </strong>{" "}
        <Plural value={dead.length} one="dead letter" other="dead letters" />{" "}
        <span className="text-soft">
          · <Plural value={causes} one="# cause" other="# causes" />
        </span>
      </>,
    );
  }
  const since = nodeNow() - DAY_MS;
  const failed = (failures.data?.items ?? []).filter((run) => Date.parse(run.endedAt ?? run.createdAt) > since);
  if (failed.length > 0) {
    const more = failures.data?.nextPageToken && failed.length === failures.data.items.length ? "+" : "";
    add(
      "bad",
      "failed",
      "/failures",
      <>
        <strong>
          {amount(failed.length)}
          {more}
        </strong>{" "}
        <Plural value={failed.length} one="run failed in the last day" other="runs failed in the last day" />{" "}
        <span className="text-soft">
          · <Plural value={byCause(failed, failureCause).length} one="# cause" other="# causes" />
        </span>
      </>,
    );
  }
  const lost = (outbox.data?.items ?? []).filter((message) => message.state !== "WAITING").length;
  if (lost > 0)
    add(
      "bad",
      "outbox",
      "/outbox",
      <Plural value={lost} one="# message between jobs was given up" other="# messages between jobs were given up" />,
    );
  for (const tenant of tenants.data?.items ?? []) {
    if (tenant.paused)
      add("warn", `t-${tenant.tenantId}`, "/tenants", <Trans>Tenant {tenant.tenantId} is paused</Trans>);
    const near = [
      [tenant.running, tenant.quota.maxConcurrentRuns, t`runs at once`],
      [tenant.waiting, tenant.quota.maxQueuedRuns, t`waiting runs`],
      [tenant.jobs, tenant.quota.maxJobs, t`jobs`],
    ] as const;
    for (const [used, most, what] of near) {
      if (most > 0 && used >= NEAR * most)
        add(
          "warn",
          `q-${tenant.tenantId}-${what}`,
          "/tenants",
          <Trans>
            Tenant {tenant.tenantId} uses {amount(used)} of {amount(most)} {what}
          </Trans>,
        );
    }
  }
  const { late } = numbers();
  if (late !== undefined && late > LATE_MS)
    add("bad", "late", "/cluster", <Trans>1 of 100 runs begins more than {duration(late)} late</Trans>);
  const order = { bad: 0, ask: 1, warn: 2 };
  const all = [failures, letters, tenants, outbox, waiting];
  const broke = [...all, node, pools].find((query) => query.error && !query.data);
  return {
    troubles: found.sort((a, b) => order[a.tone] - order[b.tone]),
    pending: failures.isPending || letters.isPending,
    error: broke?.error,
    retry: () => void broke?.refetch(),
  };
}

const MINUTE_MS = 60_000;

/** From the readings of about the last minute. */
function numbers() {
  const last = readings.at(-1);
  const first = last && (readings.find((reading) => reading.at >= last.at - MINUTE_MS) ?? readings[0]);
  if (!last || !first) return {};
  const seconds = (last.at - first.at) / 1000;
  const lateness = first === last ? last.lateness : between(first.lateness, last.lateness);
  return {
    rate: seconds > 0 ? (last.fires - first.fires) / seconds : undefined,
    middle: quantile(lateness, 0.5),
    late: quantile(lateness, 0.99),
    running: last.values.campanile_attempts_running,
    retrying: last.values.retry_queue_depth,
    waiting: last.values.dispatch_queue_lag,
  };
}

function Numbers() {
  const { t } = useLingui();
  const metrics = useQuery(metricsQuery);
  const node = useQuery(nodeQuery);
  const { rate, middle, late, running, waiting, retrying } = numbers();
  const rates = useMemo(() => pairs((a, b) => (b.fires - a.fires) / ((b.at - a.at) / 1000)), [metrics.data]);
  const lates = useMemo(() => pairs((a, b) => quantile(between(a.lateness, b.lateness), 0.99) ?? 0), [metrics.data]);
  const ends = useMemo(() => pairs((_, b) => b.values.campanile_attempts_running ?? 0), [metrics.data]);
  const known = (value: number | undefined, show: (value: number) => string) =>
    value === undefined ? "–" : show(value);
  if (metrics.error && metrics.data === undefined) return null;
  return (
    <section aria-label={t`Numbers of this node`} className="mb-4 grid grid-cols-2 gap-3 md:grid-cols-3 xl:grid-cols-6">
      <Tile
        name={t`Fires a second`}
        value={known(rate, (value) => amount(Math.round(value * 10) / 10))}
        to="/jobs"
        spark={rates}
      />
      <Tile
        name={t`Late, 99 of 100 at most`}
        value={known(late, duration)}
        more={middle === undefined ? undefined : t`half at most ${duration(middle)}`}
        to="/failures"
        spark={lates}
        bad={(late ?? 0) > LATE_MS}
      />
      <Tile name={t`Bodies running`} value={known(running, amount)} to="/executors" spark={ends} />
      <Tile
        name={t`Runs waiting`}
        value={known(waiting, amount)}
        more={retrying ? t`${amount(retrying)} wait to retry` : undefined}
        to="/executors"
      />
      <Tile name={t`Jobs`} value={known(node.data?.jobs, amount)} to="/jobs" />
      <Tile
        name={t`Executors`}
        value={known(node.data?.executors, amount)}
        to="/executors"
        bad={node.data?.executors === 0}
      />
    </section>
  );
}

function pairs(of: (a: (typeof readings)[number], b: (typeof readings)[number]) => number): number[] {
  return readings.slice(1).map((reading, index) => of(readings[index]!, reading));
}

function Tile({
  name,
  value,
  more,
  to,
  spark,
  bad = false,
}: {
  name: string;
  value: string;
  more?: string;
  to: string;
  spark?: number[];
  bad?: boolean;
}) {
  return (
    <Link to={to} className="card group relative flex min-h-24 flex-col overflow-hidden p-3.5 hover:border-strong">
      <span className="text-[0.84rem] text-soft">{name}</span>
      <span className={`mt-0.5 text-2xl font-semibold tracking-tight tabular-nums ${bad ? TONES.bad.text : ""}`}>
        {value}
      </span>
      {more && <span className="text-[0.82rem] text-faint">{more}</span>}
      {spark && spark.length > 1 && <Spark values={spark} />}
    </Link>
  );
}

function Spark({ values }: { values: number[] }) {
  const most = Math.max(...values, Number.EPSILON);
  const points = values.map(
    (value, index) => `${((100 * index) / (values.length - 1)).toFixed(2)},${(24 - (20 * value) / most).toFixed(2)}`,
  );
  return (
    <svg aria-hidden viewBox="0 0 100 26" preserveAspectRatio="none" className="mt-auto -mb-1 h-7 w-full text-accent">
      <polygon points={`0,26 ${points.join(" ")} 100,26`} className="fill-accent opacity-15" />
      <polyline
        points={points.join(" ")}
        fill="none"
        stroke="currentColor"
        strokeWidth="1.5"
        vectorEffect="non-scaling-stroke"
      />
    </svg>
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
                <span className="w-10 shrink-0 text-right font-semibold tabular-nums">
                  {amount(group.items.length)}
                </span>
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
const HOUR_MS = 3_600_000;

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
      role="img"
      aria-label={t`Failures by hour: ${counts.join(", ")}`}
      className="flex h-14 items-end gap-[3px] border-b border-line px-4 pt-3"
    >
      {counts.map((count, index) => (
        <span
          key={index}
          title={t`${absolute(end - (HOURS - index) * HOUR_MS).slice(11, 16)}: ${count} failed`}
          className="flex h-full flex-1 items-end"
        >
          <span
            className={`w-full rounded-t-[2px] ${count > 0 ? "bg-bad/75" : "bg-line"}`}
            style={{ height: `${count > 0 ? Math.max(8, (100 * count) / most) : 4}%` }}
          />
        </span>
      ))}
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
