import type { ReactNode } from "react";
import { Code } from "./page";

/** A value as its caller wrote it; `empty` stands for nothing. */
export function Json({ value, empty }: { value: unknown; empty: ReactNode }) {
  const none = value === undefined || value === null || (typeof value === "object" && Object.keys(value).length === 0);
  return none ? (
    <p className="text-faint">{empty}</p>
  ) : (
    <Code>{typeof value === "string" ? value : JSON.stringify(value, null, 2)}</Code>
  );
}
