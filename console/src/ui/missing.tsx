import { Trans } from "@lingui/react/macro";
import type { Schemas } from "../api/client";

/** Nodes of whom nothing is in the numbers. */
export function Missing({ of }: { of: Schemas["MissingNode"][] | undefined }) {
  if (!of || of.length === 0) return null;
  return (
    <div role="status" className="mb-3 rounded-[10px] border border-warn/40 bg-warn-wash p-3">
      <p className="font-medium text-warn">
        <Trans>Some nodes did not answer: nothing of them is shown.</Trans>
      </p>
      <ul className="mt-1">
        {of.map(({ node, reason }) => (
          <li key={node} className="hostile">
            <strong>{node}</strong>: {reason}
          </li>
        ))}
      </ul>
    </div>
  );
}
