import { Trans, useLingui } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { MoreHorizontal, Pause, Play, Plus, SlidersHorizontal, Trash2, Users } from "lucide-react";
import { useState } from "react";
import { deleteTenant, pauseTenant, setTenant } from "../api/actions";
import type { Tenant } from "../api/client";
import { tenantsQuery } from "../api/queries";
import { useIsOperator } from "../shell";
import { Button } from "../ui/button";
import { ActionDialog } from "../ui/dialog";
import { Failure, Loading, Nothing } from "../ui/feedback";
import { Field } from "../ui/field";
import { Item, Menu } from "../ui/menu";
import { Meter } from "../ui/meter";
import { PageHead } from "../ui/page";
import { State } from "../ui/state";
import { Table, type Column } from "../ui/table";
import { amount } from "../lib/time";

type Asked = { what: "limits"; tenant?: Tenant } | { what: "pause" | "resume" | "delete"; tenant: Tenant };

export function Tenants() {
  const { t } = useLingui();
  const operator = useIsOperator();
  const tenants = useQuery(tenantsQuery);
  const [asked, setAsked] = useState<Asked>();
  const close = () => setAsked(undefined);
  const columns: Column<Tenant>[] = [
    {
      name: "name",
      head: t`Tenant`,
      main: true,
      bare: true,
      cell: (tenant) => (
        <Link to="/jobs" search={{ tenant: tenant.tenantId }} className="link hostile font-medium">
          {tenant.tenantId}
        </Link>
      ),
    },
    {
      name: "state",
      head: t`Status`,
      bare: true,
      cell: (tenant) => <State of={tenant.paused ? "PAUSED" : "ENABLED"} />,
    },
    {
      name: "running",
      head: t`Running`,
      cell: (tenant) => (
        <Meter used={tenant.running} most={tenant.quota.maxConcurrentRuns} label={t`Runs of ${tenant.tenantId}`} />
      ),
    },
    {
      name: "waiting",
      head: t`Waiting`,
      cell: (tenant) => (
        <Meter used={tenant.waiting} most={tenant.quota.maxQueuedRuns} label={t`Waiting runs of ${tenant.tenantId}`} />
      ),
    },
    {
      name: "jobs",
      head: t`Jobs`,
      cell: (tenant) => <Meter used={tenant.jobs} most={tenant.quota.maxJobs} label={t`Jobs of ${tenant.tenantId}`} />,
    },
    {
      name: "rate",
      head: t`Triggers a second`,
      num: true,
      cell: (tenant) =>
        tenant.quota.maxTriggersPerSec > 0 ? (
          <Trans>at most {amount(tenant.quota.maxTriggersPerSec)}</Trans>
        ) : (
          <span className="text-faint">
            <Trans>no limit</Trans>
          </span>
        ),
    },
  ];
  if (operator) {
    columns.push({
      name: "act",
      head: <span className="sr-only">{t`Actions`}</span>,
      bare: true,
      cell: (tenant) => (
        <Menu
          trigger={
            <Button size="small" kind="ghost" aria-label={t`Actions for ${tenant.tenantId}`}>
              <MoreHorizontal aria-hidden className="size-4" />
            </Button>
          }
        >
          <Item onSelect={() => setAsked({ what: "limits", tenant })}>
            <SlidersHorizontal aria-hidden className="size-4" /> <Trans>Limits</Trans>
          </Item>
          {tenant.paused ? (
            <Item onSelect={() => setAsked({ what: "resume", tenant })}>
              <Play aria-hidden className="size-4" /> <Trans>Resume</Trans>
            </Item>
          ) : (
            <Item onSelect={() => setAsked({ what: "pause", tenant })}>
              <Pause aria-hidden className="size-4" /> <Trans>Pause</Trans>
            </Item>
          )}
          <Item danger disabled={tenant.jobs > 0} onSelect={() => setAsked({ what: "delete", tenant })}>
            <Trash2 aria-hidden className="size-4" /> <Trans>Forget</Trans>
          </Item>
        </Menu>
      ),
    });
  }
  return (
    <>
      <PageHead
        name={t`Tenants`}
        title={operator ? <Trans>Tenants</Trans> : <Trans>Tenant</Trans>}
        below={<Trans>Limits, and how much of them is used now.</Trans>}
      >
        {operator && (
          <Button onClick={() => setAsked({ what: "limits" })}>
            <Plus aria-hidden className="size-4" /> <Trans>Limits for a tenant</Trans>
          </Button>
        )}
      </PageHead>
      {tenants.error && (
        <div className="mb-3">
          <Failure error={tenants.error} retry={() => void tenants.refetch()} />
        </div>
      )}
      <div className="card overflow-hidden">
        {tenants.isPending ? (
          <Loading />
        ) : tenants.data?.items.length === 0 ? (
          <Nothing icon={Users} title={<Trans>No tenant has jobs or limits.</Trans>} />
        ) : (
          <Table
            label={t`Tenants`}
            columns={columns}
            rows={tenants.data?.items ?? []}
            rowKey={(tenant) => tenant.tenantId}
          />
        )}
      </div>
      {asked?.what === "limits" && <Limits tenant={asked.tenant} onClose={close} />}
      {asked?.what === "pause" && (
        <ActionDialog
          title={t`Pause ${asked.tenant.tenantId}`}
          action={<Trans>Pause</Trans>}
          run={(reason) => pauseTenant(asked.tenant.tenantId, true, reason)}
          onClose={close}
        >
          <p>
            <Trans>No job of this tenant fires or starts until it is resumed. Bodies that run go on.</Trans>
          </p>
        </ActionDialog>
      )}
      {asked?.what === "resume" && (
        <ActionDialog
          title={t`Resume ${asked.tenant.tenantId}`}
          action={<Trans>Resume</Trans>}
          run={(reason) => pauseTenant(asked.tenant.tenantId, false, reason)}
          onClose={close}
        />
      )}
      {asked?.what === "delete" && (
        <ActionDialog
          danger
          title={t`Forget ${asked.tenant.tenantId}`}
          action={<Trans>Forget</Trans>}
          run={(reason) => deleteTenant(asked.tenant.tenantId, reason)}
          onClose={close}
        >
          <p>
            <Trans>Its limits and its pause are forgotten. Its history stays.</Trans>
          </p>
        </ActionDialog>
      )}
    </>
  );
}

