import { Trans, useLingui } from "@lingui/react/macro";
import type { Schemas } from "../api/client";
import { differences, shown } from "../lib/diff";
import type { Spec } from "../lib/job-form";

interface Row {
  field: string;
  before: string;
  after: string;
}

/** What an edit changes, field by field. */
export function Changes({ was, is }: { was: Spec; is: Spec }) {
  return <Rows of={differences(was, is).map(({ path, was, is }) => ({ field: path, before: was, after: is }))} />;
}

/** What the node says that differs between two versions. */
export function FieldChanges({ of }: { of: Schemas["FieldChange"][] }) {
  return (
    <Rows
      of={of.map(({ field, before, after }) => ({
        field,
        before: shown(before ?? undefined),
        after: shown(after ?? undefined),
      }))}
    />
  );
}

function Rows({ of }: { of: Row[] }) {
  const { t } = useLingui();
  if (of.length === 0)
    return (
      <p className="text-soft">
        <Trans>Nothing differs.</Trans>
      </p>
    );
  return (
    <div
      tabIndex={0}
      role="group"
      aria-label={t`What differs`}
      className="max-h-[50dvh] overflow-auto rounded-lg border border-line"
    >
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
          {of.map(({ field, before, after }) => (
            <tr key={field}>
              <td>
                <code>{field}</code>
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
