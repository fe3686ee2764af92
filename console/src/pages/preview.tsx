// What a trigger means, by the node that would fire it: in words, its next instants, and what may surprise.
import { Trans, useLingui } from "@lingui/react/macro";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { TriangleAlert } from "lucide-react";
import { api, good, problemOf, type Schemas } from "../api/client";
import { zoneOf } from "../lib/schedule";
import { absolute, relative, useNow, viewerZone } from "../lib/time";
import { Failure, Loading } from "../ui/feedback";

type AnyTrigger = Schemas["TriggerInput"];
const HAZARDS = 4;

export const previewQuery = (trigger: AnyTrigger, count: number) => ({
  queryKey: ["preview", trigger, count],
  queryFn: ({ signal }: { signal: AbortSignal }) =>
    good(api.POST("/api/v1/schedules/preview", { signal, body: { trigger, count } })),
  placeholderData: keepPreviousData,
  staleTime: 30_000,
  retry: false,
});

export function SchedulePreview({
  trigger,
  count,
  quiet = false,
}: {
  trigger: AnyTrigger;
  count: number;
  quiet?: boolean;
}) {
  const { t } = useLingui();
  const manual = trigger.type === "MANUAL";
  const preview = useQuery({ ...previewQuery(trigger, count), enabled: !manual });
  const now = useNow();
  if (manual)
    return (
      <p className="text-soft">
        <Trans>It runs only when somebody, or another system, asks for it.</Trans>
      </p>
    );
  if (preview.error) {
    const problem = problemOf(preview.error);
    // What was typed is not whole yet: a sentence is enough.
    return quiet && problem.status === 400 ? (
      <p className="hostile text-bad">{problem.message}</p>
    ) : (
      <Failure error={problem} compact />
    );
  }
  if (!preview.data) return <Loading lines={3} />;
  const { description, next, hazards } = preview.data;
  const zone = zoneOf(preview.data.trigger) ?? "UTC";
  const own = viewerZone();
  return (
    <div className={preview.isPlaceholderData ? "opacity-60" : ""} aria-live="polite">
      <p className="hostile text-[1.05rem] font-medium">{description}</p>
      {next.length === 0 ? (
        <p className="mt-2 text-soft">
          <Trans>It is not due any more.</Trans>
        </p>
      ) : (
        <ol
          aria-label={t`The next due instants`}
          className={`mt-2 grid gap-x-8 ${quiet ? "" : "sm:grid-cols-2 lg:grid-cols-3"}`}
        >
          {next.map((instant) => {
            const ms = Date.parse(instant);
            return (
              <li
                key={instant}
                className="flex items-baseline justify-between gap-3 border-b border-line py-1 text-[0.9rem] tabular-nums"
              >
                <span>
                  {weekday(ms, zone)} {absolute(ms, zone)}
                  {own !== zone && <span className="block text-[0.82rem] text-faint">{absolute(ms, own, true)}</span>}
                </span>
                <span className="whitespace-nowrap text-soft">{relative(ms, now)}</span>
              </li>
            );
          })}
        </ol>
      )}
      {hazards.length > 0 && (
        <details className="mt-3 rounded-lg bg-warn-wash p-3" open={!quiet}>
          <summary className="font-medium text-warn">
            <TriangleAlert aria-hidden className="mr-1 inline size-4 align-[-0.15em]" />{" "}
            <Trans>When the clock changes, it fires otherwise</Trans>
          </summary>
          <ul className="mt-1.5 space-y-1 text-[0.88rem]">
            {hazards.slice(0, HAZARDS).map((hazard) => (
              <li key={hazard} className="hostile">
                {hazard}
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

function weekday(ms: number, zone: string): string {
  return new Intl.DateTimeFormat(document.documentElement.lang || "en", { timeZone: zone, weekday: "short" }).format(
    ms,
  );
}
