// A job's calendar and its statistics.
import { test } from "vitest";
import { call, ended, job, trigger, until } from "./support/node";
import { close, open, withBrowser } from "./support/page";

withBrowser();

test("the calendar shows what became of each instant", async () => {
  const tick = await call("GET", "/api/v1/jobs/by-name?name=demo/tick");
  const { context, page, watched } = await open(`/jobs/${tick.jobId}?tab=calendar`);
  const cell = page.getByRole("button", { name: /fired \d+/ }).last();
  await cell.click();
  await page
    .getByRole("link", { name: /^run \d+/ })
    .first()
    .click();
  await page.waitForURL(/\/runs\/\d+/);
  await close(context, watched);
});

test("statistics of a job count its runs, and lead to them", async () => {
  const jobId = await job("why/counted", "exit 3", { deadLetter: false });
  const good = await job("why/good", "true");
  for (const id of [jobId, good, good]) await ended(await trigger(id));
  const { context, page, watched } = await open(`/jobs/${good}`);
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
