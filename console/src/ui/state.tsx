// States in words, with a sign and a colour. Colour alone says nothing.
import { msg } from "@lingui/core/macro";
import type { MessageDescriptor } from "@lingui/core";
import { useLingui } from "@lingui/react/macro";
import {
  Ban,
  CircleCheck,
  CircleDashed,
  CircleHelp,
  CirclePause,
  CircleX,
  Clock,
  ClockAlert,
  Hourglass,
  LoaderCircle,
  OctagonMinus,
  RotateCw,
  Trash2,
  Unplug,
  type LucideIcon,
} from "lucide-react";

export type Tone = "good" | "bad" | "warn" | "busy" | "ask" | "quiet";
interface Look {
  tone: Tone;
  icon: LucideIcon;
  text: MessageDescriptor;
}

export const TONES: Record<Tone, { text: string; wash: string; fill: string }> = {
  good: { text: "text-good", wash: "bg-good-wash", fill: "fill-good" },
  bad: { text: "text-bad", wash: "bg-bad-wash", fill: "fill-bad" },
  warn: { text: "text-warn", wash: "bg-warn-wash", fill: "fill-warn" },
  busy: { text: "text-busy", wash: "bg-busy-wash", fill: "fill-busy" },
  ask: { text: "text-ask", wash: "bg-ask-wash", fill: "fill-ask" },
  quiet: { text: "text-soft", wash: "bg-sunken", fill: "fill-strong" },
};

const LOOKS: Record<string, Look> = {
  // Runs and attempts.
  PENDING: { tone: "quiet", icon: CircleDashed, text: msg`pending` },
  QUEUED: { tone: "warn", icon: Hourglass, text: msg`waiting` },
  RUNNING: { tone: "busy", icon: LoaderCircle, text: msg`running` },
  STOPPING: { tone: "warn", icon: OctagonMinus, text: msg`stopping` },
  SUSPECTED_LOST: { tone: "warn", icon: Unplug, text: msg`suspected lost` },
  RETRY_WAIT: { tone: "warn", icon: RotateCw, text: msg`waits to retry` },
  NEEDS_CONFIRMATION: { tone: "ask", icon: CircleHelp, text: msg`needs a person` },
  SUCCESS: { tone: "good", icon: CircleCheck, text: msg`succeeded` },
  FAILED: { tone: "bad", icon: CircleX, text: msg`failed` },
  TIMEOUT: { tone: "bad", icon: ClockAlert, text: msg`timed out` },
  CANCELED: { tone: "quiet", icon: Ban, text: msg`canceled` },
  LOST: { tone: "bad", icon: Unplug, text: msg`lost` },
  // Nodes of DAGs, besides those above.
  NODE_WAITING: { tone: "quiet", icon: CircleDashed, text: msg`waits for others` },
  STARTING: { tone: "warn", icon: Hourglass, text: msg`starting` },
  ACTIVE: { tone: "busy", icon: LoaderCircle, text: msg`running` },
  UPSTREAM_FAILED: { tone: "bad", icon: Unplug, text: msg`one before it failed` },
  STARTED: { tone: "busy", icon: LoaderCircle, text: msg`started` },
  // Jobs.
  ENABLED: { tone: "good", icon: CircleCheck, text: msg`enabled` },
  PAUSED: { tone: "warn", icon: CirclePause, text: msg`paused` },
  DELETED: { tone: "quiet", icon: Trash2, text: msg`deleted` },
  QUARANTINED: { tone: "bad", icon: OctagonMinus, text: msg`quarantined` },
  // Backfills, besides those above.
  CANCELING: { tone: "warn", icon: OctagonMinus, text: msg`is being canceled` },
  DONE: { tone: "good", icon: CircleCheck, text: msg`ended` },
  // Executors and nodes.
  READY: { tone: "good", icon: CircleCheck, text: msg`ready` },
  DISCONNECTED: { tone: "bad", icon: Unplug, text: msg`disconnected` },
  DRAINING: { tone: "warn", icon: CirclePause, text: msg`draining` },
  ALIVE: { tone: "good", icon: CircleCheck, text: msg`alive` },
  SUSPECTED: { tone: "warn", icon: CircleHelp, text: msg`suspected` },
  CORDONED: { tone: "warn", icon: CirclePause, text: msg`cordoned` },
  CLOCK_WRONG: { tone: "bad", icon: ClockAlert, text: msg`clock is wrong` },
  // The ledger.
  FIRED: { tone: "good", icon: CircleCheck, text: msg`fired` },
  FIRED_LATE: { tone: "warn", icon: Clock, text: msg`fired late` },
  COALESCED: { tone: "busy", icon: CircleDashed, text: msg`merged into one run` },
  SKIPPED: { tone: "quiet", icon: Ban, text: msg`skipped` },
  MISSED: { tone: "bad", icon: CircleX, text: msg`missed` },
  DST_SKIPPED: { tone: "quiet", icon: Clock, text: msg`not on the clock that day` },
  // The outbox.
  WAITING: { tone: "warn", icon: Hourglass, text: msg`waiting` },
  UNDELIVERED: { tone: "bad", icon: Unplug, text: msg`undelivered` },
  REFUSED: { tone: "bad", icon: CircleX, text: msg`refused` },
  DROPPED: { tone: "bad", icon: Trash2, text: msg`dropped` },
};

export function lookOf(state: string): Look {
  // A newer node may have states that this page does not know: they are shown as they are.
  return LOOKS[state] ?? { tone: "quiet", icon: CircleDashed, text: { id: state, message: state } };
}

export const SOURCES: Record<string, MessageDescriptor> = {
  SCHEDULE: msg`schedule`,
  MANUAL: msg`by hand`,
  BACKFILL: msg`backfill`,
  REPLAY: msg`replay`,
  DAG: msg`DAG`,
  EVENT: msg`hook`,
  COMPENSATION: msg`compensation`,
};

/** Why a run exists, in a word. */
export const sourceText = (source: string): MessageDescriptor => SOURCES[source] ?? { id: source, message: source };

export function State({ of, plain = false }: { of: string; plain?: boolean }) {
  const { i18n } = useLingui();
  const { tone, icon: Icon, text } = lookOf(of);
  const { text: colour, wash } = TONES[tone];
  const spins = ["RUNNING", "STARTED", "ACTIVE"].includes(of);
  return (
    <span
      data-state={of}
      className={`inline-flex items-center gap-1 whitespace-nowrap ${colour} ${plain ? "" : `${wash} rounded-full py-px pr-2 pl-1.5 text-[0.86rem] font-medium`}`}
    >
      <Icon aria-hidden className={`size-3.5 shrink-0 ${spins ? "animate-spin [animation-duration:2.4s]" : ""}`} />
      {i18n._(text)}
    </span>
  );
}

export function Tag({ children, tone = "quiet" }: { children: React.ReactNode; tone?: Tone }) {
  const { text, wash } = TONES[tone];
  return (
    <span
      className={`inline-block max-w-64 truncate rounded px-1.5 align-middle text-[0.84rem] [unicode-bidi:isolate] ${text} ${wash}`}
    >
      {children}
    </span>
  );
}
