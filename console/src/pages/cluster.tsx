import { Plural, Trans, useLingui } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { ArrowRight, Clock, Pause, Play } from "lucide-react";
import { useState } from "react";
import { acceptClock, cordon, pauseSystem } from "../api/actions";
import type { Schemas } from "../api/client";
import { clusterEventsQuery, isCluster, membersQuery, movesQuery, nodeQuery, shardsQuery } from "../api/queries";
import { amount } from "../lib/time";
import { Button } from "../ui/button";
import { ActionDialog } from "../ui/dialog";
import { Failure, Loading } from "../ui/feedback";
import { Missing } from "../ui/missing";
import { Fact, Facts, PageHead, Section } from "../ui/page";
import { State, Tag } from "../ui/state";
import { Table, type Column } from "../ui/table";
import { Time } from "../ui/time";
import { tell } from "../ui/toast";

type Member = Schemas["MemberView"];
type Asked = { what: "cordon" | "uncordon"; node: string } | { what: "pause" | "resume" | "clock" };

export function Cluster() {
  const { t } = useLingui();
  const node = useQuery(nodeQuery);
  const members = useQuery({ ...membersQuery, enabled: isCluster(node.data) });
  const shards = useQuery({ ...shardsQuery, enabled: isCluster(node.data) });
  const moves = useQuery({ ...movesQuery, enabled: isCluster(node.data) });
  const events = useQuery({ ...clusterEventsQuery, enabled: isCluster(node.data) });
  const [asked, setAsked] = useState<Asked>();
  const close = () => setAsked(undefined);
  const alone = node.data !== undefined && !isCluster(node.data);
  return (
    <>
      <PageHead
        name={t`Cluster`}
        title={<Trans>Cluster</Trans>}
        below={alone ? <Trans>One node on a directory of its own.</Trans> : undefined}
      >
        <Button onClick={() => setAsked({ what: "clock" })}>
          <Clock aria-hidden className="size-4" /> <Trans>Accept the clock</Trans>
        </Button>
        <Button onClick={() => setAsked({ what: "resume" })}>
          <Play aria-hidden className="size-4" /> <Trans>Resume everything</Trans>
        </Button>
        <Button kind="danger" onClick={() => setAsked({ what: "pause" })}>
          <Pause aria-hidden className="size-4" /> <Trans>Pause everything</Trans>
        </Button>
      </PageHead>
      <Missing of={node.data?.missing} />
      {node.error && (
        <div className="mb-3">
          <Failure error={node.error} retry={() => void node.refetch()} />
        </div>
      )}
      {node.data ? <NodeFacts node={node.data} /> : node.isPending && <Loading lines={4} />}
      {members.error && (
        <div className="mb-3">
          <Failure error={members.error} retry={() => void members.refetch()} />
        </div>
      )}
      {members.data && <Members members={members.data.items} onAsk={setAsked} />}
      {members.data && shards.data && <Shards shards={shards.data.items} members={members.data.items} />}
      {moves.data && (
        <Section title={<Trans>Moves that are planned</Trans>}>
          {moves.data.moves.length === 0 ? (
            <p className="text-soft">
              <Trans>None: every shard is where it should be.</Trans>
            </p>
          ) : (
            <ul className="grid gap-x-6 gap-y-1 sm:grid-cols-2 lg:grid-cols-3">
              {moves.data.moves.slice(0, 60).map((move) => (
                <li key={move.shard} className="flex items-center gap-2">
                  <strong className="tabular-nums">
                    <Trans>shard {move.shard}</Trans>
                  </strong>
                  <span className="hostile text-soft">{move.from ?? t`nobody`}</span>
                  <ArrowRight aria-hidden className="size-3.5 text-faint" />
                  <span className="hostile">{move.to}</span>
                  <span className="text-[0.84rem] text-faint">{move.reason}</span>
                </li>
              ))}
            </ul>
          )}
        </Section>
      )}
      {events.data && events.data.items.length > 0 && (
        <Section title={<Trans>What this node saw happen</Trans>} flush>
          <Events events={events.data.items} />
        </Section>
      )}
      {asked?.what === "pause" && (
        <ActionDialog
          danger
          title={t`Pause everything`}
          action={<Trans>Pause everything</Trans>}
          run={async (reason) => {
            await pauseSystem(true, reason);
            tell(<Trans>Everything is paused.</Trans>);
          }}
          onClose={close}
        >
          <p>
            <Trans>No job of any tenant fires or starts until everything is resumed. Bodies that run go on.</Trans>
          </p>
        </ActionDialog>
      )}
      {asked?.what === "resume" && (
        <ActionDialog
          title={t`Resume everything`}
          action={<Trans>Resume everything</Trans>}
          run={async (reason) => {
            await pauseSystem(false, reason);
            tell(<Trans>Everything fires again.</Trans>);
          }}
          onClose={close}
        >
          <p>
            <Trans>It undoes a pause of everything. Jobs and tenants that are paused by themselves stay so.</Trans>
          </p>
        </ActionDialog>
      )}
      {asked?.what === "clock" && (
        <ActionDialog
          title={t`Accept the clock`}
          action={<Trans>Accept the clock</Trans>}
          run={(reason) => acceptClock(reason)}
          onClose={close}
        >
          <p>
            <Trans>
              After a jump of its clock the node fires nothing until a person says that the clock is right. Do this only
              after you have checked it.
            </Trans>
          </p>
        </ActionDialog>
      )}
      {asked && "node" in asked && (
        <ActionDialog
          title={asked.what === "cordon" ? t`Cordon ${asked.node}` : t`Uncordon ${asked.node}`}
          action={asked.what === "cordon" ? <Trans>Cordon</Trans> : <Trans>Uncordon</Trans>}
          run={(reason) => cordon(asked.node, asked.what === "cordon", reason)}
          onClose={close}
        >
          <p>
            {asked.what === "cordon" ? (
              <Trans>It gets no further shards and keeps what it has.</Trans>
            ) : (
              <Trans>It may get shards again.</Trans>
            )}
          </p>
        </ActionDialog>
      )}
    </>
  );
}

