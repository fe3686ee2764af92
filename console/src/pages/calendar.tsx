// What became of every due instant: a picture in which gaps are seen at once.
import { Plural, Trans, useLingui } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { CalendarDays, CalendarSync } from "lucide-react";
import { useMemo, useState } from "react";
import { canBackfill } from "../api/backfills";
import { api, good, type Job, type LedgerEntry } from "../api/client";
import { LARGEST_PAGE } from "../api/queries";
import { emptyCells, fill, grainFor, GRAINS, worst, WORST, type Cell, type Grain } from "../lib/ledger";
import { zoneOf } from "../lib/schedule";
import { absolute, amount, nodeNow } from "../lib/time";
import { Button } from "../ui/button";
import { Failure, Loading, Nothing } from "../ui/feedback";
import { Section } from "../ui/page";
import { lookOf, State } from "../ui/state";
import { BackfillDialog, type Stretch } from "./backfill-dialog";

/** Pages of the ledger that are read for one picture, at most. */
const MOST_PAGES = 8;

/** Milliseconds between two due instants, as far as the job tells. */
function everyMs(job: Job): number | undefined {
  const { trigger } = job;
  if (trigger.type === "FIXED_RATE" || trigger.type === "FIXED_DELAY") return trigger.everySec * 1000;
  if (trigger.type !== "CRON" || job.runCount < 2) return trigger.type === "CRON" ? 86_400_000 : undefined;
  const lived = Math.max(60_000, Date.parse(job.lastRunAt ?? job.createdAt) - Date.parse(job.createdAt));
  return lived / Math.max(1, job.runCount);
}

const COLOURS: Record<LedgerEntry["outcome"], string> = {
  // What is well is quiet, so that the rest is seen.
  FIRED: "bg-good/35",
  FIRED_LATE: "bg-warn",
  COALESCED: "bg-busy",
  SKIPPED: "bg-sunken hatch",
  MISSED: "bg-bad",
  DST_SKIPPED: "bg-sunken hatch",
};

const INKS: Record<LedgerEntry["outcome"], string> = {
  FIRED: "text-ink",
  FIRED_LATE: "text-canvas",
  COALESCED: "text-canvas",
  SKIPPED: "text-ink",
  MISSED: "text-canvas",
  DST_SKIPPED: "text-ink",
};

