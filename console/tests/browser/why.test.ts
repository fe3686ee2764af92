// Why is it not running, and when does it fire? What the node knows, on the page of the run and of the job.
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  call,
  close,
  ended,
  inaccessible,
  job,
  launch,
  open,
  overflow,
  shot,
  startExecutor,
  trigger,
  until,
} from "./support";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
});

test("a run says what it waits for, who holds that, and goes on when the cause is gone", async () => {
  const jobId = await job("why/paused", "echo ran", { executorSelector: "why" });
  const runId = await trigger(jobId);
  const { context, page, watched } = await open(browser, `/runs/${runId}`);
  const reasons = page.getByRole("list", { name: "Reasons" });
  await reasons.locator("[data-code=NO_EXECUTOR]").getByRole("link", { name: "pool why" }).waitFor();
  await call("POST", `/api/v1/jobs/${jobId}/pause`, { reason: "month end" });
  const wait = reasons.locator("[data-code=JOB_PAUSED]");
  await wait.getByText("month end").waitFor();
  await wait.getByText("What helps:").waitFor();
  // Who paused it is a link to what that caller did.
  await wait.getByRole("link", { name: /^by / }).waitFor();
  expect(await inaccessible(page)).toEqual([]);
  await shot(page, "run-why");
  await call("POST", `/api/v1/jobs/${jobId}/resume`, {});
  const stop = startExecutor("why");
  await page.locator("h1 [data-state=SUCCESS]").waitFor();
  await wait.waitFor({ state: "detached" });
  await reasons.locator("[data-code=ENDED]").waitFor();
  await reasons.locator("[data-code=TRIGGERED]").waitFor();
  await stop();
  await close(context, watched);
});

test("a run that waits for another names it, and the name leads there", async () => {
  const jobId = await job("why/forbid", "sleep 60", { concurrencyPolicy: "QUEUE_ONE" });
  const first = await trigger(jobId);
  await until(
    "the body",
    () => call("GET", `/api/v1/runs/${first}`),
    (run) => run.state === "RUNNING",
  );
  const second = await trigger(jobId);
  const { context, page, watched } = await open(browser, `/runs/${second}`, { viewport: { width: 360, height: 740 } });
  const holder = page.getByRole("list", { name: "Who holds it" }).getByRole("link", { name: `run ${first}` });
  await holder.waitFor();
  expect(await overflow(page)).toBeLessThanOrEqual(0);
  await holder.click();
  await page.waitForURL(new RegExp(`/runs/${first}$`));
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel the run" }).click();
  await page.locator("h1 [data-state=CANCELED]").waitFor();
  await close(context, watched);
  await call("POST", `/api/v1/runs/${second}/cancel`, {});
});

test("a job says when it fires next, what became of its last instant, and of any other one", async () => {
  const jobId = await job("why/clock", "true", {
    trigger: { type: "FIXED_RATE", everySec: 1, misfirePolicy: "SKIP" },
  });
  const fired = await until(
    "a run",
    () => call("GET", `/api/v1/jobs/${jobId}/runs`),
    (runs) => runs.items.length > 0,
  );
  await ended(fired.items[0].runId);
  const { context, page, watched } = await open(browser, `/jobs/${jobId}`);
  await page.locator("[data-code=NEXT_FIRE]").waitFor();
  await page
    .locator("[data-code=INSTANT_FIRED]")
    .getByRole("link", { name: /^run \d+$/ })
    .waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/^Reason/).fill("too loud");
  await dialog.getByRole("button", { name: "Pause" }).click();
  await page.locator("[data-code=JOB_PAUSED]").getByText("too loud").first().waitFor();
  // An instant that somebody asks for stays in the address.
  await page.getByLabel(/^Another instant/).fill("2020-01-01T00:00:00");
  await page.locator("[data-code=BEFORE_THE_JOB], [data-code=NOT_AN_INSTANT]").waitFor();
  expect(page.url()).toContain("at=2019-12-31T23");
  await page.reload();
  await page.locator("[data-code=BEFORE_THE_JOB], [data-code=NOT_AN_INSTANT]").waitFor();
  expect(await inaccessible(page)).toEqual([]);
  await shot(page, "job-why");
  await close(context, watched);
});

test("statistics of a job count its runs, and lead to them", async () => {
  const jobId = await job("why/counted", "exit 3", { deadLetter: false });
  const good = await job("why/good", "true");
  for (const id of [jobId, good, good]) await ended(await trigger(id));
  const { context, page, watched } = await open(browser, `/jobs/${good}`);
  await page.getByText("100 %").waitFor();
  await page.getByLabel("Time that statistics cover").selectOption("7d");
  await page.waitForURL(/window=7d/);
  const outcomes = page.getByRole("list", { name: "Ended runs by state" });
  await outcomes.getByRole("link", { name: /succeeded 2/ }).click();
  await page.waitForURL(/\/runs\?/);
  const rows = page.getByRole("table", { name: "Runs" }).getByRole("row");
  await until(
    "both runs",
    () => rows.count(),
    (count) => count === 3,
  );
  await close(context, watched);
});

test("the log is searched by the node: text, level and the last lines", async () => {
  const script =
    "for i in $(seq 1 3000); do echo \"INFO line $i\"; done; echo 'ERROR it broke at 42'; echo 'WARN so so'";
  const runId = await trigger(await job("why/log", script));
  await ended(runId);
  const asked: string[] = [];
  const { context, page, watched } = await open(browser, `/runs/${runId}`);
  page.on("request", (request) => request.url().includes("/log?") && asked.push(request.url()));
  const log = page.getByRole("log");
  await log.getByText("WARN so so").waitFor();
  await page.getByLabel("Search in the log").fill("BROKE");
  await page.getByRole("button", { name: "Only these lines" }).click();
  await until(
    "the filter",
    () => log.getByText("WARN so so").count(),
    (count) => count === 0,
  );
  await log.getByText("it broke at 42", { exact: false }).waitFor();
  expect(asked.at(-1)).toContain("contains=BROKE");
  // Typing on narrows further, until nothing fits.
  await page.getByLabel("Search in the log").fill("broke nowhere");
  await page.getByText("No line matches.").waitFor();
  await page.getByRole("button", { name: "Only these lines" }).click();
  await page.getByLabel("Search in the log").fill("");
  await page.getByLabel("Least level").selectOption("WARN");
  await log.getByText("ERROR it broke").waitFor();
  await until(
    "only grave lines",
    () => log.getByText("INFO line").count(),
    (count) => count === 0,
  );
  await page.getByLabel("Least level").selectOption("");
  await page.getByLabel("How many lines").selectOption("100");
  await log.getByText("INFO line 2999", { exact: true }).waitFor();
  expect(asked.at(-1)).toContain("tail=100");
  await log.evaluate((element) => element.scrollTo(0, 0));
  await log.getByText("INFO line 2903", { exact: true }).waitFor();
  // The view is a link.
  expect(page.url()).toContain("tail=100");
  await shot(page, "run-log");
  await close(context, watched);
});

test("a run shows the trace that its caller began", async () => {
  const traceId = "0af7651916cd43dd8448eb211c80319c";
  const jobId = await job("why/traced", "true");
  const run = await call(
    "POST",
    `/api/v1/jobs/${jobId}/trigger`,
    {},
    { traceparent: `00-${traceId}-b7ad6b7169203331-01` },
  );
  const { context, page, watched } = await open(browser, `/runs/${run.runId}`);
  await page.getByText(traceId).waitFor();
  await close(context, watched);
});