function NodeFacts({ node }: { node: Schemas["NodeView"] }) {
  return (
    <Section
      title={
        <span className="flex items-center gap-2">
          <Trans>The node that answers</Trans>{" "}
          {node.ready ? (
            <State of="READY" />
          ) : (
            <Tag tone="bad">
              <Trans>not ready</Trans>
            </Tag>
          )}
        </span>
      }
    >
      {!node.ready && (
        <ul className="mb-3 list-inside list-disc text-bad">
          {node.notReadyReasons.map((reason) => (
            <li key={reason} className="hostile">
              {reason}
            </li>
          ))}
        </ul>
      )}
      <Facts>
        <Fact name={<Trans>Version</Trans>}>{node.version}</Fact>
        <Fact name={<Trans>Jobs</Trans>}>{amount(node.jobs)}</Fact>
        <Fact name={<Trans>Open runs</Trans>}>{amount(node.openRuns)}</Fact>
        <Fact name={<Trans>Executors</Trans>}>{amount(node.executors)}</Fact>
        <Fact name={<Trans>Shards</Trans>}>{node.shards}</Fact>
        <Fact name={<Trans>Time zones</Trans>}>{node.tzdb}</Fact>
        <Fact name={<Trans>Its clock</Trans>}>
          <Time at={node.now} always="utc" />
        </Fact>
        <Fact name={<Trans>Cluster</Trans>}>
          <code>{node.clusterId}</code>
        </Fact>
      </Facts>
      {node.files?.error && <p className="hostile mt-3 text-bad">{node.files.error}</p>}
      {(node.files?.broken?.length ?? 0) > 0 && (
        <div className="mt-4 rounded-lg bg-bad-wash p-3">
          <p className="font-medium text-bad">
            <Trans>Files of jobs that are broken</Trans>
          </p>
          <ul>
            {node.files!.broken!.map((broken) => (
              <li key={broken.file} className="hostile">
                <code>{broken.file}</code>: {broken.problems.join("; ")}
              </li>
            ))}
          </ul>
        </div>
      )}
    </Section>
  );
}

