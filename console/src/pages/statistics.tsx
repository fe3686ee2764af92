// What the node counts about a job's ended runs, when it is asked.
import { Plural, Trans, useLingui } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import type { Job, Schemas } from "../api/client";
import { statisticsQuery } from "../api/explain";
import { amount, duration } from "../lib/time";
import { Failure, Loading } from "../ui/feedback";
import { Fact, Facts, Section } from "../ui/page";
import { State } from "../ui/state";
import { Time } from "../ui/time";

export const WINDOWS = ["24h", "7d", "30d"] as const;
export type Window = (typeof WINDOWS)[number];
/** Below this share of successes the number is marked. */
const GOOD = 0.97;

const percent = (share: number) => `${Math.floor(1000 * share) / 10} %`;

export function Statistics({ job, window }: { job: Job; window: Window }) {
  const { t } = useLingui();
  const navigate = useNavigate({ from: "/jobs/$jobId" });
  const read = useQuery(statisticsQuery(job.jobId, window));
  const of = read.data;
  const names: Record<Window, string> = { "24h": t`24 hours`, "7d": t`7 days`, "30d": t`30 days` };
  const rows: [string, (times: Schemas["TimesView"]) => number][] = [
    [t`mean`, (times) => times.mean],
    [t`half at most`, (times) => times.p50],
    [t`95 of 100 at most`, (times) => times.p95],
    [t`longest`, (times) => times.max],
  ];
  return (
    <Section
      title={<Trans>Statistics</Trans>}
      actions={
        <select
          className="input w-auto"
          aria-label={t`Time that statistics cover`}
          value={window}
          onChange={(event) => {
            const chosen = event.target.value as Window;
            void navigate({
              search: (was) => ({ ...was, window: chosen === "24h" ? undefined : chosen }),
              replace: true,
              resetScroll: false,
            });
          }}
        >
          {WINDOWS.map((name) => (
            <option key={name} value={name}>
              {names[name]}
            </option>
          ))}
        </select>
      }
    >
      {!of ? (
        read.error ? (
          <Failure compact error={read.error} retry={() => void read.refetch()} />
        ) : (
          <Loading lines={3} />
        )
      ) : of.runs === 0 ? (
        <p className="text-soft">
          <Trans>No run of this time has ended.</Trans>
        </p>
      ) : (
        <>
          <Facts>
            <Fact name={<Trans>Succeeded</Trans>}>
              {of.successRate == null ? (
                "–"
              ) : (
                <span className={of.successRate < GOOD ? "font-medium text-bad" : ""}>{percent(of.successRate)}</span>
              )}
            </Fact>
            <Fact name={<Trans>Needed more than one attempt</Trans>}>{amount(of.retried)}</Fact>
          </Facts>
          <ul className="mt-3 flex flex-wrap gap-x-4 gap-y-1" aria-label={t`Ended runs by state`}>
            {of.outcomes.map(({ state, count }) => (
              <li key={state}>
                <Link
                  to="/runs"
                  search={{ job: job.jobId, state, from: of.from }}
                  className="inline-flex items-center gap-1.5 hover:underline"
                >
                  <State of={state} /> <strong className="tabular-nums">{amount(count)}</strong>
                </Link>
              </li>
            ))}
          </ul>
          <div tabIndex={0} role="group" aria-label={t`Durations and lateness`} className="mt-3 overflow-x-auto">
            <table className="data" aria-label={t`Durations and lateness`}>
              <thead>
                <tr>
                  <th scope="col" />
                  <th scope="col" className="num">
                    <Trans>took</Trans>
                  </th>
                  <th scope="col" className="num">
                    <Trans>late</Trans>
                  </th>
                </tr>
              </thead>
              <tbody>
                {rows.map(([name, pick]) => (
                  <tr key={name}>
                    <th scope="row">{name}</th>
                    {[of.durationMs, of.latenessMs].map((times, index) => (
                      <td key={index} className="num whitespace-nowrap">
                        {times ? duration(pick(times)) : "–"}
                      </td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <p className="mt-3 text-[0.86rem] text-faint">
            <Plural value={of.runs} one="# ended run" other="# ended runs" />, <Trans>created since</Trans>{" "}
            <Time at={of.from} />
            {of.truncated && (
              <>
                . <Trans>There are more: these are the newest.</Trans>
              </>
            )}
          </p>
        </>
      )}
    </Section>
  );
}
