import { Trans, useLingui } from "@lingui/react/macro";
import { valibotResolver } from "@hookform/resolvers/valibot";
import { useQuery } from "@tanstack/react-query";
import { useBlocker, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useDeferredValue, useMemo, useState, type ReactNode } from "react";
import { useForm, useWatch, type FieldError } from "react-hook-form";
import { createJob, newKey, replaceJob } from "../api/actions";
import { problemOf, type Job } from "../api/client";
import { jobQuery, poolsQuery } from "../api/queries";
import { differences } from "../lib/diff";
import { blank, formOf, schema, specIn, specOf, triggerOf, type Form, type Spec } from "../lib/job-form";
import { viewerZone } from "../lib/time";
import { useIsOperator, useSession } from "../shell";
import { Button } from "../ui/button";
import { ActionDialog } from "../ui/dialog";
import { Failure, Loading } from "../ui/feedback";
import { Check, Field } from "../ui/field";
import { PageHead, Section } from "../ui/page";
import { tell } from "../ui/toast";
import { SchedulePreview } from "./preview";

export function NewJob() {
  const { from } = useSearch({ from: "/jobs/new" });
  const original = useQuery({ ...jobQuery(from ?? 0), enabled: from !== undefined, refetchInterval: false });
  const session = useSession();
  if (from !== undefined && original.isPending) return <Loading lines={10} />;
  if (original.error) return <Failure error={original.error} />;
  const base: Spec = original.data
    ? withoutSecrets(specIn(original.data))
    : {
        ...blank,
        tenantId: session?.tenantId ?? "default",
        trigger: { ...blank.trigger, timezone: viewerZone() } as Spec["trigger"],
      };
  return <JobForm key={from ?? "new"} base={original.data ? { ...base, name: `${base.name}-copy` } : base} />;
}

/** Secrets are never shown, so a copy has none. */
const withoutSecrets = ({ secretParams: _, ...spec }: Spec): Spec => spec as Spec;

export function EditJob() {
  const { jobId } = useParams({ from: "/jobs/$jobId/edit" });
  const job = useQuery({ ...jobQuery(jobId), refetchInterval: false, staleTime: Infinity });
  if (job.isPending) return <Loading lines={10} />;
  if (!job.data) return <Failure error={job.error} retry={() => void job.refetch()} />;
  return <JobForm key={`${jobId}-${job.data.version}`} base={specIn(job.data)} was={job.data} />;
}

