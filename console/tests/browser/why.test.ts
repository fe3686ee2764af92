// Why is it not running, and when does it fire? What the node knows, on the page of the run and of the job.
import { expect, test } from "vitest";
import { call, ended, job, running, startExecutor, trigger, until } from "./support/node";
import { PHONE, close, inaccessible, open, overflow, shot, withBrowser } from "./support/page";

withBrowser();

test("a run says what it waits for, who holds that, and goes on when the cause is gone", async () => {
  const jobId = await job("why/paused", "echo ran", { executorSelector: "why" });
  const runId = await trigger(jobId);
  const { context, page, watched } = await open(`/runs/${runId}`);
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
  await running(first);
  const second = await trigger(jobId);
  const { context, page, watched } = await open(`/runs/${second}`, PHONE);
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
  const { context, page, watched } = await open(`/jobs/${jobId}`);
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
