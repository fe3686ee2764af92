import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  call,
  close,
  ended,
  inaccessible,
  job,
  launch,
  loseExecutor,
  named,
  NAMED,
  open,
  overflow,
  server,
  token,
  trigger,
  until,
  withFiles,
} from "./support";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
});

test("a session stands for a token, and no script can read either", async () => {
  const { context, page, watched } = await open(browser, "/jobs", { base: named() });
  await page.getByRole("heading", { name: "Campanile" }).waitFor();
  await page.getByLabel("Token").fill("cmp_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("the token is not known").waitFor();
  await page.getByLabel("Token").fill(token());
  await page.getByRole("button", { name: "Sign in" }).click();
  // Where the person wanted to go.
  await page.getByRole("heading", { name: "Jobs" }).waitFor();
  const cookies = await context.cookies();
  expect(cookies).toHaveLength(1);
  expect(cookies[0]).toMatchObject({ httpOnly: true, sameSite: "Strict", domain: NAMED, expires: -1 });
  expect(cookies[0]!.value).not.toContain(token());
  const readable = await page.evaluate(
    () => document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage }) + document.documentElement.outerHTML,
  );
  expect(readable).not.toContain(token());
  // It outlives the page, and another page of the same browser has it too.
  await page.reload();
  await page.getByRole("heading", { name: "Jobs" }).waitFor();
  const second = await context.newPage();
  await second.goto(`${named()}/audit`);
  await second.getByRole("heading", { name: "Audit" }).waitFor();
  // The cookie without the header of the console is worth nothing, as from a form of another page.
  const bare = await page.evaluate(async () => [
    (await fetch("/api/v1/jobs")).status,
    (await fetch("/api/v1/jobs", { headers: { "X-Campanile-Console": "1" } })).status,
  ]);
  expect(bare).toEqual([401, 200]);
  const forged = await fetch(`${server()}/api/v1/jobs`, {
    headers: {
      Host: new URL(named()).host,
      Origin: "http://evil.example",
      "X-Campanile-Console": "1",
      Cookie: `${cookies[0]!.name}=${cookies[0]!.value}`,
    },
  });
  expect(forged.status).toBe(401);
  await page.getByRole("button", { name: "Settings and account" }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByLabel("Token").waitFor();
  expect(await context.cookies()).toEqual([]);
  await close(context, watched);
});

test("on the machine of a dev node nobody signs in, but under another name everybody does", async () => {
  const { context, page, watched } = await open(browser, "/");
  await page.getByRole("heading", { name: "What is wrong now?" }).waitFor();
  expect(await context.cookies()).toEqual([]);
  await close(context, watched);
  // A page whose name was made to lead to this machine is not this machine.
  expect((await fetch(`${server()}/api/v1/session`, { headers: { "Sec-Fetch-Site": "cross-site" } })).status).toBe(401);
});

test("files are kept for good, pages are not, and no other origin may be used", async () => {
  const browserOf = { Accept: "text/html,*/*", "Accept-Encoding": "gzip" };
  const index = await fetch(server() + "/", { headers: browserOf });
  expect(index.headers.get("content-security-policy")).toContain("default-src 'self'; style-src 'self'");
  expect(index.headers.get("cache-control")).toBe("no-cache");
  expect(index.headers.get("content-encoding")).toBe("gzip");
  const page = await index.text();
  const etag = index.headers.get("etag")!;
  expect((await fetch(server() + "/", { headers: { ...browserOf, "If-None-Match": etag } })).status).toBe(304);
  // A link into the console opens; what a program asks for does not.
  expect(await (await fetch(server() + "/jobs/17?tab=calendar", { headers: browserOf })).text()).toBe(page);
  expect((await fetch(server() + "/jobs/17")).status).toBe(404);
  expect((await fetch(server() + "/api/v1/jobx", { headers: browserOf })).status).toBe(404);
  const script = /src="(\/assets\/[^"]+\.js)"/.exec(page)![1]!;
  for (const encoding of ["gzip", "br", "identity"]) {
    const asset = await fetch(server() + script, { headers: { "Accept-Encoding": encoding } });
    expect(asset.headers.get("cache-control")).toContain("immutable");
    expect(asset.headers.get("content-type")).toContain("text/javascript");
    expect(asset.headers.get("content-encoding") ?? "identity").toBe(encoding);
    expect((await asset.text()).length).toBeGreaterThan(100_000);
  }
  expect((await fetch(server() + "/assets/old-1234.js", { headers: browserOf })).status).toBe(404);
});

