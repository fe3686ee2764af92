import { Trans } from "@lingui/react/macro";
import type { ReactNode } from "react";
import { Code } from "./page";
import { Tag } from "./state";

/** A value as its caller wrote it; `empty` stands for nothing. */
export function Json({ value, empty }: { value: unknown; empty: ReactNode }) {
  const none = value === undefined || value === null || (typeof value === "object" && Object.keys(value).length === 0);
  return none ? (
    <p className="text-faint">{empty}</p>
  ) : (
    <Code>{typeof value === "string" ? value : JSON.stringify(value, null, 2)}</Code>
  );
}

/** Params that are secret have names only. */
export function SecretNames({ of }: { of: Record<string, string> | undefined }) {
  const names = Object.keys(of ?? {});
  if (names.length === 0) return null;
  return (
    <p className="mt-2 flex flex-wrap gap-1 text-soft">
      <Trans>Secret, never shown:</Trans>
      {names.map((name) => (
        <Tag key={name}>{name}</Tag>
      ))}
    </p>
  );
}
