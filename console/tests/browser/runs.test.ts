// Runs of all jobs, and the numbers of the home page that lead to them.
import { expect, test } from "vitest";
import { call, ended, job, running, trigger, until } from "./support/node";
import { close, inaccessible, open, overflow, shot, withBrowser } from "./support/page";

withBrowser();

test("runs of all jobs are found by state, job, source, label and time, and the view is a link", async () => {
  const label = `of-${Date.now()}`;
  const good = await job("runs/good", "true", { labels: { list: label } });
  const bad = await job("runs/bad", "exit 3", { labels: { list: label } });
  const slow = await job("runs/slow", "sleep 60", { labels: { list: label } });
  const goodRun = await trigger(good);
  const badRun = await trigger(bad);
  const slowRun = await trigger(slow);
  await ended(goodRun);
  await ended(badRun);
  await running(slowRun);
  const { context, page, watched } = await open("/runs");
  const ids = async () =>
    (await page.getByRole("table", { name: "Runs" }).getByRole("link", { name: /^\d+$/ }).allTextContents()).map(
      Number,
    );
  const shows = (...wanted: number[]) =>
    until("the runs", ids, (found) => found.length === wanted.length && wanted.every((run) => found.includes(run)));
  await page.getByLabel("Labels: team=pay,tier!=test").fill(`list=${label}`);
  await page.waitForURL(/labels=/);
  await shows(slowRun, badRun);
  await page.getByLabel("State", { exact: true }).selectOption({ label: "running" });
  await shows(slowRun);
  await page.getByLabel("State", { exact: true }).selectOption({ label: "failed or timed out" });
  await shows(badRun);
  await page.getByLabel("State", { exact: true }).selectOption({ label: "succeeded" });
  await shows(goodRun);
  await page.getByLabel("Source").selectOption("SCHEDULE");
  await page.getByText("No run matches.").waitFor();
  await page.getByLabel("Source").selectOption("MANUAL");
  await shows(goodRun);
  await page.getByLabel("Since", { exact: true }).fill("2099-01-01T00:00:00");
  await page.getByText("No run matches.").waitFor();
  expect(page.url()).toContain("from=2098-12-31T23");
  // The address is the view.
  await page.goto(page.url().replace("from=2098", "from=2020"));
  await shows(goodRun);
  // Of one job, in every state; the job is named, and can be let go.
  await page.goto(new URL(`/runs?job=${bad}`, page.url()).href);
  await shows(badRun);
  await page.getByRole("button", { name: "Runs of all jobs" }).click();
  await page.waitForURL(/\/runs$/);
  // Keys: the next row, and open it.
  await page.goto(new URL(`/runs?job=${slow}`, page.url()).href);
  await shows(slowRun);
  await page.keyboard.press("j");
  await page.keyboard.press("o");
  await page.waitForURL(new RegExp(`/runs/${slowRun}`));
  await page.goBack();
  // The runs of a job are watched: the end is seen without a reload.
  await page.locator("tr [data-state=RUNNING]").waitFor();
  await call("POST", `/api/v1/runs/${slowRun}/cancel`, {});
  await page.locator("tr [data-state=CANCELED]").waitFor();
  await close(context, watched);
});

test("a long list of runs is read page by page", async () => {
  const jobId = await job("runs/many", "true", { executorSelector: "nobody", concurrencyPolicy: "ALLOW" });
  const body = Array.from({ length: 130 }, (_, index) => trigger(jobId, { manualRunId: `many-${index}` }));
  const made = new Set(await Promise.all(body));
  const { context, page, watched } = await open(`/runs?job=${jobId}`);
  await page.getByText("100 shown, more follow").waitFor();
  await page.getByRole("button", { name: "Show more" }).click();
  await page.getByText("130 runs").waitFor();
  expect(made.size).toBe(130);
  await call("DELETE", `/api/v1/jobs/${jobId}`);
  await close(context, watched);
});

test("numbers of the home page lead to the runs behind them", async () => {
  const slow = await job("home/slow", "sleep 60");
  const bad = await job("home/bad", 'echo "the ledger of 2026 is closed" >&2; exit 4');
  const slowRun = await trigger(slow);
  await ended(await trigger(bad));
  const { context, page, watched } = await open("/");
  const running = page.getByRole("list", { name: "Running now" });
  await running.getByRole("link", { name: String(slowRun) }).waitFor();
  await running.getByRole("link", { name: "home/slow" }).waitFor();
  await page.getByRole("img", { name: /^Due instants by minute: [1-9]/ }).waitFor();
  const causes = page.getByRole("list", { name: "Causes of dead letters" });
  await causes.getByRole("link", { name: /the ledger of 2026/ }).waitFor();
  await page
    .getByRole("list", { name: "Causes", exact: true })
    .getByRole("link", { name: /the ledger of/ })
    .waitFor();
  expect(await inaccessible(page)).toEqual([]);
  await shot(page, "home");
  for (const [name, where] of [
    [/^Bodies running/, "/runs?state=RUNNING"],
    [/^Runs waiting/, "/runs?state=PENDING%2CQUEUED%2CRETRY_WAIT"],
    [/^Fires a second/, "/runs?source=SCHEDULE"],
    [/^Running now/, "/runs?state=RUNNING"],
    [/^Due in the next hour/, "/jobs?status=ENABLED"],
  ] as const)
    expect(await page.getByRole("link", { name }).first().getAttribute("href"), String(name)).toBe(where);
  // So does each hour with failures.
  const hour = page.getByRole("group", { name: "Failures by hour" }).getByRole("link").last();
  expect(await hour.getAttribute("href")).toMatch(/^\/runs\?state=FAILED%2CTIMEOUT&from=.*&to=/);
  await hour.click();
  await page.getByRole("table", { name: "Runs" }).getByText("the ledger of 2026 is closed").first().waitFor();
  await page.goBack();
  await page.getByRole("link", { name: /^Bodies running/ }).click();
  await page
    .getByRole("table", { name: "Runs" })
    .getByRole("link", { name: String(slowRun) })
    .waitFor();
  await page.goBack();
  // What has ended leaves what is running.
  await running.getByRole("link", { name: String(slowRun) }).waitFor();
  await call("POST", `/api/v1/runs/${slowRun}/cancel`, {});
  await running.getByRole("link", { name: String(slowRun) }).waitFor({ state: "detached" });
  await page.setViewportSize({ width: 360, height: 740 });
  expect(await overflow(page)).toBeLessThanOrEqual(0);
  await shot(page, "home-360");
  await close(context, watched);
});
