// Calls of the API, typed by its OpenAPI document.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
export type Job = Schemas["JobView"];
export type Run = Schemas["RunView"];
export type Attempt = Schemas["AttemptView"];
export type Trigger = Schemas["Trigger"];
export type JobSpec = Schemas["JobSpec"];
export type RunState = Schemas["RunState"];
export type Tenant = Schemas["TenantView"];
export type DeadLetter = Schemas["DeadLetterView"];
export type Ledger = Schemas["LedgerView"];
export type LedgerEntry = Schemas["LedgerEntryView"];
export type DagRun = Schemas["DagRunView"];
export type DagNode = Schemas["DagNodeView"];
/** The action of a DAG. */
export type Graph = Extract<NonNullable<Job["action"]>, { kind: "DAG" }>;
export type Session = Schemas["SessionView"];

/** A refusal: `application/problem+json`, or that nothing came back. */
export class Problem extends Error {
  constructor(
    readonly code: string,
    readonly status: number,
    message: string,
    readonly advice?: string,
    readonly requestId?: string,
  ) {
    super(message);
    this.name = "Problem";
  }

  /** Whether the same call may succeed in a moment. */
  get isPassing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** Whatever was thrown, as a problem. */
export function problemOf(thrown: unknown): Problem {
  if (thrown instanceof Problem) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new Problem("UNREACHABLE", 0, message);
}

function problemIn(body: unknown, status: number): Problem {
  const text = (name: string) => {
    const value = body && typeof body === "object" ? (body as Record<string, unknown>)[name] : undefined;
    return typeof value === "string" ? value : undefined;
  };
  const message = text("detail") ?? text("title") ?? `HTTP ${status}`;
  return new Problem(text("code") ?? String(status), status, message, text("advice"), text("requestId"));
}

/** The node takes the cookie of a session only with this header, which pages of other origins cannot send. */
export const OURS = { "X-Campanile-Console": "1" };

let onSignedOut: () => void = () => {};
/** Told when an answer says that the caller is not known any more. */
export function whenSignedOut(then: () => void) {
  onSignedOut = then;
}

/** When the last answer came and how long it took, for people who wonder. */
export const pulse = { at: 0, ms: 0, failed: false };

async function measured(request: Request): Promise<Response> {
  const begun = performance.now();
  try {
    const response = await fetch(request);
    pulse.at = Date.now();
    pulse.ms = performance.now() - begun;
    pulse.failed = false;
    if (response.status === 401 && !request.headers.has("Authorization")) onSignedOut();
    return response;
  } catch (thrown) {
    pulse.failed = true;
    throw thrown;
  }
}

export const api = createClient<paths>({ baseUrl: "/", headers: OURS, fetch: measured });

type Outcome<T> = { data?: T; error?: unknown; response: Response };

/** The good answer, or a thrown [`Problem`]. */
export async function good<T>(call: Promise<Outcome<T>>): Promise<NonNullable<T>> {
  let outcome: Outcome<T>;
  try {
    outcome = await call;
  } catch (thrown) {
    throw problemOf(thrown);
  }
  if (!outcome.response.ok) throw problemIn(outcome.error, outcome.response.status);
  return (outcome.data ?? undefined) as NonNullable<T>;
}

/** A call whose answer is text or a stream. */
export async function raw(path: string, init?: RequestInit): Promise<Response> {
  const response = await measured(new Request(path, { ...init, headers: { ...OURS, ...init?.headers } })).catch(
    (thrown) => {
      throw problemOf(thrown);
    },
  );
  if (!response.ok) throw problemIn(await response.json().catch(() => undefined), response.status);
  return response;
}
