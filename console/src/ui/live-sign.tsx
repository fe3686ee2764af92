import { Trans } from "@lingui/react/macro";
import type { Problem } from "../api/client";
import type { Live } from "../api/events";

/** Whether changes are shown as they happen. */
export function LiveSign({ live, problem }: { live: Live; problem?: Problem }) {
  const colour = { live: "bg-good", connecting: "bg-warn pulse", waiting: "bg-bad pulse", over: "bg-strong" }[live];
  return (
    <span role="status" className="inline-flex items-center gap-1.5 text-[0.84rem] text-soft" title={problem?.message}>
      <span aria-hidden className={`size-2 rounded-full ${colour}`} />
      {live === "live" && <Trans>live</Trans>}
      {live === "connecting" && <Trans>connecting</Trans>}
      {live === "waiting" && <Trans>not live: connects again</Trans>}
      {live === "over" && (problem ? <Trans>not live</Trans> : <Trans>final</Trans>)}
    </span>
  );
}