test("a job is created, run and read from the first field to the last line of its log", async () => {
  const { context, page, watched } = await open(browser, "/jobs");
  await page.getByRole("link", { name: "Create a job" }).click();
  const name = `made/here-${Date.now()}`;
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByRole("textbox", { name: "Cron expression" }).fill("61 2 * * *");
  await page.getByText(/61/).last().waitFor();
  await page.getByRole("textbox", { name: "Cron expression" }).fill("30 2 * * *");
  await page.getByLabel("Time zone").fill("America/New_York");
  await page.getByText(/at 02:30.*America\/New_York/).waitFor();
  await page.getByText("When the clock changes, it fires otherwise").waitFor();
  await page.getByLabel("Shell script").fill('echo "customer $CAMPANILE_PARAMS"; echo done here');
  await page.getByLabel("Params", { exact: true }).fill("not json");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Write a JSON object.").waitFor();
  await page.getByLabel("Params", { exact: true }).fill('{"customer": 7}');
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name }).waitFor();
  await page.getByText("No run yet.").waitFor();

  await page.getByRole("button", { name: "Run now" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/^Params/).fill("[]");
  expect(await dialog.getByRole("button", { name: "Run now" }).isDisabled()).toBe(true);
  await dialog.getByLabel(/^Params/).fill('{"customer": 8}');
  await dialog.getByLabel(/^Reason/).fill("to see it work");
  await dialog.getByRole("button", { name: "Run now" }).click();
  await page.waitForURL(/\/runs\/\d+/);
  await page.getByRole("log").getByText("done here").waitFor();
  await page.locator("h1 [data-state=SUCCESS]").waitFor();
  await page.getByRole("definition").getByText("to see it work").waitFor();
  expect(await page.getByText('"customer": 8').count()).toBeGreaterThan(0);

  // Edit: what changes is shown before it is saved.
  await page.getByRole("link", { name }).click();
  await page.getByRole("link", { name: "Edit" }).click();
  await page.getByLabel("Time limit of an attempt, seconds").fill("77");
  await page.getByRole("button", { name: "Look at the changes" }).click();
  const changes = page.getByRole("dialog").getByRole("row");
  await changes.filter({ hasText: "timeoutSec" }).getByText("77").waitFor();
  expect(await changes.count()).toBe(2);
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await page.getByText("version 2").waitFor();
  const found = await call("GET", `/api/v1/jobs/by-name?name=${encodeURIComponent(name)}`);
  expect(found).toMatchObject({ timeoutSec: 77, params: { customer: 7 }, trigger: { expr: "30 2 * * *" } });
  await page.getByRole("link", { name: "Audit", exact: true }).last().click();
  await page.getByText("job.replace").waitFor();
  await close(context, watched);
});