function Members({ members, onAsk }: { members: Member[]; onAsk: (asked: Asked) => void }) {
  const { t } = useLingui();
  const columns: Column<Member>[] = [
    {
      name: "name",
      head: t`Node`,
      bare: true,
      main: true,
      cell: (member) => (
        <span className="hostile font-medium">
          {member.name}{" "}
          {member.isSelf && (
            <span className="font-normal text-faint">
              <Trans>(answers you)</Trans>
            </span>
          )}
        </span>
      ),
    },
    { name: "state", head: t`State`, bare: true, cell: (member) => <State of={member.state} /> },
    { name: "shards", head: t`Shards`, num: true, cell: (member) => member.shards },
    {
      name: "clock",
      head: t`Clock`,
      num: true,
      cell: (member) =>
        member.clockOffsetMs == null ? "–" : `${member.clockOffsetMs > 0 ? "+" : ""}${member.clockOffsetMs}\u00a0ms`,
    },
    {
      name: "build",
      head: t`Version`,
      from: "md",
      cell: (member) => <span className="hostile text-soft">{member.build}</span>,
    },
    { name: "http", head: "HTTP", from: "lg", cell: (member) => <code className="text-soft">{member.http}</code> },
    { name: "rpc", head: "RPC", from: "lg", cell: (member) => <code className="text-soft">{member.rpc}</code> },
    {
      name: "act",
      head: <span className="sr-only">{t`Actions`}</span>,
      bare: true,
      cell: (member) =>
        member.state === "CORDONED" ? (
          <Button size="small" onClick={() => onAsk({ what: "uncordon", node: member.name })}>
            <Trans>Uncordon</Trans>
          </Button>
        ) : (
          <Button size="small" onClick={() => onAsk({ what: "cordon", node: member.name })}>
            <Trans>Cordon</Trans>
          </Button>
        ),
    },
  ];
  return (
    <Section title={<Plural value={members.length} one="# node" other="# nodes" />} flush>
      <Table label={t`Nodes`} columns={columns} rows={members} rowKey={(member) => member.name} keyboard={false} />
    </Section>
  );
}

/** One square a shard; those of one node look alike. */
const HUES = ["bg-accent", "bg-busy", "bg-ask", "bg-good", "bg-warn", "bg-strong"];

function Shards({ shards, members }: { shards: Schemas["ShardView"][]; members: Member[] }) {
  const { t } = useLingui();
  const hue = (node: string | null) => {
    const index = members.findIndex((member) => member.name === node);
    return index < 0 ? "bg-bad" : HUES[index % HUES.length]!;
  };
  const homeless = shards.filter((shard) => shard.node === null).length;
  return (
    <Section title={<Trans>Who owns each shard</Trans>}>
      {homeless > 0 && (
        <p role="alert" className="mb-3 font-medium text-bad">
          <Plural
            value={homeless}
            one="# shard has no living owner: its jobs do not fire."
            other="# shards have no living owner: their jobs do not fire."
          />
        </p>
      )}
      <ul className="mb-3 flex flex-wrap gap-x-4 gap-y-1 text-[0.9rem]">
        {members.map((member) => (
          <li key={member.name} className="flex items-center gap-1.5">
            <span aria-hidden className={`size-3 rounded-[3px] ${hue(member.name)}`} />
            <span className="hostile">{member.name}</span>{" "}
            <span className="text-faint tabular-nums">{member.shards}</span>
          </li>
        ))}
      </ul>
      <div
        role="img"
        aria-label={t`Shards by owner`}
        className="grid grid-cols-[repeat(auto-fill,minmax(1.35rem,1fr))] gap-[3px]"
      >
        {shards.map((shard) => (
          <span
            key={shard.shard}
            title={t`shard ${shard.shard}: ${shard.node ?? t`nobody`}, epoch ${shard.epoch}`}
            className={`h-5 rounded-[3px] ${hue(shard.node)}`}
          />
        ))}
      </div>
    </Section>
  );
}

function Events({ events }: { events: Schemas["ClusterEventView"][] }) {
  return (
    <ul className="max-h-96 divide-y divide-line overflow-auto">
      {events.slice(0, 200).map((event, index) => (
        <li key={index} className="flex flex-wrap gap-x-3 px-4 py-1.5">
          <span className="w-28 text-soft">
            <Time at={event.at} />
          </span>
          <code>{event.kind}</code>
          {event.node && <strong className="hostile">{event.node}</strong>}
          {event.shard != null && (
            <span>
              <Trans>shard {event.shard}</Trans>
            </span>
          )}
          <span className="hostile text-soft">{event.detail}</span>
        </li>
      ))}
    </ul>
  );
}
