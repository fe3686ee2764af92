// Records of the audit trail.
import { Trans, useLingui } from "@lingui/react/macro";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ScrollText } from "lucide-react";
import type { Schemas } from "../api/client";
import { auditQuery, type AuditFilter } from "../api/queries";
import { Failure, Loading, Nothing } from "./feedback";
import { readOn, ShowMore, useRows } from "./paging";
import { Tag } from "./state";
import { Table, type Column } from "./table";
import { Time } from "./time";

export default function Trail({ filter, onFilter }: { filter: AuditFilter; onFilter?: (change: AuditFilter) => void }) {
  const { t } = useLingui();
  const trail = useInfiniteQuery({ ...auditQuery(filter), placeholderData: (was) => was });
  const rows = useRows(trail.data);
  const narrow = (text: string, change: AuditFilter) =>
    onFilter ? (
      <button type="button" className="link hostile text-left" title={t`Only these`} onClick={() => onFilter(change)}>
        {text}
      </button>
    ) : (
      <span className="hostile">{text}</span>
    );
  const columns: Column<Schemas["AuditView"]>[] = [
    { name: "at", head: t`When`, cell: (record) => <Time at={record.at} /> },
    {
      name: "who",
      head: t`Who`,
      cell: (record) =>
        record.who ? (
          narrow(record.who, { who: record.who })
        ) : (
          <span className="text-soft">
            <Trans>unknown token</Trans>
          </span>
        ),
    },
    {
      name: "operation",
      head: t`What`,
      cell: (record) => <code>{narrow(record.operation, { operation: record.operation })}</code>,
    },
    {
      name: "about",
      head: t`About`,
      cell: (record) => (
        <span className="inline-flex gap-x-2 whitespace-nowrap max-sm:flex-wrap">
          {record.tenantId && <span className="hostile text-soft">{record.tenantId}</span>}
          {record.jobId != null && (
            <Link to="/jobs/$jobId" params={{ jobId: record.jobId }} className="link">
              <Trans>job {record.jobId}</Trans>
            </Link>
          )}
          {record.runId != null && (
            <Link to="/runs/$runId" params={{ runId: record.runId }} className="link">
              <Trans>run {record.runId}</Trans>
            </Link>
          )}
          {record.target && <span className="hostile">{record.target}</span>}
        </span>
      ),
    },
    {
      name: "outcome",
      head: t`Outcome`,
      cell: (record) => (
        <span className="whitespace-nowrap">
          {record.outcome === "DONE" ? (
            <Tag tone="good">
              <Trans>done</Trans>
            </Tag>
          ) : (
            <a href={`/errors#${encodeURIComponent(record.outcome)}`} target="_blank" rel="noreferrer">
              <Tag tone="bad">{record.outcome}</Tag>
            </a>
          )}
          {record.count > 1 && <span className="text-soft"> ×{record.count}</span>}
        </span>
      ),
    },
    {
      name: "reason",
      head: t`Reason`,
      main: true,
      cell: (record) => record.reason && <span className="hostile">{record.reason}</span>,
    },
    {
      name: "from",
      head: t`From`,
      from: "lg",
      cell: (record) => (
        <span className="hostile whitespace-nowrap text-soft" title={record.requestId ?? undefined}>
          {record.address}
        </span>
      ),
    },
  ];
  if (trail.error && rows.length === 0) return <Failure error={trail.error} retry={() => void trail.refetch()} />;
  return (
    <>
      <div className="card overflow-hidden">
        {trail.isPending ? (
          <Loading />
        ) : rows.length === 0 ? (
          <Nothing icon={ScrollText} title={<Trans>No record matches.</Trans>} />
        ) : (
          <Table
            label={t`Audit trail`}
            columns={columns}
            rows={rows}
            rowKey={(record) =>
              `${record.at} ${record.requestId} ${record.operation} ${record.jobId} ${record.runId} ${record.target} ${record.outcome} ${record.who}`
            }
            onEnd={() => readOn(trail)}
          />
        )}
      </div>
      <ShowMore list={trail} className="mt-2" />
    </>
  );
}
