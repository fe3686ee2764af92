import { Plural, Trans, useLingui } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Inbox, Trash2 } from "lucide-react";
import { useMemo, useState } from "react";
import { discard, redrive } from "../api/actions";
import type { DeadLetter } from "../api/client";
import { deadLettersQuery, LARGEST_PAGE } from "../api/queries";
import { byCause, letterCause, type Group } from "../lib/cause";
import { amount } from "../lib/time";
import { BulkDialog } from "../ui/bulk";
import { Button } from "../ui/button";
import { CauseList } from "../ui/causes";
import { Failure, Loading, Nothing } from "../ui/feedback";
import { PageHead } from "../ui/page";
import { Table, type Column } from "../ui/table";
import { TenantFilter } from "../ui/tenant-filter";
import { Time } from "../ui/time";

export function DeadLetters() {
  const { t } = useLingui();
  const { tenant, cause } = useSearch({ from: "/dead-letters" });
  const navigate = useNavigate({ from: "/dead-letters" });
  const letters = useQuery(deadLettersQuery(tenant));
  const groups = useMemo(() => byCause(letters.data?.items ?? [], letterCause), [letters.data]);
  const [asked, setAsked] = useState<{ what: "redrive" | "discard"; group: Group<DeadLetter> }>();
  const group = groups.find((one) => one.cause === cause);
  const columns: Column<DeadLetter>[] = [
    {
      name: "run",
      head: t`Run`,
      cell: (letter) => (
        <Link to="/runs/$runId" params={{ runId: letter.runId }} className="link tabular-nums">
          {letter.runId}
        </Link>
      ),
    },
    {
      name: "job",
      head: t`Job`,
      cell: (letter) => (
        <Link to="/jobs/$jobId" params={{ jobId: letter.jobId }} className="link hostile">
          {letter.jobName ?? letter.jobId}
        </Link>
      ),
    },
    {
      name: "tenant",
      head: t`Tenant`,
      from: "md",
      cell: (letter) => <span className="hostile">{letter.tenantId}</span>,
    },
    { name: "at", head: t`When`, cell: (letter) => <Time at={letter.at} /> },
    { name: "attempts", head: t`Attempts`, num: true, from: "md", cell: (letter) => letter.attemptCount },
    {
      name: "reason",
      head: t`Why`,
      main: true,
      bare: true,
      cell: (letter) => <span className="hostile line-clamp-2">{letter.reason}</span>,
    },
  ];
  const actions = {
    redrive: {
      title: t`Redrive dead letters`,
      text: t`Each run leaves the dead letters and runs again, with all its attempts.`,
      button: t`Redrive`,
      fits: () => true,
      call: (letter: DeadLetter, reason?: string) => redrive(letter.runId, reason),
    },
    discard: {
      title: t`Discard dead letters`,
      text: t`They leave this list and do not run again. Runs and logs stay.`,
      button: t`Discard`,
      danger: true,
      fits: () => true,
      call: (letter: DeadLetter, reason?: string) => discard(letter.runId, reason),
    },
  };
  return (
    <>
      <PageHead
        name={t`Dead letters`}
        title={<Trans>Dead letters</Trans>}
        below={
          letters.data?.nextPageToken ? (
            <Trans>The newest {amount(LARGEST_PAGE)}, by cause. More follow when these are dealt with.</Trans>
          ) : (
            <Trans>Runs that failed for good, by cause. Repair the cause, then redrive the group.</Trans>
          )
        }
      >
        <TenantFilter
          value={tenant}
          onChange={(chosen) => void navigate({ search: { tenant: chosen }, replace: true })}
        />
      </PageHead>
      {letters.error && (
        <div className="mb-3">
          <Failure error={letters.error} retry={() => void letters.refetch()} />
        </div>
      )}
      {letters.isPending ? (
        <div className="card">
          <Loading />
        </div>
      ) : groups.length === 0 ? (
        <div className="card">
          <Nothing icon={Inbox} title={<Trans>No dead letters.</Trans>}>
            <Trans>A run that fails for good is kept here until somebody redrives or discards it.</Trans>
          </Nothing>
        </div>
      ) : (
        <>
          <CauseList
            groups={groups}
            chosen={group?.cause}
            onChoose={(chosen) => void navigate({ search: { tenant, cause: chosen }, resetScroll: false })}
            newest={(letter) => letter.at}
            actions={(one) => (
              <>
                <Button size="small" onClick={() => setAsked({ what: "redrive", group: one })}>
                  <Inbox aria-hidden className="size-3.5" />{" "}
                  <Plural value={one.items.length} one="Redrive it" other="Redrive all #" />
                </Button>
                <Button
                  size="small"
                  kind="ghost"
                  aria-label={t`Discard this group`}
                  onClick={() => setAsked({ what: "discard", group: one })}
                >
                  <Trash2 aria-hidden className="size-4" />
                </Button>
              </>
            )}
          />
          {group && (
            <div className="card overflow-hidden">
              <Table
                label={t`Dead letters of this cause`}
                columns={columns}
                rows={group.items}
                rowKey={(letter) => String(letter.runId)}
                onOpen={(letter) => void navigate({ to: "/runs/$runId", params: { runId: letter.runId } })}
              />
            </div>
          )}
        </>
      )}
      {asked && (
        <BulkDialog
          action={actions[asked.what]}
          find={async () => asked.group.items}
          name={(letter) => `${letter.jobName ?? letter.jobId} ${letter.runId}`}
          onClose={() => setAsked(undefined)}
          onDone={() => {}}
        />
      )}
    </>
  );
}
