// The browser, and the pages of the console in it.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { extname, join, resolve } from "node:path";
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from "playwright-core";
import { afterAll, beforeAll, expect } from "vitest";
import { server } from "./node";

const port = () => new URL(server()).port;
/** A name that is not of the loopback: under it the node asks for a token, also in dev mode. */
export const NAMED = "campanile.test";
export const named = () => `http://${NAMED}:${port()}`;

const PROGRAMS = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

let browser: Browser;

/** Starts the browser before the tests of a file and ends it after them. */
export function withBrowser() {
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(async () => {
    await browser?.close();
  });
}

async function launch(): Promise<Browser> {
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
class Watched {
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

async function withFiles(context: BrowserContext) {
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

/** A phone of a person on call. */
export const PHONE = { viewport: { width: 360, height: 740 } };

interface Options extends BrowserContextOptions {
  base?: string;
  /** Before the page is asked for. */
  prepare?: (page: Page) => Promise<unknown>;
}

export async function open(path: string, { base = server(), prepare, ...options }: Options = {}) {
  const context = await browser.newContext({ ...looks, ...options });
  await withFiles(context);
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const watched = new Watched(page);
  await prepare?.(page);
  await page.goto(base + path);
  return { context, page, watched };
}

/** Nothing of the page is still being read. */
export async function loaded(page: Page) {
  await page.locator("main h1").waitFor();
  await page.locator("main [role=status][aria-label]").first().waitFor({ state: "detached" });
}

/** The run whose page is open. */
export async function runOf(page: Page): Promise<number> {
  await page.waitForURL(/\/runs\/\d+/);
  return Number(/\d+$/.exec(new URL(page.url()).pathname)![0]);
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
