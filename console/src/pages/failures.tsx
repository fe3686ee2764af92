import { Plural, Trans, useLingui } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { CircleCheck, RotateCcw } from "lucide-react";
import { useMemo, useState } from "react";
import { retryRun } from "../api/actions";
import type { Run } from "../api/client";
import { failuresQuery, LARGEST_PAGE } from "../api/queries";
import { byCause, failureCause, type Group } from "../lib/cause";
import { amount } from "../lib/time";
import { BulkDialog } from "../ui/bulk";
import { Button } from "../ui/button";
import { CauseList } from "../ui/causes";
import { Failure, Loading, Nothing } from "../ui/feedback";
import { JobName } from "../ui/job-name";
import { PageHead } from "../ui/page";
import { RunLink } from "../ui/run-cells";
import { State, Tag } from "../ui/state";
import { Table, type Column } from "../ui/table";
import { TenantFilter } from "../ui/tenant-filter";
import { Span, Time } from "../ui/time";

export function Failures() {
  const { t } = useLingui();
  const { tenant, cause } = useSearch({ from: "/failures" });
  const navigate = useNavigate({ from: "/failures" });
  const failures = useQuery(failuresQuery(tenant));
  const groups = useMemo(() => byCause(failures.data?.items ?? [], failureCause), [failures.data]);
  const [asked, setAsked] = useState<Group<Run>>();
  const group = groups.find((one) => one.cause === cause);
  const columns: Column<Run>[] = [
    { name: "state", head: t`State`, bare: true, cell: (run) => <State of={run.state} /> },
    {
      name: "run",
      head: t`Run`,
      cell: (run) => <RunLink runId={run.runId} />,
    },
    { name: "job", head: t`Job`, cell: (run) => <JobName jobId={run.jobId} /> },
    { name: "ended", head: t`Ended`, cell: (run) => <Time at={run.endedAt} /> },
    { name: "took", head: t`Took`, from: "md", cell: (run) => <Span from={run.startedAt} to={run.endedAt} /> },
    { name: "attempts", head: t`Attempts`, num: true, from: "lg", cell: (run) => run.attemptCount },
    {
      name: "error",
      head: t`Error`,
      main: true,
      bare: true,
      cell: (run) => (
        <span className="hostile line-clamp-2 text-bad">
          {run.deadLetter && <Tag tone="bad">{t`dead letter`}</Tag>} {run.lastError}
        </span>
      ),
    },
  ];
  return (
    <>
      <PageHead
        name={t`Failures`}
        title={<Trans>Failures</Trans>}
        below={
          failures.data &&
          (failures.data.nextPageToken ? (
            <Trans>The newest {amount(LARGEST_PAGE)} failed runs, by cause.</Trans>
          ) : (
            <Trans>All failed runs that are kept, by cause.</Trans>
          ))
        }
      >
        <TenantFilter
          value={tenant}
          onChange={(chosen) => void navigate({ search: { tenant: chosen }, replace: true })}
        />
      </PageHead>
      {failures.error && (
        <div className="mb-3">
          <Failure error={failures.error} retry={() => void failures.refetch()} />
        </div>
      )}
      {failures.isPending ? (
        <div className="card">
          <Loading />
        </div>
      ) : groups.length === 0 ? (
        <div className="card">
          <Nothing icon={CircleCheck} title={<Trans>No run failed.</Trans>} />
        </div>
      ) : (
        <>
          <CauseList
            groups={groups}
            chosen={group?.cause}
            onChoose={(chosen) => void navigate({ search: { tenant, cause: chosen }, resetScroll: false })}
            newest={(run) => run.endedAt ?? run.createdAt}
            actions={(one) => (
              <Button size="small" onClick={() => setAsked(one)}>
                <RotateCcw aria-hidden className="size-3.5" />{" "}
                <Plural value={one.items.length} one="Retry it" other="Retry all #" />
              </Button>
            )}
          />
          {group && (
            <div className="card overflow-hidden">
              <Table
                label={t`Runs of this cause`}
                columns={columns}
                rows={group.items}
                rowKey={(run) => String(run.runId)}
                onOpen={(run) => void navigate({ to: "/runs/$runId", params: { runId: run.runId } })}
              />
            </div>
          )}
        </>
      )}
      {asked && (
        <BulkDialog
          action={{
            title: t`Retry runs of one cause`,
            text: t`Each gets a new generation with all its attempts.`,
            button: t`Retry`,
            fits: () => true,
            call: (run, reason) => retryRun(run.runId, reason),
          }}
          find={async () => asked.items}
          name={(run) => String(run.runId)}
          onClose={() => setAsked(undefined)}
          onDone={() => {}}
        />
      )}
    </>
  );
}
