// Reasons as a node tells them: the sentence, who holds what is waited for, and what would free it.
import { msg } from "@lingui/core/macro";
import { Trans, useLingui } from "@lingui/react/macro";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Schemas } from "../api/client";
import { JobName } from "./job-name";
import { State, TONES, type Tone } from "./state";
import { Time } from "./time";

type Reason = Schemas["ReasonView"];

const TOPICS = {
  WAIT: { text: msg`why it waits`, tone: "warn" },
  LATE: { text: msg`why it was late`, tone: "warn" },
  END: { text: msg`how it ended`, tone: "quiet" },
  ORIGIN: { text: msg`why it exists`, tone: "quiet" },
  INSTANT: { text: msg`what became of it`, tone: "quiet" },
  SCHEDULE: { text: msg`when it fires`, tone: "quiet" },
} satisfies Record<Reason["topic"], { text: unknown; tone: Tone }>;

const ORDER = Object.keys(TOPICS);
/** Of an instant and of a schedule: these say that something did not happen. */
const BAD = [
  "INSTANT_SKIPPED",
  "INSTANT_MISSED",
  "NODE_NOT_READY",
  "JOB_PAUSED",
  "TENANT_PAUSED",
  "SYSTEM_PAUSED",
  "JOB_QUARANTINED",
];

/** What stops something first, then the rest. */
export function Reasons({ of, empty }: { of: Reason[]; empty?: ReactNode }) {
  const { i18n, t } = useLingui();
  if (of.length === 0) return <p className="text-soft">{empty}</p>;
  const sorted = [...of].sort((a, b) => ORDER.indexOf(a.topic) - ORDER.indexOf(b.topic));
  return (
    <ul className="space-y-3" aria-label={t`Reasons`}>
      {sorted.map((reason, index) => {
        const { text, tone } = TOPICS[reason.topic] ?? { text: reason.topic, tone: "quiet" };
        const shown = TONES[BAD.includes(reason.code) ? "warn" : tone];
        return (
          <li key={index} data-code={reason.code} className="border-l-2 border-line pl-3">
            <p className="flex flex-wrap items-baseline gap-x-2 text-[0.82rem]">
              <span className={`font-medium ${shown.text}`}>{typeof text === "string" ? text : i18n._(text)}</span>
              <code className="text-faint">{reason.code}</code>
            </p>
            <p className="hostile">{reason.sentence}</p>
            {(reason.heldBy?.length ?? 0) > 0 && (
              <ul className="mt-1 space-y-0.5 text-[0.9rem]" aria-label={t`Who holds it`}>
                {reason.heldBy?.map((holder, at) => (
                  <li key={at} className="flex flex-wrap items-baseline gap-x-2">
                    <Holder of={holder} />
                  </li>
                ))}
              </ul>
            )}
            {reason.freedBy && (
              <p className="hostile mt-1 text-[0.9rem] text-soft">
                <Trans>
                  What helps: <span className="text-ink">{reason.freedBy}</span>
                </Trans>
              </p>
            )}
          </li>
        );
      })}
    </ul>
  );
}

function Holder({ of }: { of: Schemas["HolderView"] }) {
  const { state, since, reason } = of;
  return (
    <>
      <Named of={of} />
      {state && <State of={state} plain />}
      {since && (
        <span className="text-soft">
          <Trans>
            since <Time at={since} />
          </Trans>
        </span>
      )}
      {reason && <q className="hostile text-soft">{reason}</q>}
    </>
  );
}

function Named({ of: { kind, id, name } }: { of: Schemas["HolderView"] }) {
  const shown = name ?? id ?? "";
  // Ids are numbers of less than 2^53 as text.
  const number = id && /^\d{1,16}$/.test(id) ? Number(id) : undefined;
  switch (kind) {
    case "RUN":
      return number === undefined ? (
        <span className="hostile">{shown}</span>
      ) : (
        <Link to="/runs/$runId" params={{ runId: number }} className="link">
          <Trans>run {number}</Trans>
        </Link>
      );
    case "JOB":
      return number === undefined ? <span className="hostile">{shown}</span> : <JobName jobId={number} ask />;
    case "EXECUTOR":
      return (
        <Link to="/executors" className="link hostile">
          <Trans>executor {shown}</Trans>
        </Link>
      );
    case "POOL":
      return (
        <Link to="/executors" className="link hostile">
          <Trans>pool {shown}</Trans>
        </Link>
      );
    case "TENANT":
      return (
        <Link to="/tenants" className="link hostile">
          <Trans>tenant {shown}</Trans>
        </Link>
      );
    case "TARGET":
      return (
        <span className="hostile">
          <Trans>target {shown}</Trans>
        </span>
      );
    case "CALLER":
      return (
        <Link to="/audit" search={{ who: shown }} className="link hostile">
          <Trans>by {shown}</Trans>
        </Link>
      );
    case "DAG_NODE":
      return number === undefined ? (
        <span className="hostile">
          <Trans>node {shown}</Trans>
        </span>
      ) : (
        <Link to="/runs/$runId" params={{ runId: number }} className="link hostile">
          <Trans>node {shown}</Trans>
        </Link>
      );
  }
}