function JobForm({ base, was }: { base: Spec; was?: Job }) {
  const { t } = useLingui();
  const operator = useIsOperator();
  const navigate = useNavigate();
  const pools = useQuery({ ...poolsQuery, enabled: operator ?? false, refetchInterval: false });
  const first = useMemo(() => formOf(base), [base]);
  const form = useForm<Form>({ defaultValues: first, resolver: valibotResolver(schema), mode: "onBlur" });
  const { register, control, handleSubmit, formState } = form;
  const { errors, isDirty, isSubmitting } = formState;
  const values = useWatch({ control }) as Form;
  const [refused, setRefused] = useState<unknown>();
  const [review, setReview] = useState<Spec>();
  const [key] = useState(newKey);
  const [saved, setSaved] = useState(false);
  useBlocker({
    shouldBlockFn: () => isDirty && !saved && !window.confirm(t`Leave without saving?`),
    enableBeforeUnload: () => isDirty && !saved,
  });
  const sentence = (error: FieldError | undefined): ReactNode => {
    switch (error?.message) {
      case undefined:
        return undefined;
      case "required":
        return t`Write something here.`;
      case "name":
        return t`At most 128 letters, digits, and . _ - /`;
      case "number":
        return t`Write a number that is large enough.`;
      case "pairs":
        return t`One name=value a line.`;
      case "json":
        return t`Write a JSON object.`;
      case "url":
        return t`Begin with http:// or https://`;
      default:
        return error?.message;
    }
  };
  const of = (name: keyof Form) => sentence(errors[name] as FieldError | undefined);
  const submit = handleSubmit(async (checked) => {
    setRefused(undefined);
    const spec = specOf(checked, base);
    if (was) {
      setReview(spec);
      return;
    }
    try {
      const created = await createJob(spec, key);
      setSaved(true);
      tell(<Trans>{spec.name} is created.</Trans>);
      await navigate({ to: "/jobs/$jobId", params: { jobId: created.jobId }, ignoreBlocker: true });
    } catch (thrown) {
      setRefused(problemOf(thrown));
    }
  });
  const trigger = useDeferredValue(JSON.stringify(triggerOf(values, base.trigger)));
  const canPreview = values.type !== "ONCE" || values.at !== "";
  const zones = useMemo(() => Intl.supportedValuesOf?.("timeZone") ?? [], []);
  const number = { valueAsNumber: true };
  return (
    <>
      {/* The dialog has a form of its own, so it is not within this one. */}
      <form onSubmit={(event) => void submit(event)} noValidate>
        <PageHead
          name={was ? t`Edit ${was.name}` : t`Create a job`}
          title={was ? <Trans>Edit {was.name}</Trans> : <Trans>Create a job</Trans>}
        >
          <Button
            onClick={() => void navigate(was ? { to: "/jobs/$jobId", params: { jobId: was.jobId } } : { to: "/jobs" })}
          >
            <Trans>Cancel</Trans>
          </Button>
          <Button type="submit" kind="primary" disabled={isSubmitting || (was !== undefined && !isDirty)}>
            {was ? <Trans>Look at the changes</Trans> : <Trans>Create</Trans>}
          </Button>
        </PageHead>
        {refused !== undefined && (
          <div className="mb-4">
            <Failure error={refused} />
          </div>
        )}
        {Object.keys(errors).length > 0 && (
          <p role="alert" className="mb-4 rounded-lg bg-bad-wash p-3 font-medium text-bad">
            <Trans>Some fields are not right yet.</Trans>
          </p>
        )}
        <div className="grid items-start gap-x-4 xl:grid-cols-[minmax(0,1fr)_26rem]">
          <div className="min-w-0">
            <Section title={<Trans>What and when</Trans>}>
              <div className="grid gap-4 sm:grid-cols-2">
                <Field
                  label={<Trans>Name</Trans>}
                  error={of("name")}
                  hint={
                    was ? (
                      <Trans>A name cannot be changed.</Trans>
                    ) : (
                      <Trans>Unique in its tenant. A / makes groups: billing/daily</Trans>
                    )
                  }
                >
                  <input className="input" autoFocus={!was} disabled={!!was} spellCheck={false} {...register("name")} />
                </Field>
                {operator && (
                  <Field label={<Trans>Tenant</Trans>} error={of("tenantId")}>
                    <input className="input" disabled={!!was} spellCheck={false} {...register("tenantId")} />
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
                  onChange={(type) =>
                    form.setValue("type", type, { shouldDirty: true, shouldValidate: formState.isSubmitted })
                  }
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
                      hint={
                        <Trans>5 fields, minute first; 6 with seconds; 7 with a year. Also L, W, # and @daily.</Trans>
                      }
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
                    label={
                      values.type === "FIXED_RATE" ? (
                        <Trans>Every</Trans>
                      ) : (
                        <Trans>So long after the end of a run</Trans>
                      )
                    }
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

            <Section title={<Trans>What it does</Trans>}>
              <Segments
                name={t`Kind of action`}
                value={values.kind}
                onChange={(kind) =>
                  form.setValue("kind", kind, { shouldDirty: true, shouldValidate: formState.isSubmitted })
                }
                of={[
                  ["COMMAND", t`runs a command`],
                  ["HTTP", t`sends an HTTP request`],
                  ["HANDLER", t`calls a handler`],
                ]}
              />
              <div className="mt-4 grid gap-4">
                {values.kind === "COMMAND" && (
                  <>
                    <Field
                      label={
                        values.shell ? <Trans>Shell script</Trans> : <Trans>Program and arguments, one a line</Trans>
                      }
                      error={of("command")}
                    >
                      <textarea className="input" rows={4} spellCheck={false} {...register("command")} />
                    </Field>
                    <Check
                      label={<Trans>In a shell</Trans>}
                      hint={
                        <Trans>
                          With /bin/sh -c. Otherwise the program is started as it is, without quoting or variables.
                        </Trans>
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
                    <Field
                      label={<Trans>Headers</Trans>}
                      error={of("headers")}
                      hint={<Trans>One name=value a line.</Trans>}
                    >
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
                  hint={
                    <Trans>
                      One name=value a line. They are sealed and never shown again; *** keeps what is stored.
                    </Trans>
                  }
                >
                  <textarea
                    className="input"
                    rows={2}
                    spellCheck={false}
                    autoComplete="off"
                    {...register("secretParams")}
                  />
                </Field>
              </div>
            </Section>

            <Section title={<Trans>Where, and what if it goes wrong</Trans>}>
              <div className="grid gap-4 sm:grid-cols-2">
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
                <Field
                  label={<Trans>Attempts</Trans>}
                  error={of("maxAttempts")}
                  hint={<Trans>1 = it is not tried again.</Trans>}
                >
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
                <Field label={<Trans>When it is due and a run is still active</Trans>}>
                  <select className="input" {...register("concurrencyPolicy")}>
                    <option value="FORBID">{t`the due instant is skipped`}</option>
                    <option value="QUEUE_ONE">{t`one run waits`}</option>
                    <option value="ALLOW">{t`runs side by side`}</option>
                    <option value="REPLACE">{t`the active run is canceled`}</option>
                  </select>
                </Field>
                <Field
                  label={<Trans>Started when it fails for good</Trans>}
                  hint={<Trans>Name of a job of the same tenant.</Trans>}
                >
                  <input className="input" spellCheck={false} {...register("onFailure")} />
                </Field>
                <Field
                  label={<Trans>Priority</Trans>}
                  error={of("priority")}
                  hint={<Trans>0 to 1000, higher first.</Trans>}
                >
                  <input className="input" type="number" min={0} max={1000} {...register("priority", number)} />
                </Field>
                <Field label={<Trans>Labels</Trans>} error={of("labels")} hint={<Trans>One name=value a line.</Trans>}>
                  <textarea className="input" rows={2} spellCheck={false} {...register("labels")} />
                </Field>
              </div>
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
            </Section>
          </div>
          <aside className="xl:sticky xl:top-17">
            <Section title={<Trans>What the node makes of it</Trans>}>
              {canPreview ? (
                <SchedulePreview trigger={JSON.parse(trigger)} count={20} quiet />
              ) : (
                <p className="text-soft">
                  <Trans>Choose a time.</Trans>
                </p>
              )}
            </Section>
          </aside>
        </div>
      </form>
      {review && was && (
        <ActionDialog
          wide
          withReason={false}
          title={t`Save ${was.name}?`}
          action={<Trans>Save</Trans>}
          run={async () => {
            await replaceJob(was, review);
            setSaved(true);
            tell(<Trans>{was.name} is saved.</Trans>);
            await navigate({ to: "/jobs/$jobId", params: { jobId: was.jobId }, ignoreBlocker: true });
          }}
          onClose={() => setReview(undefined)}
        >
          <Changes was={base} is={review} />
        </ActionDialog>
      )}
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

function Segments<T extends string>({
  name,
  value,
  of,
  onChange,
}: {
  name: string;
  value: T;
  of: [T, string][];
  onChange: (value: T) => void;
}) {
  return (
    <div role="radiogroup" aria-label={name} className="flex flex-wrap gap-1.5">
      {of.map(([key, text]) => (
        <label
          key={key}
          className={`cursor-pointer rounded-lg border px-3 py-1.5 has-focus-visible:outline-2 has-focus-visible:outline-accent ${value === key ? "border-accent bg-accent-wash font-medium text-accent" : "border-line hover:border-strong"}`}
        >
          <input
            type="radio"
            name={name}
            value={key}
            checked={value === key}
            onChange={() => onChange(key)}
            className="sr-only"
          />
          {text}
        </label>
      ))}
    </div>
  );
}

function Changes({ was, is }: { was: Spec; is: Spec }) {
  const found = differences(was, is);
  if (found.length === 0)
    return (
      <p className="text-soft">
        <Trans>Nothing differs.</Trans>
      </p>
    );
  return (
    <div className="max-h-[50dvh] overflow-auto rounded-lg border border-line">
      <table className="data text-[0.88rem]">
        <thead>
          <tr>
            <th scope="col">
              <Trans>Field</Trans>
            </th>
            <th scope="col">
              <Trans>Before</Trans>
            </th>
            <th scope="col">
              <Trans>After</Trans>
            </th>
          </tr>
        </thead>
        <tbody>
          {found.map(({ path, was: before, is: after }) => (
            <tr key={path}>
              <td>
                <code>{path}</code>
              </td>
              <td className="hostile whitespace-pre-wrap text-bad">{before}</td>
              <td className="hostile whitespace-pre-wrap text-good">{after}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
