import { useLingui } from "@lingui/react/macro";
import { times } from "../lib/prefs";
import { useValue } from "../lib/store";
import { absolute, duration, relative, useNow, viewerZone } from "../lib/time";

/** An instant as the person wants to see times; the tooltip has it in all zones. */
export function Time({
  at,
  zone,
  always,
}: {
  at: string | null | undefined;
  zone?: string;
  always?: "relative" | "local" | "utc";
}) {
  const chosen = useValue(times);
  if (!at) return <span className="text-faint">–</span>;
  const ms = Date.parse(at);
  const way = always ?? chosen;
  const title = inZones(ms, zone).join("\n");
  return (
    <time dateTime={at} title={title} className="whitespace-nowrap tabular-nums">
      {way === "relative" ? <Relative ms={ms} /> : way === "utc" ? `${absolute(ms, "UTC")}Z` : absolute(ms)}
    </time>
  );
}

function Relative({ ms }: { ms: number }) {
  const now = useNow();
  return <>{relative(ms, now)}</>;
}

export function inZones(ms: number, zone?: string): string[] {
  const zones = [...new Set([zone, viewerZone(), "UTC"].filter((name): name is string => !!name))];
  return zones.map((name) => absolute(ms, name, true));
}

/** An instant in the job's zone, the viewer's and UTC, one below the other. */
export function TimeInZones({ at, zone }: { at: string | null | undefined; zone?: string }) {
  const now = useNow();
  if (!at) return <span className="text-faint">–</span>;
  const ms = Date.parse(at);
  return (
    <span className="block">
      <span className="block font-medium">{relative(ms, now)}</span>
      {inZones(ms, zone).map((text) => (
        <span key={text} className="block text-[0.86rem] text-soft tabular-nums">
          {text}
        </span>
      ))}
    </span>
  );
}

/** How long something took, or has taken until now. */
export function Span({ from, to }: { from: string | null | undefined; to: string | null | undefined }) {
  const { t } = useLingui();
  if (!from) return <span className="text-faint">–</span>;
  if (to) return <span className="whitespace-nowrap tabular-nums">{duration(Date.parse(to) - Date.parse(from))}</span>;
  return (
    <span className="whitespace-nowrap text-busy tabular-nums" title={t`still going on`}>
      <Growing since={Date.parse(from)} />
    </span>
  );
}

function Growing({ since }: { since: number }) {
  const now = useNow();
  return <>{duration(Math.max(0, now - since))}…</>;
}
