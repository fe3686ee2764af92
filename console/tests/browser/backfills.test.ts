// A stretch of a job's past is run from its calendar: first counted, then begun, followed, held and canceled.
import { expect, test } from "vitest";
import { call, job, missingInstants, until } from "./support/node";
import { close, inaccessible, open, overflow, shot, withBrowser } from "./support/page";

withBrowser();

const runsOf = async (jobId: number, source: string) =>
  (await call("GET", `/api/v1/runs?jobId=${jobId}&source=${source}&pageSize=1000`)).items;

test("a day of the calendar is backfilled: counted first, then run, and the runs are there", async () => {
  const jobId = await missingInstants("backfill/day", "echo made up for");
  const { context, page, watched } = await open(`/jobs/${jobId}?tab=calendar`);
  await page.getByRole("button", { name: "days" }).click();
  await page
    .getByRole("button", { name: /skipped \d+/ })
    .last()
    .click();
  await page.getByRole("button", { name: "Backfill this day" }).click();
  const dialog = page.getByRole("dialog");
  const start = dialog.getByRole("button", { name: /^Start \(\d+ runs?\)$/ });
  await start.waitFor();
  const count = Number(/\d+/.exec(await start.innerText())![0]);
  // What the node counts is shown before anything begins.
  await dialog.getByText(`${count} runs would start.`).waitFor();
  expect(await runsOf(jobId, "BACKFILL")).toEqual([]);
  expect(await inaccessible(page)).toEqual([]);
  await shot(page, "backfill-dialog");
  await dialog.getByLabel(/^Reason/).fill("the report of yesterday");
  await start.click();
  await page.waitForURL(/tab=backfill/);
  await page.getByText(`${count} of ${count} runs have ended`).waitFor();
  await page.locator("main [data-state=DONE]").waitFor();
  await page.getByText("the report of yesterday").waitFor();
  await shot(page, "backfill-done");
  const runs = await runsOf(jobId, "BACKFILL");
  expect(runs).toHaveLength(count);
  expect(new Set(runs.map((run: { state: string }) => run.state))).toEqual(new Set(["SUCCESS"]));
  // The number leads to the runs.
  await page.getByRole("link", { name: String(count), exact: true }).click();
  await page.waitForURL(/\/runs\?/);
  await page.getByText(`${count} runs`).waitFor();
  // Twice the same makes no second run.
  await page.goto(new URL(`/jobs/${jobId}?tab=backfill`, page.url()).href);
  await page.getByRole("button", { name: "Backfill a stretch" }).click();
  await page.getByRole("dialog").getByText("Nothing would run.").waitFor();
  expect(await page.getByRole("dialog").getByRole("button", { name: "Start" }).isDisabled()).toBe(true);
  await close(context, watched);
});

test("a missing stretch offers its backfill, which is paused, resumed and canceled", async () => {
  const jobId = await missingInstants("backfill/slow", "sleep 20", { concurrencyPolicy: "ALLOW" });
  const { context, page, watched } = await open(`/jobs/${jobId}?tab=calendar`, {
    viewport: { width: 360, height: 740 },
  });
  await page
    .getByRole("button", { name: /skipped \d+/ })
    .last()
    .click();
  await page
    .getByRole("button", { name: /^Backfill (it|this stretch)$/ })
    .first()
    .click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: /^Start \(/ }).waitFor();
  await dialog.getByText("How it runs").click();
  await dialog.getByLabel("Runs at once").fill("many");
  await dialog.getByText("Write a number from 1 to 200.").waitFor();
  expect(await dialog.getByRole("button", { name: /^Start/ }).isDisabled()).toBe(true);
  await dialog.getByLabel("Runs at once").fill("1");
  await dialog.getByRole("button", { name: /^Start \(/ }).click();
  await page.waitForURL(/tab=backfill/);
  await page.getByRole("button", { name: "Pause the backfill" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Pause the backfill" }).click();
  await page.locator("main section [data-state=PAUSED]").waitFor();
  const of = () => call("GET", `/api/v1/jobs/${jobId}/backfill`);
  expect((await of()).state).toBe("PAUSED");
  expect(await overflow(page)).toBeLessThanOrEqual(0);
  expect(await inaccessible(page)).toEqual([]);
  await shot(page, "backfill-paused-360");
  await page.getByRole("button", { name: "Resume the backfill" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Resume the backfill" }).click();
  await page.getByRole("button", { name: "Pause the backfill" }).waitFor();
  expect(await of()).toMatchObject({ state: "RUNNING", parallelism: 1 });
  await page.getByRole("button", { name: "Cancel the backfill" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel the backfill" }).click();
  await page.locator("main section [data-state=CANCELED]").waitFor();
  await until("the end of the backfill", of, ({ state }) => state === "CANCELED");
  await close(context, watched);
});

test("runs of the past are replayed", async () => {
  const jobId = await job("backfill/replayed", "true", { trigger: { type: "FIXED_RATE", everySec: 1 } });
  await until(
    "two runs",
    () => call("GET", `/api/v1/jobs/${jobId}/runs`),
    (runs) => runs.items.filter((run: { state: string }) => run.state === "SUCCESS").length >= 2,
  );
  const { context, page, watched } = await open(`/jobs/${jobId}?tab=backfill`);
  await page.getByText("The job has no backfill.").waitFor();
  await page.getByRole("button", { name: "Replay" }).click();
  const dialog = page.getByRole("dialog");
  // Each instant runs twice: the node says so.
  await dialog.getByRole("button", { name: /^Start \(\d+ runs\)$/ }).waitFor();
  await dialog.getByRole("button", { name: /^Start/ }).click();
  await page.locator("main section [data-state=DONE]").waitFor();
  const runs = await runsOf(jobId, "REPLAY");
  expect(runs.length).toBeGreaterThanOrEqual(2);
  // The page of such a run leads back to its backfill.
  await page.goto(new URL(`/runs/${runs[0].runId}`, page.url()).href);
  await page.getByRole("link", { name: String(runs[0].backfillId) }).click();
  await page.waitForURL(/tab=backfill/);
  await close(context, watched);
  await call("DELETE", `/api/v1/jobs/${jobId}`);
});

test("a job without instants of the past has nothing to backfill, and says so", async () => {
  const jobId = await job("backfill/by-hand", "true");
  const { context, page, watched } = await open(`/jobs/${jobId}?tab=backfill`);
  await page.getByText("Only jobs with a cron expression").waitFor();
  expect(await page.getByRole("button", { name: "Backfill a stretch" }).isDisabled()).toBe(true);
  await close(context, watched);
});
