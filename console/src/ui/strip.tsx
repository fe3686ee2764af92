// The newest runs as bars: how long each took, and how late it began. Each is a link to its run.
import { Trans, useLingui } from "@lingui/react/macro";
import { Link } from "@tanstack/react-router";
import type { Run } from "../api/client";
import { absolute, duration, useNow } from "../lib/time";
import { lookOf, TONES } from "./state";

const MOST = 60;
const HIGH = 64;
const LOW = 3;

/** Heights on a logarithmic scale, so that one slow run does not flatten the others. */
export function height(ms: number, most: number): number {
  if (ms <= 0) return LOW;
  return Math.max(LOW, (HIGH * Math.log1p(ms)) / Math.log1p(Math.max(most, 1)));
}

export const stateOf = (run: { state: string; stopping?: unknown }) =>
  run.state === "RUNNING" && run.stopping ? "STOPPING" : run.state;

export function RunStrip({ runs }: { runs: Run[] }) {
  const { t, i18n } = useLingui();
  const now = useNow();
  const shown = runs.slice(0, MOST).reverse();
  const took = (run: Run) =>
    run.startedAt ? (run.endedAt ? Date.parse(run.endedAt) : now) - Date.parse(run.startedAt) : 0;
  const late = (run: Run) =>
    run.startedAt && run.logicalTime ? Math.max(0, Date.parse(run.startedAt) - Date.parse(run.logicalTime)) : 0;
  const mostTook = Math.max(...shown.map(took), 1);
  const mostLate = Math.max(...shown.map(late), 1);
  return (
    <div className="grid gap-4 lg:grid-cols-2">
      <Bars title={t`How long runs took`} most={duration(mostTook)} count={shown.length}>
        {shown.map((run) => {
          const { text, tone } = lookOf(stateOf(run));
          return (
            <Bar
              key={run.runId}
              runId={run.runId}
              high={height(took(run), mostTook)}
              colour={TONES[tone].fill}
              label={`${i18n._(text)}, ${duration(took(run))}, ${absolute(Date.parse(run.logicalTime ?? run.createdAt))}`}
            />
          );
        })}
      </Bars>
      <Bars title={t`How late they began`} most={duration(mostLate)} count={shown.length}>
        {shown.map((run) => (
          <Bar
            key={run.runId}
            runId={run.runId}
            high={run.startedAt ? height(late(run), Math.max(mostLate, 1000)) : LOW}
            colour={late(run) > 2000 ? "fill-warn" : "fill-strong"}
            label={
              run.startedAt
                ? t`${duration(late(run))} late, ${absolute(Date.parse(run.logicalTime ?? run.createdAt))}`
                : t`not begun`
            }
          />
        ))}
      </Bars>
      {runs.length === 0 && (
        <p className="text-soft">
          <Trans>No run yet.</Trans>
        </p>
      )}
    </div>
  );
}

function Bars({
  title,
  most,
  count,
  children,
}: {
  title: string;
  most: string;
  count: number;
  children: React.ReactNode;
}) {
  if (count === 0) return null;
  return (
    <figure className="min-w-0">
      <figcaption className="mb-1.5 flex justify-between text-[0.84rem] text-soft">
        <span>{title}</span>
        <span className="text-faint tabular-nums">
          <Trans>at most {most}</Trans>
        </span>
      </figcaption>
      <div className="flex h-[68px] items-end gap-px overflow-hidden border-b border-line">{children}</div>
    </figure>
  );
}

function Bar({ runId, high, colour, label }: { runId: number; high: number; colour: string; label: string }) {
  return (
    <Link
      to="/runs/$runId"
      params={{ runId }}
      title={label}
      aria-label={label}
      preload={false}
      className="group flex h-full max-w-4 min-w-[3px] flex-1 items-end rounded-sm hover:bg-sunken focus-visible:bg-sunken"
    >
      <svg aria-hidden className="w-full rounded-t-[2px]" height={high} preserveAspectRatio="none" viewBox="0 0 1 1">
        <rect width="1" height="1" className={`${colour} opacity-75 group-hover:opacity-100`} />
      </svg>
    </Link>
  );
}
