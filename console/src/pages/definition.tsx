// What the job is, with what its schedule means and may surprise with.
import { Plural, Trans, useLingui } from "@lingui/react/macro";
import type { Job, Schemas } from "../api/client";
import { duration, everySeconds } from "../lib/time";
import { JobByName } from "../ui/job-name";
import { Fact, Facts, Section } from "../ui/page";
import { Tag } from "../ui/state";
import { Time } from "../ui/time";
import { Json, SecretNames } from "../ui/json";
import { DefinedNodes } from "./nodes";
import { SchedulePreview } from "./preview";

export default function Definition({ job }: { job: Job }) {
  const { t } = useLingui();
  const { retryPolicy: retry, trigger } = job;
  const graph = job.action?.kind === "DAG" ? job.action : undefined;
  const concurrency: Record<Schemas["ConcurrencyPolicy"], string> = {
    ALLOW: t`runs side by side`,
    FORBID: t`the due instant is skipped`,
    REPLACE: t`the active run is canceled`,
    QUEUE_ONE: t`one run waits`,
  };
  const misfire: Record<Schemas["MisfirePolicy"], string> = {
    SKIP: t`skip them`,
    FIRE_ONCE_NOW: t`one run for all of them`,
    FIRE_ALL_MISSED: t`a run for each`,
  };
  const backoff =
    retry.backoff === "FIXED"
      ? t`always ${everySeconds(retry.baseDelaySec)}`
      : t`${everySeconds(retry.baseDelaySec)}, doubling up to ${everySeconds(retry.maxDelaySec)}`;
  return (
    <>
      <Section title={<Trans>Schedule</Trans>}>
        <SchedulePreview trigger={trigger} count={9} />
        {trigger.type !== "MANUAL" && (
          <div className="mt-4">
            <Facts>
              <Fact name={<Trans>Instants that could not fire in time</Trans>}>{misfire[trigger.misfirePolicy]}</Fact>
              <Fact name={<Trans>They count as missed after</Trans>}>{everySeconds(trigger.misfireThresholdSec)}</Fact>
              {"jitterSec" in trigger && trigger.jitterSec > 0 && (
                <Fact name={<Trans>Spread over</Trans>}>{everySeconds(trigger.jitterSec)}</Fact>
              )}
              {"startAt" in trigger && trigger.startAt && (
                <Fact name={<Trans>Valid from</Trans>}>
                  <Time at={trigger.startAt} always="local" />
                </Fact>
              )}
              {"endAt" in trigger && trigger.endAt && (
                <Fact name={<Trans>Valid until</Trans>}>
                  <Time at={trigger.endAt} always="local" />
                </Fact>
              )}
            </Facts>
          </div>
        )}
      </Section>
      <Section title={<Trans>How it runs</Trans>}>
        <Facts>
          {graph ? (
            <>
              <Fact name={<Trans>Nodes at once</Trans>}>{graph.maxParallel}</Fact>
              <Fact name={<Trans>When a node fails</Trans>}>
                {graph.failFast ? t`the whole run stops` : t`what does not depend on it goes on`}
              </Fact>
              <Fact name={<Trans>Time limit of a run</Trans>}>
                {graph.timeoutSec == null ? t`none` : duration(graph.timeoutSec * 1000)}
              </Fact>
            </>
          ) : (
            <>
              <Fact name={<Trans>Pool</Trans>}>{job.executorSelector}</Fact>
              <Fact name={<Trans>Time limit of an attempt</Trans>}>{duration(job.timeoutSec * 1000)}</Fact>
              <Fact name={<Trans>Attempts</Trans>}>{retry.maxAttempts}</Fact>
              {retry.maxAttempts > 1 && <Fact name={<Trans>Between attempts</Trans>}>{backoff}</Fact>}
            </>
          )}
          <Fact name={<Trans>When a run is still active</Trans>}>{concurrency[job.concurrencyPolicy]}</Fact>
          {!graph && (
            <>
              <Fact name={<Trans>When its executor is lost</Trans>}>
                {job.idempotent ? t`run it again` : t`ask a person`}
              </Fact>
              <Fact name={<Trans>When it fails for good</Trans>}>
                {job.deadLetter ? t`keep a dead letter` : t`nothing more`}
              </Fact>
              <Fact name={<Trans>Priority</Trans>}>{job.priority}</Fact>
              <Fact name={<Trans>Needs</Trans>}>{t`${job.resources.cpu} CPU, ${job.resources.memoryMb} MiB`}</Fact>
            </>
          )}
          {Object.keys(job.labels).length > 0 && (
            <Fact name={<Trans>Labels</Trans>} wide>
              <span className="flex flex-wrap gap-1">
                {Object.entries(job.labels).map(([key, value]) => (
                  <Tag key={key}>
                    {key}={value}
                  </Tag>
                ))}
              </span>
            </Fact>
          )}
        </Facts>
      </Section>
      <Hooks job={job} />
      {graph && (
        <Section title={<Plural value={graph.nodes.length} one="# node" other="# nodes" />} flush>
          <DefinedNodes graph={graph} tenant={job.tenantId} />
        </Section>
      )}
      <div className="grid items-start gap-x-4 lg:grid-cols-2">
        <Section title={<Trans>What it does</Trans>}>
          <Json value={job.action ?? { kind: "HANDLER", name: job.name }} empty="" />
        </Section>
        <Section title={<Trans>Params</Trans>}>
          <Json value={job.params} empty={<Trans>none</Trans>} />
          <SecretNames of={job.secretParams} />
        </Section>
      </div>
      <p className="text-[0.86rem] text-faint">
        <Trans>Created</Trans> <Time at={job.createdAt} />, <Trans>changed</Trans> <Time at={job.updatedAt} />
      </p>
    </>
  );
}

/** Jobs that are started when a run ends, by the kind of end. */
function Hooks({ job }: { job: Job }) {
  const { t } = useLingui();
  const kinds = [
    [t`When a run fails`, job.hooks?.onFailure],
    [t`When a run times out`, job.hooks?.onTimeout],
    [t`When a run becomes a dead letter`, job.hooks?.onDeadLetter],
    [t`When a run succeeds`, job.hooks?.onSuccess],
  ] as const;
  const used = kinds.filter(([, hooks]) => (hooks?.length ?? 0) > 0);
  if (used.length === 0) return null;
  return (
    <Section title={<Trans>Jobs that it starts</Trans>}>
      <Facts>
        {used.map(([when, hooks]) => (
          <Fact key={when} name={when}>
            <ul className="space-y-1">
              {hooks?.map((hook, place) => (
                <li key={place}>
                  <JobByName name={hook.job} tenant={job.tenantId} />{" "}
                  {hook.compensation && (
                    <Tag tone="warn">
                      <Trans>compensation</Trans>
                    </Tag>
                  )}
                  {hook.params != null && Object.keys(hook.params).length > 0 && (
                    <code className="hostile block text-[0.82rem] text-soft">{JSON.stringify(hook.params)}</code>
                  )}
                </li>
              ))}
            </ul>
          </Fact>
        ))}
      </Facts>
    </Section>
  );
}
