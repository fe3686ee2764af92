import { Trans, useLingui } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { Cpu, Hourglass } from "lucide-react";
import type { Schemas } from "../api/client";
import { executorsQuery, poolsQuery } from "../api/queries";
import { Failure, Loading, Nothing } from "../ui/feedback";
import { Meter } from "../ui/meter";
import { Missing } from "../ui/missing";
import { PageHead, Section } from "../ui/page";
import { State, Tag } from "../ui/state";
import { Table, type Column } from "../ui/table";
import { Time } from "../ui/time";
import { amount } from "../lib/time";

type Pool = Schemas["PoolView"];
type Executor = Schemas["ExecutorView"];

export function Executors() {
  const { t } = useLingui();
  const pools = useQuery(poolsQuery);
  const executors = useQuery(executorsQuery);
  const poolColumns: Column<Pool>[] = [
    {
      name: "name",
      head: t`Pool`,
      bare: true,
      main: true,
      cell: (pool) => <span className="hostile font-medium">{pool.name}</span>,
    },
    { name: "executors", head: t`Executors`, num: true, cell: (pool) => amount(pool.executors) },
    {
      name: "running",
      head: t`Slots in use`,
      cell: (pool) => (
        <Meter
          used={pool.running}
          most={pool.running + pool.credit}
          label={t`Slots in use of ${pool.name}`}
          none={t`no slot`}
        />
      ),
    },
    {
      name: "waiting",
      head: t`Waiting`,
      num: true,
      cell: (pool) => (
        <span className={pool.waiting > 0 && pool.credit === 0 ? "font-medium text-warn" : ""}>
          {amount(pool.waiting)}
        </span>
      ),
    },
    {
      name: "why",
      head: t`Why they wait`,
      bare: true,
      cell: (pool) =>
        pool.waiting > 0 && (
          <span className="flex items-center gap-1.5 text-warn">
            <Hourglass aria-hidden className="size-3.5 shrink-0" />
            {pool.executors === 0 ? (
              <Trans>no executor serves this pool</Trans>
            ) : pool.credit === 0 ? (
              <Trans>every slot is taken</Trans>
            ) : (
              <Trans>no free executor fits, or a tenant is at its limit: see the run</Trans>
            )}
          </span>
        ),
    },
  ];
  const columns: Column<Executor>[] = [
    {
      name: "name",
      head: t`Executor`,
      bare: true,
      main: true,
      cell: (one) => <span className="hostile font-medium">{one.executorId}</span>,
    },
    { name: "state", head: t`State`, bare: true, cell: (one) => <State of={one.state} /> },
    {
      name: "pools",
      head: t`Pools`,
      cell: (one) => (
        <span className="inline-flex flex-wrap gap-1">
          {one.pools.map((pool) => (
            <Tag key={pool}>{pool}</Tag>
          ))}
        </span>
      ),
    },
    {
      name: "slots",
      head: t`Slots in use`,
      cell: (one) => <Meter used={one.running} most={one.slots} label={t`Slots in use of ${one.executorId}`} />,
    },
    {
      name: "labels",
      head: t`Labels`,
      from: "lg",
      cell: (one) => (
        <span className="flex flex-wrap gap-1">
          {Object.entries(one.labels).map(([key, value]) => (
            <Tag key={key}>
              {key}={value}
            </Tag>
          ))}
        </span>
      ),
    },
    { name: "beat", head: t`Last heard of`, cell: (one) => <Time at={one.lastHeartbeatAt} /> },
    {
      name: "nodes",
      head: t`Nodes`,
      from: "xl",
      cell: (one) => <span className="hostile text-soft">{one.nodes?.map((node) => node.node).join(", ")}</span>,
    },
  ];
  return (
    <>
      <PageHead
        name={t`Executors`}
        title={<Trans>Executors</Trans>}
        below={<Trans>Programs that run the bodies of jobs, and the pools that they serve.</Trans>}
      />
      <Missing of={executors.data?.missing ?? pools.data?.missing} />
      {pools.error && (
        <div className="mb-3">
          <Failure error={pools.error} retry={() => void pools.refetch()} />
        </div>
      )}
      <Section title={<Trans>Pools</Trans>} flush>
        {pools.isPending ? (
          <Loading lines={3} />
        ) : pools.data?.items.length === 0 ? (
          <p className="p-4 text-soft">
            <Trans>No pool has executors or runs.</Trans>
          </p>
        ) : (
          <Table
            label={t`Pools`}
            columns={poolColumns}
            rows={pools.data?.items ?? []}
            rowKey={(pool) => pool.name}
            keyboard={false}
          />
        )}
      </Section>
      {executors.error && (
        <div className="mb-3">
          <Failure error={executors.error} retry={() => void executors.refetch()} />
        </div>
      )}
      <Section title={<Trans>Executors</Trans>} flush>
        {executors.isPending ? (
          <Loading />
        ) : executors.data?.items.length === 0 ? (
          <Nothing icon={Cpu} title={<Trans>No executor is connected.</Trans>}>
            <Trans>Runs wait until one is. Start one with `campanile executor`.</Trans>
          </Nothing>
        ) : (
          <Table
            label={t`Executors`}
            columns={columns}
            rows={executors.data?.items ?? []}
            rowKey={(one) => one.executorId}
          />
        )}
      </Section>
    </>
  );
}
