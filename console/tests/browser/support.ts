import { execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { extname, join, resolve } from "node:path";
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from "playwright-core";
import { expect, inject } from "vitest";

export const server = () => inject("server");
export const token = () => inject("token");
const port = () => new URL(server()).port;
/** A name that is not of the loopback: under it the node asks for a token, also in dev mode. */
export const NAMED = "campanile.test";
export const named = () => `http://${NAMED}:${port()}`;

const PROGRAMS = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export async function launch(): Promise<Browser> {
  const executablePath = PROGRAMS.find((path) => path && canRun(path));
  if (!executablePath) throw new Error("no Chromium: install Debian's package chromium, or name one in CHROMIUM");
  return chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-dev-shm-usage", `--host-resolver-rules=MAP ${NAMED} 127.0.0.1`],
  });
}

function canRun(path: string): boolean {
  try {
    execFileSync(path, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Everything that a page complains about. A test that expects a complaint takes it out. */
export class Watched {
  readonly complaints: string[] = [];
  constructor(page: Page) {
    page.on("console", (message) => {
      // A refused call is shown to the person; that the browser notes it too is no defect.
      if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
        this.complaints.push(message.text());
      if (message.type() === "warning" && message.text().includes("Uncompiled message"))
        this.complaints.push(message.text());
    });
    page.on("pageerror", (error) => this.complaints.push(error.message));
    page.on("dialog", (dialog) => {
      this.complaints.push(`a dialog of the browser: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("request", (request) => {
      const { hostname } = new URL(request.url());
      if (!["127.0.0.1", NAMED, ""].includes(hostname)) this.complaints.push(`a request to ${hostname}`);
    });
  }
}

const looks: BrowserContextOptions = {
  locale: "en-GB",
  timezoneId: "Europe/Berlin",
  viewport: { width: 1360, height: 860 },
};

/** A directory such as `dist`: its console is tested in place of the one in the node, so that nothing is compiled between two tries. */
const FILES = process.env.CONSOLE_FILES && resolve(process.env.CONSOLE_FILES);
const TYPES: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

export async function withFiles(context: BrowserContext) {
  if (!FILES) return;
  await context.route(
    // Under a name that is not of the loopback, the browser lets no page that the node did not send ask the node.
    ({ hostname, pathname }) => hostname !== NAMED && !pathname.startsWith("/api/") && pathname !== "/metrics",
    async (route) => {
      const { pathname } = new URL(route.request().url());
      const isPage = route.request().resourceType() === "document";
      const path = join(FILES, isPage ? "index.html" : pathname);
      if (!existsSync(path)) return route.continue();
      // What the node says about the file stays, above all the Content-Security-Policy.
      const policy = (await route.fetch({ url: `${server()}/`, headers: { Accept: "text/html" } })).headers()[
        "content-security-policy"
      ];
      return route.fulfill({
        body: readFileSync(path),
        headers: {
          "content-type": TYPES[extname(path)] ?? "application/octet-stream",
          ...(policy ? { "content-security-policy": policy } : {}),
        },
      });
    },
  );
}

export async function open(browser: Browser, path: string, more: BrowserContextOptions & { base?: string } = {}) {
  const { base = server(), ...options } = more;
  const context = await browser.newContext({ ...looks, ...options });
  await withFiles(context);
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const watched = new Watched(page);
  await page.goto(base + path);
  return { context, page, watched };
}

type Call = (method: string, path: string, body?: unknown, headers?: HeadersInit) => Promise<any>;

/** Calls of a node's API with a token. */
export const callOf =
  (base: string, bearer: string): Call =>
  async (method, path, body, headers = {}) => {
    const response = await fetch(base + path, {
      method,
      headers: { Authorization: `Bearer ${bearer}`, "Content-Type": "application/json", ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  };

export const call: Call = (...what) => callOf(server(), token())(...what);

const shell = (script: string) => ({
  kind: "COMMAND",
  command: ["/bin/sh", "-c", script],
  env: { PATH: "/usr/bin:/bin" },
});

/** A job that is started by hand. */
export const jobSpec = (name: string, script: string, more: Record<string, unknown> = {}) => ({
  name,
  trigger: { type: "MANUAL" },
  action: shell(script),
  retryPolicy: { maxAttempts: 1 },
  ...more,
});

export async function job(name: string, script: string, more: Record<string, unknown> = {}): Promise<number> {
  return (await call("POST", "/api/v1/jobs", jobSpec(name, script, more))).jobId;
}

export async function trigger(jobId: number, body: unknown = {}): Promise<number> {
  return (await call("POST", `/api/v1/jobs/${jobId}/trigger`, body)).runId;
}

/** Asks until it is so. */
export async function until<T>(
  what: string,
  ask: () => Promise<T>,
  fits: (value: T) => boolean,
  patienceMs = 40_000,
): Promise<T> {
  const end = Date.now() + patienceMs;
  for (;;) {
    const value = await ask();
    if (fits(value)) return value;
    if (Date.now() > end) throw new Error(`${what} did not come: ${JSON.stringify(value)}`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

export const ended = (runId: number) =>
  until(
    `the end of run ${runId}`,
    () => call("GET", `/api/v1/runs/${runId}`),
    (run) => ["SUCCESS", "FAILED", "TIMEOUT", "CANCELED"].includes(run.state),
  );

/** A job that was paused for some of the seconds in which it was due, or for all of them: these instants made no run. Later ones do not come. */
export async function missingInstants(name: string, script: string, more: Record<string, unknown> = {}, all = false) {
  const begun = Date.now();
  const endAt = new Date(begun + (all ? 4_000 : 7_000)).toISOString();
  const jobId = await job(name, script, { trigger: { type: "FIXED_RATE", everySec: 1, endAt }, ...more });
  await call("POST", `/api/v1/jobs/${jobId}/pause`, { reason: "an outage" });
  const get = () => call("GET", `/api/v1/jobs/${jobId}`);
  await until("some instants", get, () => Date.now() > begun + 4_500);
  await call("POST", `/api/v1/jobs/${jobId}/resume`, {});
  await until("the last instant", get, ({ nextFireAt }) => nextFireAt === null);
  return jobId;
}

/** An executor of a pool; what it returns ends it. */
export function startExecutor(pool: string, how: "SIGTERM" | "SIGKILL" = "SIGTERM"): () => Promise<void> {
  const args = ["executor", "--rpc", inject("rpc"), "--pool", pool, "--id", `of-${pool}`, "--log", "error"];
  const env = { ...process.env, CAMPANILE_API_TOKEN: token() };
  const executor = spawn(inject("program"), args, { stdio: "ignore", env });
  const gone = new Promise<void>((done) => executor.once("exit", () => done()));
  return () => {
    executor.kill(how);
    return gone;
  };
}

/** Runs the body of a run on an executor that dies under it. */
export async function loseExecutor(pool: string, runId: number) {
  const kill = startExecutor(pool, "SIGKILL");
  await until(
    `a body in pool ${pool}`,
    () => call("GET", `/api/v1/runs/${runId}`),
    (run) => run.state === "RUNNING",
  );
  await kill();
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Violations that keep people out. */
export async function inaccessible(page: Page): Promise<string[]> {
  // The program comes through the debugger, which the Content-Security-Policy does not concern.
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { violations } = await (window as any).axe.run(document, { resultTypes: ["violations"] });
    return violations
      .filter((violation: any) => ["serious", "critical"].includes(violation.impact))
      .map(
        (violation: any) =>
          `${violation.id}: ${violation.nodes
            .slice(0, 3)
            .map((node: any) => `${node.target} ${node.failureSummary}`)
            .join(" | ")}`,
      );
  });
  return found as string[];
}

/** Nothing scrolls sideways but boxes that are made for it. */
export async function overflow(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
}

/** A picture of the page in the directory that SHOTS names, for a person to look at. */
export async function shot(page: Page, name: string) {
  if (process.env.SHOTS) await page.screenshot({ path: join(process.env.SHOTS, `${name}.png`), fullPage: true });
}

export async function close(context: BrowserContext, watched: Watched) {
  await context.close();
  expect(watched.complaints).toEqual([]);
}