export default function Calendar({ job }: { job: Job }) {
  const { t, i18n } = useLingui();
  const [grain, setGrain] = useState<Grain>(() => grainFor(everyMs(job)));
  const [back, setBack] = useState(0);
  const [chosen, setChosen] = useState<number>();
  const zone = zoneOf(job.trigger) ?? "UTC";
  // One instant for the whole visit, moved by whole pictures.
  const [arrived] = useState(nodeNow);
  const { cellMs, cells: count, columns } = GRAINS[grain];
  const frame = useMemo(
    () => emptyCells(arrived - back * count * cellMs, grain, zone),
    [arrived, back, count, cellMs, grain, zone],
  );
  const from = frame[0]!.from;
  const to = frame.at(-1)!.to - 1;
  const ledger = useQuery({
    queryKey: ["ledger", job.jobId, from, to],
    queryFn: async ({ signal }) => {
      const entries: LedgerEntry[] = [];
      let next = new Date(from).toISOString();
      for (let page = 0; page < MOST_PAGES; page += 1) {
        const query = { from: next, to: new Date(to).toISOString(), pageSize: LARGEST_PAGE };
        const read = await good(
          api.GET("/api/v1/jobs/{jobId}/ledger", { signal, params: { path: { jobId: job.jobId }, query } }),
        );
        entries.push(...read.items);
        next = read.to;
        if (!read.truncated) return { entries, whole: true, to: read.to };
      }
      return { entries, whole: false, to: next };
    },
    placeholderData: (was) => was,
    refetchInterval: back === 0 ? 15_000 : false,
  });
  const cells = useMemo(() => {
    const filled = frame.map((cell): Cell => ({ ...cell, counts: {}, entries: [], total: 0 }));
    fill(filled, ledger.data?.entries ?? []);
    return filled;
  }, [frame, ledger.data]);
  const picked = cells.find((cell) => cell.from === chosen);
  const totals = WORST.map(
    (outcome) => [outcome, cells.reduce((sum, cell) => sum + (cell.counts[outcome] ?? 0), 0)] as const,
  ).filter(([, n]) => n > 0);
  const move = (by: number) => {
    setBack((was) => Math.max(0, was + by));
    setChosen(undefined);
  };
  const rows = useMemo(() => rowsOf(cells, grain, zone, columns), [cells, grain, zone, columns]);
  const grains: [Grain, string][] = [
    ["minute", t`minutes`],
    ["hour", t`hours`],
    ["day", t`days`],
  ];
  return (
    <Section
      title={<Trans>What became of every due instant</Trans>}
      actions={
        <>
          <div role="group" aria-label={t`Size of a cell`} className="flex">
            {grains.map(([name, text]) => (
              <Button
                key={name}
                size="small"
                kind={grain === name ? "plain" : "ghost"}
                aria-pressed={grain === name}
                onClick={() => {
                  setGrain(name);
                  setBack(0);
                  setChosen(undefined);
                }}
              >
                {text}
              </Button>
            ))}
          </div>
          <Button size="small" onClick={() => move(1)}>
            <Trans>Earlier</Trans>
          </Button>
          <Button size="small" onClick={() => move(-1)} disabled={back === 0}>
            <Trans>Later</Trans>
          </Button>
        </>
      }
    >
      {ledger.error ? (
        <Failure error={ledger.error} retry={() => void ledger.refetch()} />
      ) : ledger.isPending ? (
        <Loading />
      ) : (
        <>
          <p className="mb-3 text-[0.86rem] text-soft tabular-nums">
            {absolute(from, zone)} – {absolute(to + 1, zone)} ({zone})
          </p>
          {!ledger.data.whole && (
            <p role="status" className="mb-3 rounded-lg bg-warn-wash p-2.5 text-[0.9rem]">
              <Trans>
                So many instants were due that the picture ends at {absolute(Date.parse(ledger.data.to), zone)}. Choose
                smaller cells.
              </Trans>
            </p>
          )}
          {totals.length === 0 && !canBackfill(job) ? (
            <Nothing icon={CalendarDays} title={<Trans>Nothing was due in this time.</Trans>} />
          ) : (
            <>
              <ul className="mb-3 flex flex-wrap gap-x-4 gap-y-1">
                {totals.map(([outcome, n]) => (
                  <li key={outcome} className="flex items-center gap-1.5">
                    <span aria-hidden className={`size-3 rounded-[3px] ${COLOURS[outcome]}`} />
                    {i18n._(lookOf(outcome).text)} <strong className="tabular-nums">{amount(n)}</strong>
                  </li>
                ))}
              </ul>
              <div className="overflow-x-auto pb-1">
                <div role="grid" aria-label={t`Calendar`} className="w-max min-w-full space-y-[3px]">
                  {rows.map((row) => (
                    <div key={row.label} role="row" className="flex items-center gap-[3px]">
                      <span role="rowheader" className="w-24 shrink-0 text-[0.8rem] text-faint tabular-nums">
                        {row.label}
                      </span>
                      {row.cells.map((cell, index) => (
                        <span
                          key={cell?.from ?? `gap-${index}`}
                          role="gridcell"
                          aria-selected={cell !== undefined && cell.from === chosen}
                          className="max-w-12 min-w-[9px] flex-1"
                        >
                          {cell && (
                            <Square
                              cell={cell}
                              grain={grain}
                              zone={zone}
                              before={cell.to <= Date.parse(job.createdAt)}
                              can={cell.total > 0 || (canBackfill(job) && cell.from <= arrived)}
                              on={cell.from === chosen}
                              onChoose={() => setChosen(cell.from === chosen ? undefined : cell.from)}
                            />
                          )}
                        </span>
                      ))}
                    </div>
                  ))}
                </div>
              </div>
            </>
          )}
          {picked && <Picked job={job} cell={picked} grain={grain} zone={zone} />}
        </>
      )}
    </Section>
  );
}

const hourOf = (ms: number, zone: string) => Number(absolute(ms, zone).slice(11, 13));
const dayOf = (ms: number, zone: string) => Number(absolute(ms, zone).slice(8, 10));
const nameOf = (cell: Cell, grain: Grain, zone: string) =>
  absolute(cell.from, zone).slice(0, grain === "day" ? 10 : 16);

/** A row is an hour of minutes, a day of hours or a week of days; a week begins on Monday. */
function rowsOf(
  cells: Cell[],
  grain: Grain,
  zone: string,
  columns: number,
): { label: string; cells: (Cell | undefined)[] }[] {
  const first = cells[0]!.from;
  const lead =
    grain === "day"
      ? (new Date(`${absolute(first, zone).slice(0, 10)}T00:00:00Z`).getUTCDay() + 6) % 7
      : grain === "hour"
        ? hourOf(first, zone)
        : new Date(first).getUTCMinutes();
  const all: (Cell | undefined)[] = [...Array.from({ length: lead }, () => undefined), ...cells];
  while (all.length % columns !== 0) all.push(undefined);
  return Array.from({ length: all.length / columns }, (_, row) => {
    const part = all.slice(row * columns, (row + 1) * columns);
    const at = part.find((cell) => cell !== undefined)?.from ?? first;
    const label = grain === "minute" ? `${absolute(at, zone).slice(5, 13)}:00` : absolute(at, zone).slice(0, 10);
    return { label, cells: part };
  });
}

