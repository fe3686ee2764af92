// Every page with its address. Filters are part of the address, so that each view is a link.
import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import * as v from "valibot";
import { Shell } from "./shell";
import { NotFound, PageFailure } from "./pages/not-found";
import { Home } from "./pages/home";
import { Jobs } from "./pages/jobs";
import { JobPage } from "./pages/job";
import { RunPage } from "./pages/run";

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound });

/** Anything that does not fit counts as not given: an address that somebody shortened still opens. */
const text = v.fallback(v.optional(v.pipe(v.union([v.string(), v.number()]), v.transform(String))), undefined);
const number = v.fallback(v.optional(v.pipe(v.number(), v.integer())), undefined);
const oneOf = <const T extends readonly [string, ...string[]]>(words: T) =>
  v.fallback(v.optional(v.picklist(words)), undefined);
/** An instant as the API writes it. */
const instant = v.fallback(v.optional(v.pipe(v.string(), v.isoTimestamp())), undefined);
const id = (value: string) => ({ valid: /^\d{1,16}$/.test(value), number: Number(value) });

const home = createRoute({ getParentRoute: () => root, path: "/", component: Home });
export const jobsRoute = createRoute({
  getParentRoute: () => root,
  path: "/jobs",
  component: Jobs,
  validateSearch: v.object({ text, status: oneOf(["ENABLED", "PAUSED", "DELETED"]), tenant: text, labels: text }),
});
export const newJobRoute = createRoute({
  getParentRoute: () => root,
  path: "/jobs/new",
  component: lazyRouteComponent(() => import("./pages/job-form"), "NewJob"),
  validateSearch: v.object({ from: number }),
});
const withJob = {
  params: {
    parse: ({ jobId }: { jobId: string }) => ({ jobId: numbered(jobId) }),
    stringify: ({ jobId }: { jobId: number }) => ({ jobId: String(jobId) }),
  },
};
const withRun = {
  params: {
    parse: ({ runId }: { runId: string }) => ({ runId: numbered(runId) }),
    stringify: ({ runId }: { runId: number }) => ({ runId: String(runId) }),
  },
};
function numbered(text: string): number {
  const { valid, number } = id(text);
  if (!valid) throw new Error(`'${text.slice(0, 40)}' is not an id`);
  return number;
}
export const jobRoute = createRoute({
  getParentRoute: () => root,
  path: "/jobs/$jobId",
  ...withJob,
  component: JobPage,
  validateSearch: v.object({
    tab: oneOf(["calendar", "backfill", "definition", "versions", "audit"]),
    window: oneOf(["7d", "30d"]),
    at: instant,
  }),
});
export const editJobRoute = createRoute({
  getParentRoute: () => root,
  path: "/jobs/$jobId/edit",
  ...withJob,
  component: lazyRouteComponent(() => import("./pages/job-form"), "EditJob"),
});
export const runsRoute = createRoute({
  getParentRoute: () => root,
  path: "/runs",
  component: lazyRouteComponent(() => import("./pages/runs"), "Runs"),
  validateSearch: v.object({
    state: v.fallback(v.optional(v.pipe(v.string(), v.regex(/^[A-Z_]+(,[A-Z_]+)*$/))), undefined),
    tenant: text,
    job: number,
    labels: text,
    source: oneOf(["SCHEDULE", "MANUAL", "BACKFILL", "DAG", "EVENT", "COMPENSATION", "REPLAY"]),
    from: instant,
    to: instant,
  }),
});
export const runRoute = createRoute({
  getParentRoute: () => root,
  path: "/runs/$runId",
  ...withRun,
  component: RunPage,
  validateSearch: v.object({
    attempt: number,
    contains: text,
    level: oneOf(["TRACE", "DEBUG", "INFO", "WARN", "ERROR"]),
    tail: number,
  }),
});
export const failuresRoute = createRoute({
  getParentRoute: () => root,
  path: "/failures",
  component: lazyRouteComponent(() => import("./pages/failures"), "Failures"),
  validateSearch: v.object({ tenant: text, cause: text }),
});
export const waitingRoute = createRoute({
  getParentRoute: () => root,
  path: "/waiting",
  component: lazyRouteComponent(() => import("./pages/waiting"), "Waiting"),
  validateSearch: v.object({ tenant: text }),
});
export const deadLettersRoute = createRoute({
  getParentRoute: () => root,
  path: "/dead-letters",
  component: lazyRouteComponent(() => import("./pages/dead-letters"), "DeadLetters"),
  validateSearch: v.object({ tenant: text, cause: text }),
});
export const outboxRoute = createRoute({
  getParentRoute: () => root,
  path: "/outbox",
  component: lazyRouteComponent(() => import("./pages/outbox"), "Outbox"),
  validateSearch: v.object({ tenant: text }),
});
const executors = createRoute({
  getParentRoute: () => root,
  path: "/executors",
  component: lazyRouteComponent(() => import("./pages/executors"), "Executors"),
});
const cluster = createRoute({
  getParentRoute: () => root,
  path: "/cluster",
  component: lazyRouteComponent(() => import("./pages/cluster"), "Cluster"),
});
const tenants = createRoute({
  getParentRoute: () => root,
  path: "/tenants",
  component: lazyRouteComponent(() => import("./pages/tenants"), "Tenants"),
});
export const auditRoute = createRoute({
  getParentRoute: () => root,
  path: "/audit",
  component: lazyRouteComponent(() => import("./pages/audit"), "AuditPage"),
  validateSearch: v.object({
    tenant: text,
    who: text,
    operation: text,
    outcome: text,
    jobId: number,
    runId: number,
    from: text,
    to: text,
  }),
});

export const router = createRouter({
  routeTree: root.addChildren([
    home,
    jobsRoute,
    newJobRoute,
    jobRoute,
    editJobRoute,
    runsRoute,
    runRoute,
    failuresRoute,
    waitingRoute,
    deadLettersRoute,
    outboxRoute,
    executors,
    cluster,
    tenants,
    auditRoute,
  ]),
  defaultPreload: "intent",
  defaultPreloadStaleTime: 0,
  scrollRestoration: true,
  defaultErrorComponent: PageFailure,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
