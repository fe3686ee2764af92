// The nodes of a DAG: those of a run with their states, as a picture and as a table, and those of a definition.
import { Plural, Trans, useLingui } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { markNode, retryNodes } from "../api/actions";
import type { DagNode, DagRun, Graph, Run, Schemas } from "../api/client";
import { nodesQuery } from "../api/queries";
import { Button } from "../ui/button";
import { ActionDialog } from "../ui/dialog";
import { Failure, Loading } from "../ui/feedback";
import { Check } from "../ui/field";
import { JobByName } from "../ui/job-name";
import { Section } from "../ui/page";
import { RunLink } from "../ui/run-cells";
import { Segments } from "../ui/segments";
import { lookOf, State, Tag, TONES } from "../ui/state";
import { Table, type Column } from "../ui/table";

/** Of a node in the picture, pixels. The node gives the middle of each. */
const BOX = { width: 184, height: 56 };
/** Larger graphs are shown as a table only: so many lines are no picture. */
const DRAWN_NODES = 200;
const DRAWN_EDGES = 1000;

type Edge = Schemas["EdgeSpec"];
type Asked = { node: DagNode; what: "retry" | "mark" };

/** A node may wait without anything being wrong, unlike a message of the outbox. */
const stateOf = (node: DagNode) => (node.state === "WAITING" ? "NODE_WAITING" : node.state);

function useRules(): Record<Schemas["NodeRule"], string> {
  const { t } = useLingui();
  return {
    ALL_SUCCESS: t`all before it succeeded`,
    ALL_DONE: t`all before it have ended`,
    ANY_SUCCESS: t`one before it succeeded`,
    ANY_FAILED: t`one before it failed`,
    NONE_FAILED: t`all before it have ended and none failed`,
  };
}

export function RunNodes({ run }: { run: Run }) {
  const query = useQuery(nodesQuery(run.runId));
  const [asked, setAsked] = useState<Asked>();
  if (query.isPending) return <Loading lines={6} />;
  if (!query.data) return <Failure error={query.error} retry={() => void query.refetch()} />;
  const dag = query.data;
  const states = new Map<string, number>();
  for (const node of dag.nodes) states.set(stateOf(node), (states.get(stateOf(node)) ?? 0) + 1);
  const drawn = dag.nodes.length <= DRAWN_NODES && dag.edges.length <= DRAWN_EDGES;
  return (
    <>
      <Section
        flush
        title={<Plural value={dag.nodes.length} one="# node" other="# nodes" />}
        actions={[...states].map(([state, count]) => (
          <span key={state} className="flex items-center gap-1 tabular-nums">
            {count} <State of={state} plain />
          </span>
        ))}
      >
        {drawn && <Picture dag={dag} />}
        <NodeTable dag={dag} onAsk={setAsked} />
      </Section>
      {asked?.what === "retry" && <RetryDialog run={run} node={asked.node} onClose={() => setAsked(undefined)} />}
      {asked?.what === "mark" && <MarkDialog run={run} node={asked.node} onClose={() => setAsked(undefined)} />}
    </>
  );
}

/** Boxes where the node says that they stand, over the lines between them. */
function Picture({ dag }: { dag: DagRun }) {
  const { t } = useLingui();
  const places = new Map(dag.nodes.map((node) => [node.id, node]));
  return (
    <div
      role="group"
      aria-label={t`Picture of the nodes`}
      tabIndex={0}
      className="max-h-[34rem] overflow-auto border-b border-line bg-sunken/50 p-3"
    >
      <div className="relative mx-auto" style={{ width: dag.width, height: dag.height }}>
        <svg aria-hidden width={dag.width} height={dag.height} className="absolute inset-0 fill-none stroke-2">
          {dag.edges.map((edge) => {
            const [from, to] = [places.get(edge.from), places.get(edge.to)];
            if (!from || !to) return null;
            const [begin, end] = [from.x + BOX.width / 2, to.x - BOX.width / 2];
            const middle = (begin + end) / 2;
            return (
              <g key={`${edge.from} ${edge.to}`} className={from.state === "SUCCESS" ? "stroke-good" : "stroke-strong"}>
                <path
                  d={`M${begin} ${from.y}C${middle} ${from.y} ${middle} ${to.y} ${end} ${to.y}`}
                  strokeDasharray={edge.when ? "5 4" : undefined}
                />
                <path d={`M${end - 6} ${to.y - 4}L${end} ${to.y}L${end - 6} ${to.y + 4}`} />
              </g>
            );
          })}
        </svg>
        {dag.nodes.map((node) => (
          <Box key={node.id} node={node} />
        ))}
      </div>
    </div>
  );
}

function Box({ node }: { node: DagNode }) {
  const { i18n } = useLingui();
  const { tone, icon: Icon, text } = lookOf(stateOf(node));
  const style = { left: node.x - BOX.width / 2, top: node.y - BOX.height / 2, ...BOX };
  const look = `absolute flex flex-col justify-center rounded-lg border border-current/50 px-3 ${TONES[tone].text} ${TONES[tone].wash}`;
  const inside = (
    <>
      <span className="truncate font-medium text-ink [unicode-bidi:isolate]">{node.id}</span>
      <span className="flex items-center gap-1 truncate text-[0.84rem]">
        <Icon aria-hidden className="size-3.5 shrink-0" /> {i18n._(text)}
      </span>
    </>
  );
  return node.runId == null ? (
    <div style={style} className={`${look} border-dashed`}>
      {inside}
    </div>
  ) : (
    <Link to="/runs/$runId" params={{ runId: node.runId }} style={style} className={`${look} hover:border-current`}>
      {inside}
    </Link>
  );
}

