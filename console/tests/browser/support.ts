import { execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
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

export async function open(browser: Browser, path: string, more: BrowserContextOptions & { base?: string } = {}) {
  const { base = server(), ...options } = more;
  const context = await browser.newContext({ ...looks, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const watched = new Watched(page);
  await page.goto(base + path);
  return { context, page, watched };
}

export async function call(method: string, path: string, body?: unknown): Promise<any> {
  const response = await fetch(server() + path, {
    method,
    headers: { Authorization: `Bearer ${token()}`, "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text ? JSON.parse(text) : undefined;
}

const shell = (script: string) => ({
  kind: "COMMAND",
  command: ["/bin/sh", "-c", script],
  env: { PATH: "/usr/bin:/bin" },
});

/** A job that is started by hand. */
export async function job(name: string, script: string, more: Record<string, unknown> = {}): Promise<number> {
  const spec = { name, trigger: { type: "MANUAL" }, action: shell(script), retryPolicy: { maxAttempts: 1 }, ...more };
  return (await call("POST", "/api/v1/jobs", spec)).jobId;
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

/** Runs the body of a run on an executor that dies under it. */
export async function loseExecutor(pool: string, runId: number) {
  const program = inject("program");
  const args = ["executor", "--rpc", inject("rpc"), "--pool", pool, "--id", `lost-${pool}`, "--log", "error"];
  const executor = spawn(program, args, { stdio: "ignore", env: { ...process.env, CAMPANILE_API_TOKEN: token() } });
  await until(
    `a body in pool ${pool}`,
    () => call("GET", `/api/v1/runs/${runId}`),
    (run) => run.state === "RUNNING",
  );
  const gone = new Promise((done) => executor.once("exit", done));
  executor.kill("SIGKILL");
  await gone;
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

export async function close(context: BrowserContext, watched: Watched) {
  await context.close();
  expect(watched.complaints).toEqual([]);
}