function Square({
  cell,
  grain,
  zone,
  before,
  can,
  on,
  onChoose,
}: {
  cell: Cell;
  grain: Grain;
  zone: string;
  before: boolean;
  /** There is something to see or to do. */
  can: boolean;
  on: boolean;
  onChoose: () => void;
}) {
  const { i18n } = useLingui();
  const outcome = worst(cell);
  const counts = WORST.filter((name) => cell.counts[name]).map(
    (name) => `${i18n._(lookOf(name).text)} ${cell.counts[name]}`,
  );
  const label = [nameOf(cell, grain, zone), ...counts].join(", ");
  return (
    <button
      type="button"
      disabled={!can}
      title={label}
      aria-label={label}
      aria-expanded={on}
      onClick={onChoose}
      className={`block h-7 w-full rounded-[4px] text-[0.76rem] leading-none tabular-nums ${outcome ? COLOURS[outcome] : before ? "bg-sunken" : "border border-line"} ${on ? "ring-2 ring-ink" : ""}`}
    >
      {grain === "day" && <span className={outcome ? INKS[outcome] : "text-soft"}>{dayOf(cell.from, zone)}</span>}
    </button>
  );
}

const SHOWN = 200;

/** Reasons for which a job was not to run. */
const NOT_TO_RUN = ["WINDOW", "BLACKOUT", "CALENDAR", "DELETED"];

/** What a backfill in the mode MISSING runs, as docs/guides/backfill.md lists it. */
const isMissing = ({ outcome, reason }: LedgerEntry) =>
  outcome === "MISSED" || (outcome === "SKIPPED" && !NOT_TO_RUN.includes(reason ?? ""));

function Picked({ job, cell, grain, zone }: { job: Job; cell: Cell; grain: Grain; zone: string }) {
  const { t } = useLingui();
  const [asked, setAsked] = useState<Stretch>();
  const cellName: Record<Grain, string> = {
    minute: t`Backfill this minute`,
    hour: t`Backfill this hour`,
    day: t`Backfill this day`,
  };
  const offers = canBackfill(job);
  const reasons: Record<string, string> = {
    PAUSED: t`the job was paused`,
    TENANT_PAUSED: t`the tenant was paused`,
    SYSTEM_PAUSED: t`the system was paused`,
    RUN_ACTIVE: t`a run was active`,
    ONE_QUEUED: t`one was waiting already`,
    QUEUE_FULL: t`too many were waiting`,
    MISFIRE: t`later than the misfire threshold`,
    CATCH_UP_CAP: t`more than maxCatchUp`,
    QUARANTINED: t`the job was quarantined`,
    WINDOW: t`outside its window`,
    DELETED: t`the job was deleted`,
    EDITED: t`the schedule was edited`,
    RESTORED: t`between a backup and its restore`,
    BLACKOUT: t`in a blackout`,
    CALENDAR: t`on a day that its calendar excludes`,
    NO_CALENDAR: t`its calendar did not know the day`,
  };
  return (
    <div className="appear mt-4 border-t border-line pt-3">
      <div className="mb-2 flex flex-wrap items-center justify-between gap-2">
        <h3 className="font-semibold tabular-nums">
          {absolute(cell.from, zone)} – {absolute(cell.to, zone)}
        </h3>
        {offers && (
          <Button
            size="small"
            onClick={() => setAsked({ from: cell.from, to: Math.min(cell.to - 1, Math.floor(nodeNow())) })}
          >
            <CalendarSync aria-hidden className="size-3.5" /> {cellName[grain]}
          </Button>
        )}
      </div>
      {cell.entries.length === 0 && (
        <p className="text-soft">
          {cell.to <= Date.parse(job.createdAt) ? (
            <Trans>The job did not exist yet. A backfill runs what its schedule has in this time.</Trans>
          ) : (
            <Trans>The ledger has nothing of this time.</Trans>
          )}
        </p>
      )}
      <ul className="max-h-80 divide-y divide-line overflow-auto">
        {cell.entries.slice(0, SHOWN).map((entry) => (
          <li key={entry.logicalTime} className="flex flex-wrap items-center gap-x-3 gap-y-1 py-1.5">
            <State of={entry.outcome} />
            <span className="tabular-nums">
              {absolute(Date.parse(entry.logicalTime), zone)}
              {entry.until && ` – ${absolute(Date.parse(entry.until), zone)}`}
            </span>
            {entry.count > 1 && (
              <span className="text-soft">
                <Trans>{amount(entry.count)} instants</Trans>
              </span>
            )}
            {entry.reason && <span className="text-soft">{reasons[entry.reason] ?? entry.reason}</span>}
            {entry.runId && (
              <Link to="/runs/$runId" params={{ runId: entry.runId }} className="link">
                <Trans>run {entry.runId}</Trans>
              </Link>
            )}
            {offers && isMissing(entry) && (
              <Button
                size="small"
                kind="ghost"
                onClick={() =>
                  setAsked({
                    from: Date.parse(entry.logicalTime),
                    to: Date.parse(entry.until ?? entry.logicalTime),
                  })
                }
              >
                <CalendarSync aria-hidden className="size-3.5" />{" "}
                <Plural value={entry.count} one="Backfill it" other="Backfill this stretch" />
              </Button>
            )}
          </li>
        ))}
      </ul>
      {cell.entries.length > SHOWN && (
        <p className="mt-1 text-[0.86rem] text-faint">
          <Trans>The first {SHOWN} are listed.</Trans>
        </p>
      )}
      {asked && <BackfillDialog job={job} stretch={asked} onClose={() => setAsked(undefined)} />}
    </div>
  );
}