function NodeTable({ dag, onAsk }: { dag: DagRun; onAsk: (asked: Asked) => void }) {
  const { t } = useLingui();
  const rules = useRules();
  const isOver = (node: DagNode) => !["WAITING", "STARTING", "ACTIVE"].includes(node.state);
  const columns: Column<DagNode>[] = [
    { name: "id", head: t`Node`, bare: true, cell: (node) => <span className="hostile font-medium">{node.id}</span> },
    {
      name: "state",
      head: t`State`,
      bare: true,
      cell: (node) => (
        <>
          <span className="flex flex-wrap items-center gap-1">
            <State of={stateOf(node)} /> {node.marked && <Tag>{t`set by a person`}</Tag>}
          </span>
          {node.error && <span className="hostile mt-1 block max-w-96 text-[0.84rem] text-soft">{node.error}</span>}
        </>
      ),
    },
    { name: "job", head: t`Job`, cell: (node) => <JobByName name={node.job} tenant={dag.tenantId} /> },
    {
      name: "run",
      head: t`Run`,
      cell: (node) => (node.runId == null ? "–" : <RunLink runId={node.runId} />),
    },
    {
      name: "rule",
      head: t`Runs when`,
      from: "lg",
      main: true,
      cell: (node) => <Rule edges={dag.edges} id={node.id} text={rules[node.rule]} />,
    },
    {
      name: "act",
      head: <span className="sr-only">{t`Actions`}</span>,
      bare: true,
      cell: (node) => (
        <span className="flex justify-end gap-1.5 max-sm:justify-start">
          {isOver(node) && (
            <Button
              size="small"
              onClick={() => onAsk({ node, what: "retry" })}
              aria-label={t`Run again: node ${node.id}`}
            >
              <Trans>Run again</Trans>
            </Button>
          )}
          {!["STARTING", "ACTIVE"].includes(node.state) && (
            <Button size="small" onClick={() => onAsk({ node, what: "mark" })} aria-label={t`Mark the node ${node.id}`}>
              <Trans>Mark</Trans>
            </Button>
          )}
        </span>
      ),
    },
  ];
  return <Table label={t`Nodes`} columns={columns} rows={dag.nodes} rowKey={(node) => node.id} keyboard={false} />;
}

/** When a node runs, and which nodes come before it. */
function Rule({ edges, id, text }: { edges: Edge[]; id: string; text: string }) {
  const before = edges.filter((edge) => edge.to === id);
  if (before.length === 0)
    return (
      <span className="text-soft">
        <Trans>at once</Trans>
      </span>
    );
  return (
    <>
      <span className="text-soft">{text}:</span>{" "}
      {before.map(({ from, when }, index) => (
        <span key={from} className="hostile">
          {index > 0 && ", "}
          {from}
          {when && (
            <>
              {" "}
              <span className="text-soft">
                <Trans>if</Trans>
              </span>{" "}
              <code>{when}</code>
            </>
          )}
        </span>
      ))}
    </>
  );
}

function RetryDialog({ run, node, onClose }: { run: Run; node: DagNode; onClose: () => void }) {
  const { t } = useLingui();
  const [andAfter, setAndAfter] = useState(false);
  return (
    <ActionDialog
      title={t`Run the node ${node.id} again`}
      action={<Trans>Run again</Trans>}
      canGo={!run.compensated}
      run={(reason) => retryNodes(run.runId, { nodes: [node.id], andAfter, reason })}
      onClose={onClose}
    >
      <p>
        <Trans>What did not run because of this node follows it. What succeeded does not run again.</Trans>
      </p>
      {run.compensated && (
        <p className="rounded-lg bg-warn-wash p-3">
          <Trans>
            The compensation of the DAG run was started, so its nodes cannot be run again one by one. Run the DAG run
            again, which asks you first.
          </Trans>
        </p>
      )}
      <Check label={<Trans>And all nodes that come after it, also those that succeeded</Trans>}>
        <input type="checkbox" checked={andAfter} onChange={(event) => setAndAfter(event.target.checked)} />
      </Check>
    </ActionDialog>
  );
}

function MarkDialog({ run, node, onClose }: { run: Run; node: DagNode; onClose: () => void }) {
  const { t } = useLingui();
  const [state, setState] = useState<"SUCCESS" | "SKIPPED">("SUCCESS");
  return (
    <ActionDialog
      title={t`Mark the node ${node.id}`}
      action={<Trans>Mark</Trans>}
      run={(reason) => markNode(run.runId, { node: node.id, state, reason })}
      onClose={onClose}
    >
      <p>
        <Trans>The node does not run. What waits for it goes on, as if it had ended like this:</Trans>
      </p>
      <Segments
        name={t`State of the node`}
        value={state}
        onChange={setState}
        of={[
          ["SUCCESS", t`succeeded`],
          ["SKIPPED", t`skipped`],
        ]}
      />
    </ActionDialog>
  );
}

/** The nodes of a definition. */
export function DefinedNodes({ graph, tenant }: { graph: Graph; tenant: string }) {
  const { t } = useLingui();
  const rules = useRules();
  const columns: Column<Schemas["NodeSpec"]>[] = [
    { name: "id", head: t`Node`, bare: true, cell: (node) => <span className="hostile font-medium">{node.id}</span> },
    { name: "job", head: t`Job`, cell: (node) => <JobByName name={node.job} tenant={tenant} /> },
    {
      name: "rule",
      head: t`Runs when`,
      main: true,
      cell: (node) => <Rule edges={graph.edges} id={node.id} text={rules[node.rule]} />,
    },
  ];
  return <Table label={t`Nodes`} columns={columns} rows={graph.nodes} rowKey={(node) => node.id} keyboard={false} />;
}
