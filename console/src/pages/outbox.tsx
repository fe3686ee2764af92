import { Trans, useLingui } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { Mail, RotateCcw, Trash2 } from "lucide-react";
import { useState } from "react";
import { discardMessages, resend } from "../api/actions";
import type { Schemas } from "../api/client";
import { outboxQuery } from "../api/queries";
import { Button } from "../ui/button";
import { ActionDialog } from "../ui/dialog";
import { Failure, Loading, Nothing } from "../ui/feedback";
import { JobByName, JobName } from "../ui/job-name";
import { PageHead } from "../ui/page";
import { RunLink } from "../ui/run-cells";
import { State, Tag } from "../ui/state";
import { Table, type Column } from "../ui/table";
import { TenantFilter } from "../ui/tenant-filter";
import { Time } from "../ui/time";
import { tell } from "../ui/toast";

type Message = Schemas["OutboxMessageView"];

export function Outbox() {
  const { t } = useLingui();
  const { tenant } = useSearch({ from: "/outbox" });
  const navigate = useNavigate({ from: "/outbox" });
  const outbox = useQuery(outboxQuery(tenant));
  const [asked, setAsked] = useState<{ what: "resend" | "discard"; message: Message }>();
  const rows = outbox.data?.items ?? [];
  const columns: Column<Message>[] = [
    { name: "state", head: t`State`, bare: true, cell: (message) => <State of={message.state} /> },
    {
      name: "from",
      head: t`From`,
      cell: (message) => (message.jobId != null ? <JobName jobId={message.jobId} ask={rows.length <= 50} /> : "–"),
    },
    {
      name: "run",
      head: t`Run`,
      cell: (message) => <RunLink runId={message.runId} />,
    },
    {
      name: "to",
      head: t`To`,
      cell: (message) => message.targetJob && <JobByName name={message.targetJob} tenant={message.tenantId} />,
    },
    { name: "at", head: t`Decided`, cell: (message) => <Time at={message.decidedAt} /> },
    {
      name: "why",
      head: t`Why`,
      main: true,
      bare: true,
      cell: (message) => (
        <span className="hostile">
          {message.reason && <code>{message.reason}</code>}{" "}
          {message.mayHaveRun && (
            <Tag tone="warn">
              <Trans>may have been acted on</Trans>
            </Tag>
          )}
        </span>
      ),
    },
    {
      name: "act",
      head: <span className="sr-only">{t`Actions`}</span>,
      bare: true,
      cell: (message) =>
        message.state !== "WAITING" && (
          <span className="flex gap-1">
            <Button size="small" onClick={() => setAsked({ what: "resend", message })}>
              <RotateCcw aria-hidden className="size-3.5" /> <Trans>Send again</Trans>
            </Button>
            <Button
              size="small"
              kind="ghost"
              aria-label={t`Discard`}
              onClick={() => setAsked({ what: "discard", message })}
            >
              <Trash2 aria-hidden className="size-4" />
            </Button>
          </span>
        ),
    },
  ];
  return (
    <>
      <PageHead
        name={t`Outbox`}
        title={<Trans>Outbox</Trans>}
        below={<Trans>Messages between jobs that wait or were given up, such as hooks of failed runs.</Trans>}
      >
        <TenantFilter
          value={tenant}
          onChange={(chosen) => void navigate({ search: { tenant: chosen }, replace: true })}
        />
      </PageHead>
      {outbox.error && (
        <div className="mb-3">
          <Failure error={outbox.error} retry={() => void outbox.refetch()} />
        </div>
      )}
      <div className="card overflow-hidden">
        {outbox.isPending ? (
          <Loading />
        ) : rows.length === 0 ? (
          <Nothing icon={Mail} title={<Trans>Every message was delivered.</Trans>} />
        ) : (
          <Table
            label={t`Messages`}
            columns={columns}
            rows={rows}
            rowKey={(message) => `${message.runId}-${message.generation}-${message.targetJob}-${message.kind}`}
          />
        )}
      </div>
      {asked?.what === "resend" && (
        <ActionDialog
          title={t`Send the messages of run ${asked.message.runId} again`}
          action={<Trans>Send again</Trans>}
          run={async (reason) => {
            await resend(asked.message.runId, reason);
            tell(<Trans>The messages of run {asked.message.runId} are sent again.</Trans>);
          }}
          onClose={() => setAsked(undefined)}
        >
          {asked.message.mayHaveRun && (
            <p className="rounded-lg bg-warn-wash p-3 text-warn">
              <Trans>The other job may have acted on the message already. It may do so twice.</Trans>
            </p>
          )}
        </ActionDialog>
      )}
      {asked?.what === "discard" && (
        <ActionDialog
          danger
          title={t`Discard the messages of run ${asked.message.runId}`}
          action={<Trans>Discard</Trans>}
          run={(reason) => discardMessages(asked.message.runId, reason)}
          onClose={() => setAsked(undefined)}
        >
          <p>
            <Trans>They leave this list and are not sent again.</Trans>
          </p>
        </ActionDialog>
      )}
    </>
  );
}