const FIELDS = ["maxConcurrentRuns", "maxTriggersPerSec", "maxJobs", "maxQueuedRuns"] as const;

function Limits({ tenant, onClose }: { tenant?: Tenant; onClose: () => void }) {
  const { t } = useLingui();
  const [name, setName] = useState(tenant?.tenantId ?? "");
  const [limits, setLimits] = useState<Record<(typeof FIELDS)[number], string>>(() => {
    const of = (field: (typeof FIELDS)[number]) => String(tenant?.quota[field] ?? 0);
    return {
      maxConcurrentRuns: of("maxConcurrentRuns"),
      maxTriggersPerSec: of("maxTriggersPerSec"),
      maxJobs: of("maxJobs"),
      maxQueuedRuns: of("maxQueuedRuns"),
    };
  });
  const labels: Record<(typeof FIELDS)[number], string> = {
    maxConcurrentRuns: t`Runs at once`,
    maxTriggersPerSec: t`Triggers a second`,
    maxJobs: t`Jobs`,
    maxQueuedRuns: t`Waiting runs`,
  };
  const wrong = FIELDS.some((field) => !(Number(limits[field]) >= 0) || limits[field].trim() === "");
  return (
    <ActionDialog
      title={tenant ? t`Limits of ${tenant.tenantId}` : t`Limits for a tenant`}
      action={<Trans>Save</Trans>}
      withReason={false}
      canGo={name.trim() !== "" && !wrong}
      run={() =>
        setTenant(name.trim(), {
          maxConcurrentRuns: Number(limits.maxConcurrentRuns),
          maxTriggersPerSec: Number(limits.maxTriggersPerSec),
          maxJobs: Number(limits.maxJobs),
          maxQueuedRuns: Number(limits.maxQueuedRuns),
        })
      }
      onClose={onClose}
    >
      {!tenant && (
        <Field label={<Trans>Tenant</Trans>}>
          <input className="input" value={name} onChange={(event) => setName(event.target.value)} />
        </Field>
      )}
      <div className="grid gap-4 sm:grid-cols-2">
        {FIELDS.map((field) => (
          <Field key={field} label={labels[field]} hint={t`0 = no limit`}>
            <input
              className="input"
              type="number"
              min={0}
              step={field === "maxTriggersPerSec" ? "any" : 1}
              value={limits[field]}
              onChange={(event) => setLimits({ ...limits, [field]: event.target.value })}
            />
          </Field>
        ))}
      </div>
    </ActionDialog>
  );
}
