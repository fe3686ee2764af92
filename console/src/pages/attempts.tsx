import { useLingui } from "@lingui/react/macro";
import { Link } from "@tanstack/react-router";
import type { Attempt, Run } from "../api/client";
import { bytes, duration } from "../lib/time";
import { State, Tag } from "../ui/state";
import { Table, type Column } from "../ui/table";
import { Span, Time } from "../ui/time";

/** Every try of a run. */
export function Attempts({ run, shown }: { run: Run; shown: number | undefined }) {
  const { t } = useLingui();
  const columns: Column<Attempt>[] = [
    {
      name: "n",
      head: t`Attempt`,
      cell: (attempt) => (
        <Link
          to="/runs/$runId"
          params={{ runId: run.runId }}
          search={{ attempt: attempt.attempt }}
          replace
          resetScroll={false}
          className="link font-medium"
          aria-current={attempt.attempt === shown ? "true" : undefined}
        >
          {attempt.generation > 1 ? `${attempt.generation}.${attempt.attempt}` : attempt.attempt}
        </Link>
      ),
    },
    { name: "state", head: t`State`, bare: true, cell: (attempt) => <State of={attempt.state} /> },
    { name: "began", head: t`Began`, cell: (attempt) => <Time at={attempt.startedAt} /> },
    { name: "took", head: t`Took`, cell: (attempt) => <Span from={attempt.startedAt} to={attempt.endedAt} /> },
    { name: "executor", head: t`Executor`, cell: (attempt) => <span className="hostile">{attempt.executorId}</span> },
    {
      name: "use",
      head: t`CPU, memory`,
      from: "md",
      cell: (attempt) => (
        <span className="whitespace-nowrap text-soft tabular-nums">
          {attempt.cpuMs == null ? "–" : duration(attempt.cpuMs)}
          {attempt.maxRssKb != null && ` · ${bytes(attempt.maxRssKb * 1024)}`}
        </span>
      ),
    },
    {
      name: "error",
      head: t`Error`,
      main: true,
      bare: true,
      cell: (attempt) =>
        (attempt.errorCode || attempt.errorMessage) && (
          <span className="hostile">
            {attempt.errorCode && <Tag tone="bad">{attempt.errorCode}</Tag>} {attempt.errorMessage}
            {attempt.permanent && <span className="text-soft"> · {t`no further attempt would succeed`}</span>}
          </span>
        ),
    },
  ];
  return (
    <Table
      label={t`Attempts`}
      columns={columns}
      rows={run.attempts}
      rowKey={(attempt) => `${attempt.generation}-${attempt.attempt}`}
      keyboard={false}
    />
  );
}
