// Dead letters by cause, as the node groups them: a group is redriven or discarded as a whole, with its count and progress.
import { Plural, Trans, useLingui } from "@lingui/react/macro";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Inbox, Trash2 } from "lucide-react";
import { useState } from "react";
import { discard, redrive } from "../api/actions";
import type { DeadLetter, Schemas } from "../api/client";
import { causesQuery, lettersOf, lettersQuery } from "../api/queries";
import { amount } from "../lib/time";
import { BulkDialog } from "../ui/bulk";
import { Button } from "../ui/button";
import { CauseRow } from "../ui/causes";
import { Failure, Loading, Nothing } from "../ui/feedback";
import { PageHead } from "../ui/page";
import { readOn, ShowMore, useRows } from "../ui/paging";
import { RunLink } from "../ui/run-cells";
import { Table, type Column } from "../ui/table";
import { TenantFilter } from "../ui/tenant-filter";
import { Time } from "../ui/time";

type Cause = Schemas["CauseView"];

/** Dead letters that a bulk action looks at, at most. */
const BULK_MOST = 50_000;

export function DeadLetters() {
  const { t } = useLingui();
  const { tenant, cause } = useSearch({ from: "/dead-letters" });
  const navigate = useNavigate({ from: "/dead-letters" });
  const causes = useQuery(causesQuery(tenant));
  const groups = causes.data?.items ?? [];
  const [asked, setAsked] = useState<{ what: "redrive" | "discard"; cause: Cause }>();
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
          causes.data?.truncated ? (
            <Trans>The newest {amount(causes.data.counted)} are counted. More follow when these are dealt with.</Trans>
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
      {causes.error && (
        <div className="mb-3">
          <Failure error={causes.error} retry={() => void causes.refetch()} />
        </div>
      )}
      {causes.isPending ? (
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
        <ul className="space-y-2" aria-label={t`Causes`}>
          {groups.map((group) => (
            <Group
              key={group.cause}
              of={group}
              tenant={tenant}
              most={groups[0]!.count}
              on={group.cause === cause}
              onChoose={() =>
                void navigate({
                  search: { tenant, cause: group.cause === cause ? undefined : group.cause },
                  resetScroll: false,
                })
              }
              onAsk={(what) => setAsked({ what, cause: group })}
            />
          ))}
        </ul>
      )}
      {asked && (
        <BulkDialog
          action={actions[asked.what]}
          find={(signal) => lettersOf(asked.cause.cause, tenant, BULK_MOST, signal)}
          name={(letter) => `${letter.jobName ?? letter.jobId} ${letter.runId}`}
          onClose={() => setAsked(undefined)}
          onDone={() => {}}
        />
      )}
    </>
  );
}

function Group({
  of,
  tenant,
  most,
  on,
  onChoose,
  onAsk,
}: {
  of: Cause;
  tenant: string | undefined;
  most: number;
  on: boolean;
  onChoose: () => void;
  onAsk: (what: "redrive" | "discard") => void;
}) {
  const { t } = useLingui();
  return (
    <li className={`card overflow-hidden ${on ? "border-accent" : ""}`}>
      <CauseRow
        count={of.count}
        most={most}
        on={on}
        onChoose={onChoose}
        text={of.reason}
        about={
          <>
            <Plural value={of.jobs} one="# job" other="# jobs" />, <Trans>the newest</Trans> <Time at={of.lastAt} />,{" "}
            <Trans>the oldest</Trans> <Time at={of.firstAt} />
          </>
        }
      >
        <span className="flex gap-2 max-lg:pl-20">
          <Button size="small" onClick={() => onAsk("redrive")}>
            <Inbox aria-hidden className="size-3.5" />{" "}
            <Plural value={of.count} one="Redrive it" other="Redrive all #" />
          </Button>
          <Button size="small" kind="ghost" aria-label={t`Discard this group`} onClick={() => onAsk("discard")}>
            <Trash2 aria-hidden className="size-4" />
          </Button>
        </span>
      </CauseRow>
      {on && <Letters cause={of.cause} tenant={tenant} />}
    </li>
  );
}

function Letters({ cause, tenant }: { cause: string; tenant: string | undefined }) {
  const { t } = useLingui();
  const navigate = useNavigate();
  const letters = useInfiniteQuery(lettersQuery(cause, tenant));
  const rows = useRows(letters.data);
  const columns: Column<DeadLetter>[] = [
    {
      name: "run",
      head: t`Run`,
      cell: (letter) => <RunLink runId={letter.runId} />,
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
  if (letters.error) return <Failure compact error={letters.error} retry={() => void letters.refetch()} />;
  if (letters.isPending) return <Loading lines={3} />;
  return (
    <div className="border-t border-line">
      <Table
        label={t`Dead letters of this cause`}
        columns={columns}
        rows={rows}
        rowKey={(letter) => String(letter.runId)}
        onOpen={(letter) => void navigate({ to: "/runs/$runId", params: { runId: letter.runId } })}
        onEnd={() => readOn(letters)}
      />
      <ShowMore list={letters} className="border-t border-line p-2" />
    </div>
  );
}
