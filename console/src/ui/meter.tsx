import { Trans } from "@lingui/react/macro";
import { amount } from "../lib/time";

/** How much of a limit is used. */
export function Meter({ used, most, label, none }: { used: number; most: number; label: string; none?: string }) {
  if (most <= 0) {
    return (
      <span className="whitespace-nowrap tabular-nums">
        {amount(used)} <span className="text-faint">{none ?? <Trans>(no limit)</Trans>}</span>
      </span>
    );
  }
  const share = Math.min(1, used / most);
  const colour = share >= 1 ? "bg-bad" : share >= 0.8 ? "bg-warn" : "bg-accent";
  return (
    <span className="block min-w-28">
      <span className="flex justify-between gap-3 text-[0.9rem] tabular-nums">
        <span className={share >= 1 ? "font-medium text-bad" : share >= 0.8 ? "font-medium text-warn" : ""}>
          {amount(used)}
        </span>
        <span className="text-faint">{amount(most)}</span>
      </span>
      <span
        role="meter"
        aria-label={label}
        aria-valuenow={used}
        aria-valuemin={0}
        aria-valuemax={most}
        className="mt-0.5 block h-1.5 overflow-hidden rounded-full bg-line"
      >
        <span className={`block h-full rounded-full ${colour}`} style={{ width: `${100 * share}%` }} />
      </span>
    </span>
  );
}
