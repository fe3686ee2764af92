// The numbers of the node that answers, from its metrics.
import { useLingui } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { metricsQuery, nodeQuery, readings, WAITING } from "../api/queries";
import { between, quantile } from "../lib/metrics";
import { amount, duration } from "../lib/time";
import { TONES } from "../ui/state";

/** Later than this is said to be late. */
export const LATE_MS = 2_000;
const MINUTE_MS = 60_000;

/** From the readings of about the last minute. */
export function numbers() {
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

export function Numbers() {
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
        to="/runs"
        search={{ source: "SCHEDULE" }}
        spark={rates}
      />
      <Tile
        name={t`Late, 99 of 100 at most`}
        value={known(late, duration)}
        more={middle === undefined ? undefined : t`half at most ${duration(middle)}`}
        to="/runs"
        search={{ source: "SCHEDULE" }}
        spark={lates}
        bad={(late ?? 0) > LATE_MS}
      />
      <Tile
        name={t`Bodies running`}
        value={known(running, amount)}
        to="/runs"
        search={{ state: "RUNNING" }}
        spark={ends}
      />
      <Tile
        name={t`Runs waiting`}
        value={known(waiting, amount)}
        more={retrying ? t`${amount(retrying)} wait to retry` : undefined}
        to="/runs"
        search={{ state: WAITING }}
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
  search,
  spark,
  bad = false,
}: {
  name: string;
  value: string;
  more?: string;
  to: string;
  search?: Record<string, string>;
  spark?: number[];
  bad?: boolean;
}) {
  return (
    <Link
      to={to}
      search={search}
      className="card group relative flex min-h-24 flex-col overflow-hidden p-3.5 hover:border-strong"
    >
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
