// What needs somebody: each trouble with its weight and the way to it.
import { Plural, Trans, useLingui } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import {
  causesQuery,
  executorsQuery,
  failuresQuery,
  isCluster,
  membersQuery,
  metricsQuery,
  nodeQuery,
  outboxQuery,
  poolsQuery,
  tenantsQuery,
} from "../api/queries";
import { waitingQuery } from "../api/waiting";
import { byCause, failureCause } from "../lib/cause";
import { DAY_MS, duration, amount, nodeNow } from "../lib/time";
import type { Tone } from "../ui/state";
import { Time } from "../ui/time";
import { LATE_MS, numbers } from "./numbers";

export interface Trouble {
  tone: Extract<Tone, "bad" | "warn" | "ask">;
  text: ReactNode;
  to: string;
  search?: Record<string, string>;
  key: string;
}

const NEAR = 0.8;

export function useTroubles(operator: boolean) {
  const { t } = useLingui();
  const only = { enabled: operator };
  const node = useQuery({ ...nodeQuery, ...only });
  const members = useQuery({ ...membersQuery, enabled: isCluster(node.data) });
  const pools = useQuery({ ...poolsQuery, ...only });
  const executors = useQuery({ ...executorsQuery, ...only });
  const tenants = useQuery(tenantsQuery);
  const failures = useQuery(failuresQuery());
  const letters = useQuery(causesQuery());
  const outbox = useQuery(outboxQuery());
  const waiting = useQuery(waitingQuery());
  useQuery({ ...metricsQuery, ...only });
  const found: Trouble[] = [];
  const add = (tone: Trouble["tone"], key: string, to: string, text: ReactNode, search?: Record<string, string>) =>
    found.push({ tone, key, to, text, search });

  if (node.data && !node.data.ready)
    add("bad", "ready", "/cluster", <Trans>The node is not ready: {node.data.notReadyReasons.join("; ")}</Trans>);
  for (const member of members.data?.items ?? []) {
    if (member.state === "SUSPECTED")
      add("bad", `m-${member.name}`, "/cluster", <Trans>Node {member.name} does not answer</Trans>);
    if (member.state === "CLOCK_WRONG")
      add(
        "bad",
        `m-${member.name}`,
        "/cluster",
        <Trans>The clock of node {member.name} is wrong: it fires nothing</Trans>,
      );
  }
  for (const missing of node.data?.missing ?? [])
    add(
      "bad",
      `x-${missing.node}`,
      "/cluster",
      <Trans>
        Nothing is heard of node {missing.node}: {missing.reason}
      </Trans>,
    );
  const broken = node.data?.files?.broken.length ?? 0;
  if (broken > 0)
    add(
      "warn",
      "files",
      "/cluster",
      <Plural value={broken} one="# file of jobs is broken" other="# files of jobs are broken" />,
    );
  for (const pool of pools.data?.items ?? []) {
    if (pool.waiting > 0 && pool.executors === 0)
      add(
        "bad",
        `p-${pool.name}`,
        "/executors",
        <Plural
          value={pool.waiting}
          one={`# run waits in pool ${pool.name}, which no executor serves`}
          other={`# runs wait in pool ${pool.name}, which no executor serves`}
        />,
      );
    else if (pool.waiting > 0 && pool.credit === 0)
      add(
        "warn",
        `p-${pool.name}`,
        "/executors",
        <Plural
          value={pool.waiting}
          one={`# run waits in pool ${pool.name}: every slot is taken`}
          other={`# runs wait in pool ${pool.name}: every slot is taken`}
        />,
      );
  }
  for (const executor of executors.data?.items ?? []) {
    if (executor.state === "DISCONNECTED" || executor.state === "SUSPECTED_LOST")
      add(
        "bad",
        `e-${executor.executorId}`,
        "/executors",
        <Trans>
          Executor {executor.executorId} is not heard of, last <Time at={executor.lastHeartbeatAt} />
        </Trans>,
      );
  }
  const waits = waiting.data?.items.length ?? 0;
  if (waits > 0)
    add(
      "ask",
      "waiting",
      "/waiting",
      <Plural value={waits} one="# run waits for a person" other="# runs wait for a person" />,
    );
  const dead = letters.data?.counted ?? 0;
  if (dead > 0) {
    const more = letters.data?.truncated ? "+" : "";
    const causes = letters.data?.items.length ?? 0;
    add(
      "bad",
      "dead",
      "/dead-letters",
      <>
        <strong>
          {amount(dead)}
          {more}
        </strong>{" "}
        <Plural value={dead} one="dead letter" other="dead letters" />{" "}
        <span className="text-soft">
          · <Plural value={causes} one="# cause" other="# causes" />
        </span>
      </>,
    );
  }
  const since = nodeNow() - DAY_MS;
  const failed = (failures.data?.items ?? []).filter((run) => Date.parse(run.endedAt ?? run.createdAt) > since);
  if (failed.length > 0) {
    const more = failures.data?.nextPageToken && failed.length === failures.data.items.length ? "+" : "";
    add(
      "bad",
      "failed",
      "/failures",
      <>
        <strong>
          {amount(failed.length)}
          {more}
        </strong>{" "}
        <Plural value={failed.length} one="run failed in the last day" other="runs failed in the last day" />{" "}
        <span className="text-soft">
          · <Plural value={byCause(failed, failureCause).length} one="# cause" other="# causes" />
        </span>
      </>,
    );
  }
  const lost = (outbox.data?.items ?? []).filter((message) => message.state !== "WAITING").length;
  if (lost > 0)
    add(
      "bad",
      "outbox",
      "/outbox",
      <Plural value={lost} one="# message between jobs was given up" other="# messages between jobs were given up" />,
    );
  for (const tenant of tenants.data?.items ?? []) {
    if (tenant.paused)
      add("warn", `t-${tenant.tenantId}`, "/tenants", <Trans>Tenant {tenant.tenantId} is paused</Trans>);
    const near = [
      [tenant.running, tenant.quota.maxConcurrentRuns, t`runs at once`],
      [tenant.waiting, tenant.quota.maxQueuedRuns, t`waiting runs`],
      [tenant.jobs, tenant.quota.maxJobs, t`jobs`],
    ] as const;
    for (const [used, most, what] of near) {
      if (most > 0 && used >= NEAR * most)
        add(
          "warn",
          `q-${tenant.tenantId}-${what}`,
          "/tenants",
          <Trans>
            Tenant {tenant.tenantId} uses {amount(used)} of {amount(most)} {what}
          </Trans>,
        );
    }
  }
  const { late } = numbers();
  if (late !== undefined && late > LATE_MS)
    add("bad", "late", "/cluster", <Trans>1 of 100 runs begins more than {duration(late)} late</Trans>);
  const order = { bad: 0, ask: 1, warn: 2 };
  const all = [failures, letters, tenants, outbox, waiting];
  const broke = [...all, node, pools].find((query) => query.error && !query.data);
  return {
    troubles: found.sort((a, b) => order[a.tone] - order[b.tone]),
    pending: failures.isPending || letters.isPending,
    error: broke?.error,
    retry: () => void broke?.refetch(),
  };
}
