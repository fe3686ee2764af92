// The fields of a job in three groups: when it is due, what it does, and where it runs.
import { Trans, useLingui } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { useMemo, type ReactNode } from "react";
import type { UseFormRegister } from "react-hook-form";
import { poolsQuery } from "../api/queries";
import type { Form } from "../lib/job-form";
import { viewerZone } from "../lib/time";
import { useIsOperator } from "../shell";
import { Check, Field } from "../ui/field";
import { Section } from "../ui/page";
import { Segments } from "../ui/segments";

export interface Fields {
  register: UseFormRegister<Form>;
  values: Form;
  /** What is wrong with a field, in a sentence. */
  of: (name: keyof Form) => ReactNode;
  choose: <N extends "type" | "kind">(name: N, value: Form[N]) => void;
}

const number = { valueAsNumber: true } as const;
/** What a DAG looks like, for an empty field. */
const GRAPH = `{
  "nodes": [
    {"id": "load", "job": "billing/load"},
    {"id": "report", "job": "billing/report"}
  ],
  "edges": [{"from": "load", "to": "report"}]
}`;

/** Texts in any language, which change nothing about how it runs. */
export function ForPeople({ fields: { register, of } }: { fields: Fields }) {
  return (
    <Section title={<Trans>For people</Trans>}>
      <div className="grid gap-4 sm:grid-cols-2">
        <Field
          label={<Trans>Display name</Trans>}
          error={of("displayName")}
          hint={<Trans>In any language; lists show it beside the name.</Trans>}
        >
          <input className="input" {...register("displayName")} />
        </Field>
        <Field
          label={<Trans>Owner</Trans>}
          error={of("owner")}
          hint={<Trans>Whom to ask: a team or an address.</Trans>}
        >
          <input className="input" {...register("owner")} />
        </Field>
        <Field label={<Trans>Description</Trans>} error={of("description")} className="sm:col-span-2">
          <textarea className="input font-sans!" rows={3} {...register("description")} />
        </Field>
        <Field
          label={<Trans>Annotations</Trans>}
          error={of("annotations")}
          hint={<Trans>One name=value a line, such as runbook=https://example.org/billing</Trans>}
          className="sm:col-span-2"
        >
          <textarea className="input" rows={2} spellCheck={false} {...register("annotations")} />
        </Field>
      </div>
    </Section>
  );
}

/** Name, tenant and trigger. */
export function When({ fields, isNew }: { fields: Fields; isNew: boolean }) {
  const { t } = useLingui();
  const { register, values, of, choose } = fields;
  const operator = useIsOperator();
  const zones = useMemo(() => Intl.supportedValuesOf?.("timeZone") ?? [], []);
  return (
    <Section title={<Trans>What and when</Trans>}>
      <div className="grid gap-4 sm:grid-cols-2">
        <Field
          label={<Trans>Name</Trans>}
          error={of("name")}
          hint={
            !isNew ? (
              <Trans>A name cannot be changed.</Trans>
            ) : (
              <Trans>Unique in its tenant. A / makes groups: billing/daily</Trans>
            )
          }
        >
          <input className="input" autoFocus={isNew} disabled={!isNew} spellCheck={false} {...register("name")} />
        </Field>
        {operator && (
          <Field label={<Trans>Tenant</Trans>} error={of("tenantId")}>
            <input className="input" disabled={!isNew} spellCheck={false} {...register("tenantId")} />
          </Field>
        )}
      </div>
      <fieldset className="mt-4">
        <legend className="mb-1.5 text-[0.9rem] font-medium">
          <Trans>It is due</Trans>
        </legend>
        <Segments
          name={t`Kind of trigger`}
          value={values.type}
          onChange={(type) => choose("type", type)}
          of={[
            ["CRON", t`by a cron expression`],
            ["FIXED_RATE", t`at a fixed rate`],
            ["FIXED_DELAY", t`after each run`],
            ["ONCE", t`once`],
            ["MANUAL", t`by hand`],
          ]}
        />
      </fieldset>
      <div className="mt-4 grid gap-4 sm:grid-cols-2">
        {values.type === "CRON" && (
          <>
            <Field
              label={<Trans>Cron expression</Trans>}
              error={of("expr")}
              hint={<Trans>5 fields, minute first; 6 with seconds; 7 with a year. Also L, W, # and @daily.</Trans>}
            >
              <input className="input font-mono" spellCheck={false} autoComplete="off" {...register("expr")} />
            </Field>
            <Field label={<Trans>Time zone</Trans>} error={of("timezone")}>
              <input className="input" list="zones" spellCheck={false} {...register("timezone")} />
            </Field>
            <datalist id="zones">
              {zones.map((zone) => (
                <option key={zone} value={zone} />
              ))}
            </datalist>
          </>
        )}
        {(values.type === "FIXED_RATE" || values.type === "FIXED_DELAY") && (
          <Field
            label={values.type === "FIXED_RATE" ? <Trans>Every</Trans> : <Trans>So long after the end of a run</Trans>}
            error={of("every")}
          >
            <EveryField amount={register("every", number)} unit={register("unit")} />
          </Field>
        )}
        {values.type === "ONCE" && (
          <Field label={<Trans>At</Trans>} error={of("at")} hint={<Trans>In your zone, {viewerZone()}</Trans>}>
            <input className="input" type="datetime-local" step={1} {...register("at")} />
          </Field>
        )}
      </div>
      {values.type !== "MANUAL" && (
        <details className="mt-4">
          <summary className="text-soft">
            <Trans>When it cannot fire in time, and when the clock changes</Trans>
          </summary>
          <div className="mt-3 grid gap-4 sm:grid-cols-2">
            <Field
              label={<Trans>Instants that were missed</Trans>}
              hint={<Trans>For example while the cluster was down.</Trans>}
            >
              <select className="input" {...register("misfirePolicy")}>
                <option value="FIRE_ONCE_NOW">{t`one run for all of them`}</option>
                <option value="FIRE_ALL_MISSED">{t`a run for each`}</option>
                <option value="SKIP">{t`skip them`}</option>
              </select>
            </Field>
            <Field label={<Trans>Missed after, seconds</Trans>} error={of("misfireThresholdSec")}>
              <input className="input" type="number" min={0} {...register("misfireThresholdSec", number)} />
            </Field>
            {values.type === "CRON" && (
              <>
                <Field label={<Trans>An instant that the clock leaps over</Trans>}>
                  <select className="input" {...register("gap")}>
                    <option value="SHIFT">{t`fires right after the leap`}</option>
                    <option value="SKIP">{t`is skipped`}</option>
                  </select>
                </Field>
                <Field label={<Trans>An instant that comes twice</Trans>}>
                  <select className="input" {...register("overlap")}>
                    <option value="FIRST">{t`fires the first time`}</option>
                    <option value="SECOND">{t`fires the second time`}</option>
                    <option value="BOTH">{t`fires both times`}</option>
                  </select>
                </Field>
              </>
            )}
          </div>
        </details>
      )}
    </Section>
  );
}

/** Action and params. */
export function What({ fields }: { fields: Fields }) {
  const { t } = useLingui();
  const { register, values, of, choose } = fields;
  return (
    <Section title={<Trans>What it does</Trans>}>
      <Segments
        name={t`Kind of action`}
        value={values.kind}
        onChange={(kind) => choose("kind", kind)}
        of={[
          ["COMMAND", t`runs a command`],
          ["HTTP", t`sends an HTTP request`],
          ["HANDLER", t`calls a handler`],
          ["DAG", t`runs other jobs in order`],
        ]}
      />
      <div className="mt-4 grid gap-4">
        {values.kind === "COMMAND" && (
          <>
            <Field
              label={values.shell ? <Trans>Shell script</Trans> : <Trans>Program and arguments, one a line</Trans>}
              error={of("command")}
            >
              <textarea className="input" rows={4} spellCheck={false} {...register("command")} />
            </Field>
            <Check
              label={<Trans>In a shell</Trans>}
              hint={
                <Trans>With /bin/sh -c. Otherwise the program is started as it is, without quoting or variables.</Trans>
              }
            >
              <input type="checkbox" {...register("shell")} />
            </Check>
            <Field
              label={<Trans>Environment</Trans>}
              error={of("env")}
              hint={
                <Trans>
                  One NAME=value a line. It inherits nothing of the executor but what its configuration allows.
                </Trans>
              }
            >
              <textarea
                className="input"
                rows={2}
                spellCheck={false}
                placeholder="PATH=/usr/bin:/bin"
                {...register("env")}
              />
            </Field>
          </>
        )}
        {values.kind === "HTTP" && (
          <>
            <div className="grid gap-4 sm:grid-cols-[8rem_1fr]">
              <Field label={<Trans>Method</Trans>}>
                <select className="input" {...register("method")}>
                  {["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"].map((method) => (
                    <option key={method}>{method}</option>
                  ))}
                </select>
              </Field>
              <Field label="URL" error={of("url")}>
                <input
                  className="input"
                  type="url"
                  spellCheck={false}
                  placeholder="https://hooks.example/billing"
                  {...register("url")}
                />
              </Field>
            </div>
            <Field label={<Trans>Headers</Trans>} error={of("headers")} hint={<Trans>One name=value a line.</Trans>}>
              <textarea className="input" rows={2} spellCheck={false} {...register("headers")} />
            </Field>
            <Field
              label={<Trans>Body</Trans>}
              hint={<Trans>A JSON value is sent as JSON, anything else as text.</Trans>}
            >
              <textarea className="input" rows={3} spellCheck={false} {...register("body")} />
            </Field>
          </>
        )}
        {values.kind === "HANDLER" && (
          <Field
            label={<Trans>Name of the handler</Trans>}
            hint={<Trans>Empty: the handler that is named like the job.</Trans>}
          >
            <input className="input" spellCheck={false} {...register("handler")} />
          </Field>
        )}
        {values.kind === "DAG" && (
          <Field
            label={<Trans>Nodes and edges</Trans>}
            error={of("graph")}
            hint={
              <Trans>
                A JSON object. A node has an id and the name of a job of the same tenant; an edge says that one node
                ends before the other starts.
              </Trans>
            }
          >
            <textarea className="input" rows={14} spellCheck={false} placeholder={GRAPH} {...register("graph")} />
          </Field>
        )}
        <Field
          label={<Trans>Params</Trans>}
          error={of("params")}
          hint={<Trans>A JSON object that every run gets.</Trans>}
        >
          <textarea className="input" rows={3} spellCheck={false} placeholder="{}" {...register("params")} />
        </Field>
        <Field
          label={<Trans>Secret params</Trans>}
          error={of("secretParams")}
          hint={<Trans>One name=value a line. They are sealed and never shown again; *** keeps what is stored.</Trans>}
        >
          <textarea className="input" rows={2} spellCheck={false} autoComplete="off" {...register("secretParams")} />
        </Field>
      </div>
    </Section>
  );
}

/** Pool, attempts, and what is done when it goes wrong. */
export function Where({ fields }: { fields: Fields }) {
  const { t } = useLingui();
  const { register, of, values } = fields;
  // Its nodes are jobs, and say all of this themselves.
  const isDag = values.kind === "DAG";
  return (
    <Section title={isDag ? <Trans>What if it goes wrong</Trans> : <Trans>Where, and what if it goes wrong</Trans>}>
      <div className="grid gap-4 sm:grid-cols-2">
        {isDag ? null : <HowItRuns fields={fields} />}
        <Field label={<Trans>When it is due and a run is still active</Trans>}>
          <select className="input" {...register("concurrencyPolicy")}>
            <option value="FORBID">{t`the due instant is skipped`}</option>
            <option value="QUEUE_ONE">{t`one run waits`}</option>
            <option value="ALLOW">{t`runs side by side`}</option>
            <option value="REPLACE">{t`the active run is canceled`}</option>
          </select>
        </Field>
        {!isDag && (
          <Field label={<Trans>Priority</Trans>} error={of("priority")} hint={<Trans>0 to 1000, higher first.</Trans>}>
            <input className="input" type="number" min={0} max={1000} {...register("priority", number)} />
          </Field>
        )}
        <Field label={<Trans>Labels</Trans>} error={of("labels")} hint={<Trans>One name=value a line.</Trans>}>
          <textarea className="input" rows={2} spellCheck={false} {...register("labels")} />
        </Field>
      </div>
      {!isDag && (
        <div className="mt-4 space-y-3">
          <Check
            label={<Trans>It may run twice</Trans>}
            hint={
              <Trans>
                If its executor is lost, it runs again by itself. Otherwise the run waits until a person says what
                became of it.
              </Trans>
            }
          >
            <input type="checkbox" {...register("idempotent")} />
          </Check>
          <Check label={<Trans>Keep a dead letter when it fails for good</Trans>}>
            <input type="checkbox" {...register("deadLetter")} />
          </Check>
        </div>
      )}
    </Section>
  );
}

/** Jobs that are started when a run ends. Params of hooks and which of them are compensations stay as they are. */
export function Hooks({ fields: { register, of, values } }: { fields: Fields }) {
  // A DAG makes no dead letter; those of its nodes belong to their jobs.
  const isDag = values.kind === "DAG";
  const hint = <Trans>Names of jobs of the same tenant, with commas between them.</Trans>;
  return (
    <Section title={<Trans>Jobs that it starts</Trans>}>
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label={<Trans>When a run fails</Trans>} hint={hint} error={of("onFailure")}>
          <input className="input" spellCheck={false} {...register("onFailure")} />
        </Field>
        <Field label={<Trans>When a run times out</Trans>} hint={hint} error={of("onTimeout")}>
          <input className="input" spellCheck={false} {...register("onTimeout")} />
        </Field>
        {!isDag && (
          <Field label={<Trans>When a run becomes a dead letter</Trans>} hint={hint} error={of("onDeadLetter")}>
            <input className="input" spellCheck={false} {...register("onDeadLetter")} />
          </Field>
        )}
        <Field label={<Trans>When a run succeeds</Trans>} hint={hint} error={of("onSuccess")}>
          <input className="input" spellCheck={false} {...register("onSuccess")} />
        </Field>
      </div>
    </Section>
  );
}

/** Pool, time limit and attempts of a body. */
function HowItRuns({ fields }: { fields: Fields }) {
  const { t } = useLingui();
  const { register, of } = fields;
  const operator = useIsOperator();
  const pools = useQuery({ ...poolsQuery, enabled: operator ?? false, refetchInterval: false });
  return (
    <>
      <Field
        label={<Trans>Pool</Trans>}
        error={of("executorSelector")}
        hint={<Trans>Executors of this pool run it.</Trans>}
      >
        <input className="input" list="pools" spellCheck={false} {...register("executorSelector")} />
      </Field>
      <datalist id="pools">
        {pools.data?.items.map((pool) => (
          <option key={pool.name} value={pool.name} />
        ))}
      </datalist>
      <Field label={<Trans>Time limit of an attempt, seconds</Trans>} error={of("timeoutSec")}>
        <input className="input" type="number" min={1} {...register("timeoutSec", number)} />
      </Field>
      <Field label={<Trans>Attempts</Trans>} error={of("maxAttempts")} hint={<Trans>1 = it is not tried again.</Trans>}>
        <input className="input" type="number" min={1} {...register("maxAttempts", number)} />
      </Field>
      <Field label={<Trans>Delay between attempts</Trans>}>
        <select className="input" {...register("backoff")}>
          <option value="EXPONENTIAL">{t`doubles each time`}</option>
          <option value="FIXED">{t`is always the same`}</option>
        </select>
      </Field>
      <Field label={<Trans>First delay, seconds</Trans>} error={of("baseDelaySec")}>
        <input className="input" type="number" min={0} step="any" {...register("baseDelaySec", number)} />
      </Field>
      <Field label={<Trans>Longest delay, seconds</Trans>} error={of("maxDelaySec")}>
        <input className="input" type="number" min={0} step="any" {...register("maxDelaySec", number)} />
      </Field>
    </>
  );
}

function EveryField({ amount, unit, ...rest }: { amount: object; unit: object }) {
  const { t } = useLingui();
  return (
    <span className="flex gap-2">
      <input className="input" type="number" min={0} step="any" {...rest} {...amount} />
      <select className="input w-auto" aria-label={t`Unit`} {...unit}>
        <option value="1">{t`seconds`}</option>
        <option value="60">{t`minutes`}</option>
        <option value="3600">{t`hours`}</option>
        <option value="86400">{t`days`}</option>
      </select>
    </span>
  );
}
