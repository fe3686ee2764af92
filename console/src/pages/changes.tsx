import { Trans } from "@lingui/react/macro";
import { differences } from "../lib/diff";
import type { Spec } from "../lib/job-form";

/** What an edit changes, field by field. */
export function Changes({ was, is }: { was: Spec; is: Spec }) {
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