test("a run is followed while it runs, and can be canceled", async () => {
  const runId = await trigger(
    await job("live/slow", "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do echo tick $i; sleep 1; done"),
  );
  const { context, page, watched } = await open(browser, `/runs/${runId}`);
  await page.locator("h1 [data-state=RUNNING]").waitFor();
  await page.getByRole("log").getByText("tick 3", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel the run" }).click();
  await page.locator("h1 [data-state=CANCELED]").waitFor();
  await close(context, watched);
});

/** A DAG whose middle node fails until `flag` is there; the last one follows it. */
async function dag(name: string, flag: string): Promise<number> {
  await job(`${name}-load`, "true");
  await job(`${name}-check`, `test -e ${flag}`);
  await job(`${name}-report`, "true");
  const nodes = ["load", "check", "report"].map((id) => ({ id, job: `${name}-${id}` }));
  const edges = [
    { from: "load", to: "check" },
    { from: "check", to: "report" },
  ];
  const action = { kind: "DAG", nodes, edges };
  return (await call("POST", "/api/v1/jobs", { name, trigger: { type: "MANUAL" }, action })).jobId;
}

test("the nodes of a DAG are seen, and the one that failed is run again when its cause is repaired", async () => {
  const directory = mkdtempSync(join(tmpdir(), "campanile-dag-"));
  const flag = join(directory, "flag");
  const jobId = await dag("dag/nightly", flag);
  const { context, page, watched } = await open(browser, `/jobs/${jobId}?tab=definition`);
  const defined = page.getByRole("table", { name: "Nodes" });
  await defined.getByRole("row").filter({ hasText: "report" }).getByText("all before it succeeded").waitFor();
  await page.getByRole("button", { name: "Run now" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Run now" }).click();
  await page.waitForURL(/\/runs\/\d+/);
  await page.locator("h1 [data-state=FAILED]").waitFor();
  const nodes = page.getByRole("table", { name: "Nodes" }).getByRole("row");
  const node = (id: string) => nodes.filter({ has: page.getByText(id, { exact: true }) });
  await node("load").locator("[data-state=SUCCESS]").waitFor();
  await node("check").locator("[data-state=FAILED]").waitFor();
  await node("report").locator("[data-state=UPSTREAM_FAILED]").waitFor();
  const picture = page.getByRole("group", { name: "Picture of the nodes" });
  expect(await picture.locator("g path").count()).toBe(4);
  expect(await picture.getByRole("link").count()).toBe(2);
  expect(await inaccessible(page)).toEqual([]);
  // From the picture to the run of a node, and back.
  await picture.getByRole("link", { name: /check/ }).click();
  await page.getByRole("heading", { name: /dag\/nightly-check/ }).waitFor();
  await page.getByText("Node of the DAG run").waitFor();
  await page.goBack();
  writeFileSync(flag, "");
  await page.getByRole("button", { name: "Run again: node check" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Run again" }).click();
  await page.locator("h1 [data-state=SUCCESS]").waitFor();
  await node("report").locator("[data-state=SUCCESS]").waitFor();
  // What had succeeded did not run again.
  const runId = Number(/\d+$/.exec(new URL(page.url()).pathname)![0]);
  const after = await call("GET", `/api/v1/runs/${runId}/nodes`);
  expect(after.nodes.map((node: { generation: number }) => node.generation)).toEqual([1, 2, 1]);
  await close(context, watched);
  rmSync(directory, { recursive: true });
});

test("a node of a DAG is marked by a person, and what waits for it goes on", async () => {
  const jobId = await dag("dag/marked", "/nowhere/flag");
  const runId = await trigger(jobId);
  await ended(runId);
  const { context, page, watched } = await open(browser, `/runs/${runId}`, { viewport: { width: 360, height: 740 } });
  await page.getByRole("button", { name: "Mark the node check" }).click();
  await page.getByRole("dialog").getByText("succeeded", { exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Mark", exact: true }).click();
  await page.locator("h1 [data-state=SUCCESS]").waitFor();
  await page.getByText("set by a person").waitFor();
  expect(await overflow(page)).toBeLessThanOrEqual(0);
  expect(await inaccessible(page)).toEqual([]);
  await close(context, watched);
});

test("a DAG is created and edited in the form", async () => {
  await job("dag/part", "true");
  const { context, page, watched } = await open(browser, "/jobs/new");
  await page.getByLabel("Name", { exact: true }).fill("dag/by-hand");
  await page.getByText("by hand", { exact: true }).click();
  await page.getByText("runs other jobs in order").click();
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Write something here.").waitFor();
  await page.getByLabel("Nodes and edges").fill('{"nodes": [{"id": "one", "job": "dag/part"}]}');
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "dag/by-hand" }).waitFor();
  await page.getByRole("link", { name: "Edit" }).click();
  await page.getByLabel("Nodes and edges").fill('{"nodes": [{"id": "one", "job": "dag/part"}], "maxParallel": 3}');
  await page.getByRole("button", { name: "Look at the changes" }).click();
  await page.getByRole("dialog").getByRole("row").filter({ hasText: "maxParallel" }).waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await page.getByText("version 2").waitFor();
  const found = await call("GET", "/api/v1/jobs/by-name?name=dag/by-hand");
  expect(found.action).toMatchObject({ kind: "DAG", maxParallel: 3 });
  await close(context, watched);
});

test("dead letters of one cause are redriven together", async () => {
  const script = 'test -e "$CAMPANILE_FLAG" || { echo "no route to 10.0.0.$$" >&2; exit 4; }';
  const ids = [await job("cause/one", script), await job("cause/two", script)];
  for (const jobId of ids) {
    await ended(await trigger(jobId));
    await ended(await trigger(jobId));
  }
  const { context, page, watched } = await open(browser, "/dead-letters");
  const group = page.getByRole("listitem").filter({ hasText: "no route to" });
  await group.getByRole("button", { name: "Redrive all 4" }).waitFor();
  expect(await group.count()).toBe(1);
  await group.getByRole("button", { name: /no route/ }).click();
  const rows = page.getByRole("table", { name: "Dead letters of this cause" }).getByRole("row");
  await until(
    "the dead letters of the cause",
    () => rows.count(),
    (count) => count === 5,
  );
  await group.getByRole("button", { name: "Redrive all 4" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Redrive (4)" }).click();
  await page.getByText("Done for 4 of 4.").waitFor();
  const runs = await call("GET", `/api/v1/jobs/${ids[0]}/runs`);
  expect(runs.items.map((run: { generation: number }) => run.generation)).toEqual([2, 2]);
  await close(context, watched);
});

test("jobs are chosen and paused by keys, and the pause is undone", async () => {
  const prefix = `bulk-${Date.now()}`;
  for (const number of [1, 2, 3]) await job(`${prefix}/${number}`, "true");
  const { context, page, watched } = await open(browser, "/");
  await page.getByRole("heading", { name: "What is wrong now?" }).waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("j");
  await page.getByRole("heading", { name: "Jobs" }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type(prefix);
  await page.waitForURL(new RegExp(`text=${prefix}`));
  await page
    .getByText(/^3 jobs/)
    .first()
    .waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  await page.getByRole("region", { name: "What is selected" }).getByText("2 jobs").waitFor();
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.getByRole("button", { name: "Pause (2)" }).click();
  await page.getByText("Done for 2 of 2.").waitFor();
  const paused = async () => (await call("GET", `/api/v1/jobs?text=${prefix}&status=PAUSED`)).items.length;
  expect(await paused()).toBe(2);
  await page.getByRole("button", { name: "Resume them again" }).click();
  await page.getByText("Undone for 2 of 2.").waitFor();
  expect(await paused()).toBe(0);
  await page.getByRole("dialog").getByRole("button", { name: "Close", exact: true }).last().click();
  // The palette leads to a job by a part of its name.
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search" }).waitFor();
  await page.keyboard.type(`${prefix}/3`);
  await page.getByRole("option", { name: new RegExp(`${prefix}/3`) }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: `${prefix}/3` }).waitFor();
  await close(context, watched);
});

test("a long list has only what is seen in the page, and all of it can be chosen", async () => {
  const prefix = `many-${Date.now()}`;
  const lines = Array.from({ length: 420 }, (_, index) =>
    JSON.stringify({ name: `${prefix}/${index}`, trigger: { type: "MANUAL" }, labels: { many: prefix } }),
  );
  const created = await fetch(`${server()}/api/v1/jobs/bulk`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token()}`, "Content-Type": "application/x-ndjson" },
    body: lines.join("\n"),
  });
  expect((await created.text()).match(/"ok"/g)).toHaveLength(420);
  const { context, page, watched } = await open(browser, `/jobs?text=${prefix}`);
  const rows = page.getByRole("table", { name: "Jobs" }).getByRole("row");
  await page.getByText("100 shown, more follow").waitFor();
  await page.getByRole("checkbox", { name: "Select all that are shown" }).check();
  await page.getByRole("button", { name: "Select all that match, also on further pages" }).click();
  // The end of the list brings more, until there is no more.
  const end = async () => {
    await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight));
    return page.getByText("420 jobs").count();
  };
  await until("the end of the list", end, (count) => count > 0);
  await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight));
  const last = (await call("GET", `/api/v1/jobs?text=${prefix}&pageSize=1000`)).items.at(-1);
  await page.getByRole("link", { name: last.name, exact: true }).waitFor();
  expect(await rows.count()).toBeLessThan(120);
  expect(await rows.last().getAttribute("aria-selected")).toBe("true");
  await page.getByRole("region", { name: "What is selected" }).getByText("All jobs that match").waitFor();
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.getByRole("button", { name: "Pause (420)" }).click();
  await page.getByRole("button", { name: "Stop here" }).click();
  await page.getByText(/^Stopped: done for \d+ of 420\.$/).waitFor();
  await close(context, watched);
});

test("a run that may not run twice waits for a person, who decides", async () => {
  const jobId = await job("careful/settle", "sleep 300", { idempotent: false, executorSelector: "careful" });
  const runId = await trigger(jobId);
  const { context, page, watched } = await open(browser, "/waiting");
  await loseExecutor("careful", runId);
  // It comes by itself.
  await page.getByRole("link", { name: `run ${runId}` }).waitFor({ timeout: 45_000 });
  await page.getByRole("link", { name: `run ${runId}` }).click();
  await page.getByText("This run waits for you").waitFor();
  await page.getByRole("button", { name: "It did its work" }).click();
  await page
    .getByRole("dialog")
    .getByLabel(/^Reason/)
    .fill("seen at the bank");
  await page.getByRole("dialog").getByRole("button", { name: "It succeeded" }).click();
  await page.locator("h1 [data-state=SUCCESS]").waitFor();
  await close(context, watched);
});

test("what callers write is text, whatever it looks like", async () => {
  const evil = '<img src=x onerror="alert(1)"><script>alert(2)</script>';
  const long = "w".repeat(10_000);
  const jobId = await job(
    "hostile/one",
    `printf '%s\\n' '<script>alert(3)</script>' '\\033[31mred'; printf '\\342\\200\\256reversed\\n'; echo '${evil}' >&2; exit 1`,
    {
      labels: { note: evil.slice(0, 60) },
      params: { evil, rtl: "\u202Etxet", long },
      displayName: evil,
      description: `${evil}\n${"w".repeat(4_000)}`,
      owner: `\u2067${evil}`.slice(1),
      annotations: { note: evil, script: "javascript:alert(4)", more: "w".repeat(3_000) },
      tenantId: "default",
    },
  );
  const runId = await trigger(jobId, { reason: evil, params: { [evil]: evil } });
  await ended(runId);
  for (const path of [
    "/jobs?text=hostile",
    `/jobs/${jobId}`,
    `/jobs/${jobId}?tab=definition`,
    `/jobs/${jobId}?tab=versions`,
    `/jobs/${jobId}/edit`,
    `/runs/${runId}`,
    `/runs?labels=${encodeURIComponent(evil)}`,
    "/failures",
    "/dead-letters",
    "/audit",
    "/",
    `/jobs?text=${encodeURIComponent(evil)}`,
  ]) {
    const { context, page, watched } = await open(browser, path, { viewport: { width: 360, height: 740 } });
    await page.locator("main h1").waitFor();
    await page.locator("main [role=status][aria-label]").first().waitFor({ state: "detached" });
    expect(await page.locator("main img, main script, main a[href^='javascript:']").count(), path).toBe(0);
    expect(await overflow(page), path).toBeLessThanOrEqual(0);
    await close(context, watched);
  }
});

test("a node that does not answer is said so, and what is seen is called old", async () => {
  const { context, page } = await open(browser, "/jobs");
  await page.getByRole("heading", { name: "Jobs" }).waitFor();
  await page.getByRole("link", { name: "demo/tick" }).waitFor();
  await context.setOffline(true);
  await page.getByText(/no answer for \d+ s/).waitFor({ timeout: 40_000 });
  await page.getByRole("link", { name: "demo/tick" }).waitFor();
  await context.setOffline(false);
  await page.getByText(/^\d+ ms$/).waitFor({ timeout: 40_000 });
  await context.close();
});

test("the calendar shows what became of each instant", async () => {
  const tick = await call("GET", "/api/v1/jobs/by-name?name=demo/tick");
  const { context, page, watched } = await open(browser, `/jobs/${tick.jobId}?tab=calendar`);
  const cell = page.getByRole("button", { name: /fired \d+/ }).last();
  await cell.click();
  await page
    .getByRole("link", { name: /^run \d+/ })
    .first()
    .click();
  await page.waitForURL(/\/runs\/\d+/);
  await close(context, watched);
});

test("a tenant sees its own, and nothing that only operators may", async () => {
  // The dev node knows no tenant's token, so the node's answer about the caller is changed on its way.
  const context = await browser.newContext({ locale: "en-GB" });
  await withFiles(context);
  const page = await context.newPage();
  await page.route("**/api/v1/session", (route) =>
    route.fulfill({ json: { name: "ada", role: "TENANT", tenantId: "default", knownBy: "SESSION", version: "0" } }),
  );
  const asked: string[] = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await page.goto(server() + "/");
  await page.getByRole("heading", { name: "What is wrong now?" }).waitFor();
  await page.getByText("Limits and use").waitFor();
  for (const name of ["Executors", "Cluster"])
    expect(await page.getByRole("link", { name, exact: true }).count(), name).toBe(0);
  await page.goto(`${server()}/tenants`);
  await page.getByRole("table", { name: "Tenants" }).waitFor();
  expect(await page.getByRole("button", { name: /Limits for a tenant|Actions for/ }).count()).toBe(0);
  expect(asked.filter((path) => /executors|pools|cluster|metrics/.test(path))).toEqual([]);
  await context.close();
});

const pages = async () => {
  const third = await call("GET", "/api/v1/jobs/by-name?name=demo/third-time-lucky");
  const letter = await until(
    "a dead letter",
    () => call("GET", "/api/v1/dead-letters?pageSize=1"),
    (found) => found.items.length > 0,
  );
  const { runId } = letter.items[0];
  const dags = await call("GET", "/api/v1/jobs/by-name?name=dag/nightly");
  const dagRuns = await call("GET", `/api/v1/jobs/${dags.jobId}/runs`);
  return [
    "/",
    "/jobs",
    "/jobs/new",
    `/jobs/${third.jobId}`,
    `/jobs/${third.jobId}?tab=calendar`,
    `/jobs/${third.jobId}?tab=backfill`,
    `/jobs/${third.jobId}?tab=definition`,
    `/jobs/${third.jobId}?tab=versions`,
    `/jobs/${third.jobId}?tab=audit`,
    `/jobs/${third.jobId}/edit`,
    `/runs/${runId}`,
    `/jobs/${dags.jobId}/edit`,
    `/jobs/${dags.jobId}?tab=definition`,
    `/runs/${dagRuns.items[0].runId}`,
    "/runs",
    "/runs?state=SUCCESS&job=1&from=2026-01-01T00:00:00.000Z",
    "/failures",
    "/waiting",
    "/dead-letters",
    "/outbox",
    "/executors",
    "/cluster",
    "/tenants",
    "/audit",
    "/nowhere",
  ];
};

test.each([
  ["light", "en-GB", 1360],
  ["dark", "zh-CN", 1360],
  ["dark", "en-GB", 360],
  ["light", "zh-CN", 360],
] as const)(
  "every page can be used by everybody: %s, %s, %i px wide",
  { timeout: 120_000 },
  async (colorScheme, locale, width) => {
    const { context, page, watched } = await open(browser, "/", {
      colorScheme,
      locale,
      viewport: { width, height: 800 },
    });
    expect(await page.getAttribute("html", "lang")).toBe(locale === "zh-CN" ? "zh-Hans" : "en");
    for (const path of await pages()) {
      await page.goto(server() + path);
      await page.locator("main h1").waitFor();
      await page.locator("main [role=status][aria-label]").first().waitFor({ state: "detached" });
      expect(await inaccessible(page), path).toEqual([]);
      expect(await overflow(page), path).toBeLessThanOrEqual(0);
    }
    await close(context, watched);
  },
);

test("dialogs and menus can be used by everybody, and give the focus back", async () => {
  const { context, page, watched } = await open(browser, "/jobs");
  await page.getByRole("link", { name: "demo/tick" }).click();
  const button = page.getByRole("button", { name: "Pause" });
  await button.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  expect(await inaccessible(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await button.evaluate((element) => element === document.activeElement)).toBe(true);
  await page.getByRole("button", { name: "Settings and account" }).click();
  await page.getByRole("menuitemradio", { name: "dark" }).click();
  expect(await page.getAttribute("html", "data-theme")).toBe("dark");
  await page.getByRole("menuitemradio", { name: "简体中文" }).click();
  await page.getByRole("link", { name: "作业" }).first().waitFor();
  expect(await inaccessible(page)).toEqual([]);
  await page.reload();
  expect(await page.getAttribute("html", "data-theme")).toBe("dark");
  await page.getByRole("link", { name: "作业" }).first().waitFor();
  await close(context, watched);
});
