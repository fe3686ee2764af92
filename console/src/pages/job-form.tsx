import { Trans, useLingui } from "@lingui/react/macro";
import { valibotResolver } from "@hookform/resolvers/valibot";
import { useQuery } from "@tanstack/react-query";
import { useBlocker, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useDeferredValue, useMemo, useState, type ReactNode } from "react";
import { useForm, useWatch, type FieldError } from "react-hook-form";
import { createJob, newKey, replaceJob } from "../api/actions";
import { problemOf, type Job } from "../api/client";
import { jobQuery } from "../api/queries";
import { blank, formOf, schema, specIn, specOf, triggerOf, type Form, type Spec } from "../lib/job-form";
import { viewerZone } from "../lib/time";
import { useSession } from "../shell";
import { Button } from "../ui/button";
import { ActionDialog } from "../ui/dialog";
import { Failure, Loading } from "../ui/feedback";
import { PageHead, Section } from "../ui/page";
import { tell } from "../ui/toast";
import { Changes } from "./changes";
import { ForPeople, Hooks, What, When, Where, type Fields } from "./job-fields";
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
  const navigate = useNavigate();
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
      case "long":
        return t`This is too long.`;
      case "pairs":
        return t`One name=value a line.`;
      case "hooks":
        return t`At most four jobs.`;
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
  const choose: Fields["choose"] = (name, value) =>
    form.setValue<"type" | "kind">(name, value, { shouldDirty: true, shouldValidate: formState.isSubmitted });
  const fields: Fields = { register, values, of, choose };
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
            <When fields={fields} isNew={!was} />
            <What fields={fields} />
            <Where fields={fields} />
            <Hooks fields={fields} />
            <ForPeople fields={fields} />
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
