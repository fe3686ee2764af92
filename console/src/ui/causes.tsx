import { Plural, Trans, useLingui } from "@lingui/react/macro";
import { Link } from "@tanstack/react-router";
import { ChevronRight } from "lucide-react";
import type { ReactNode } from "react";
import type { Group } from "../lib/cause";
import { amount } from "../lib/time";
import { JobName } from "./job-name";
import { Time } from "./time";

interface Props<T> {
  groups: Group<T>[];
  chosen: string | undefined;
  onChoose: (cause: string | undefined) => void;
  newest: (item: T) => string;
  actions: (group: Group<T>) => ReactNode;
}

const JOBS = 3;

/** Failures by cause: how many, which jobs, when last. */
export function CauseList<T>({ groups, chosen, onChoose, newest, actions }: Props<T>) {
  const { t } = useLingui();
  const most = Math.max(...groups.map((group) => group.items.length));
  return (
    <ul className="mb-4 space-y-2" aria-label={t`Causes`}>
      {groups.map((group) => {
        const on = group.cause === chosen;
        const first = group.items[0]!;
        return (
          <li key={group.cause} className={`card overflow-hidden ${on ? "border-accent" : ""}`}>
            <CauseRow
              count={group.items.length}
              most={most}
              on={on}
              onChoose={() => onChoose(on ? undefined : group.cause)}
              text={group.sample}
              about={
                <>
                  <Plural value={group.jobs.size} one="# job" other="# jobs" />, <Trans>the newest</Trans>{" "}
                  <Time at={newest(first)} />
                </>
              }
            >
              <span className="flex flex-wrap gap-x-3 text-[0.9rem] max-lg:w-full max-lg:pl-20">
                {[...group.jobs].slice(0, JOBS).map(([jobId, name]) =>
                  name === String(jobId) ? (
                    <JobName key={jobId} jobId={jobId} ask />
                  ) : (
                    <Link key={jobId} to="/jobs/$jobId" params={{ jobId }} className="link hostile">
                      {name}
                    </Link>
                  ),
                )}
                {group.jobs.size > JOBS && <span className="text-faint">+{group.jobs.size - JOBS}</span>}
              </span>
              <span className="flex gap-2 max-lg:pl-20">{actions(group)}</span>
            </CauseRow>
          </li>
        );
      })}
    </ul>
  );
}

/** One cause: how often it is there, its text, what is known about it, and what can be done. */
export function CauseRow({
  count,
  most,
  on,
  onChoose,
  text,
  about,
  children,
}: {
  count: number;
  /** Of the most frequent cause. */
  most: number;
  on: boolean;
  onChoose: () => void;
  text: string;
  about: ReactNode;
  children: ReactNode;
}) {
  return (
    <div className="flex flex-wrap items-center gap-x-4 gap-y-2 p-3.5">
      <span className="flex w-16 shrink-0 flex-col gap-1 text-right">
        <span className="text-lg leading-none font-semibold tabular-nums">{amount(count)}</span>
        <span
          aria-hidden
          className="ml-auto h-1 rounded-full bg-bad"
          style={{ width: `${Math.max(6, (100 * count) / most)}%` }}
        />
      </span>
      <button
        type="button"
        aria-expanded={on}
        onClick={onChoose}
        className="flex min-w-52 flex-1 items-start gap-1.5 text-left"
      >
        <ChevronRight
          aria-hidden
          className={`mt-0.5 size-4 shrink-0 text-faint transition-transform ${on ? "rotate-90" : ""}`}
        />
        <span className="min-w-0">
          <span className="hostile line-clamp-2 font-medium">{text}</span>
          <span className="block text-[0.86rem] text-soft">{about}</span>
        </span>
      </button>
      {children}
    </div>
  );
}
