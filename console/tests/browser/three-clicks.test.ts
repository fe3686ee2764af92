// What people on call ask first is at most three clicks from the home page. Typing is not counted, clicks are.
import type { Locator, Page } from "playwright-core";
import { expect, test } from "vitest";
import { call, ended, job, missingInstants, running, trigger } from "./support/node";
import { close, open, shot, withBrowser } from "./support/page";

withBrowser();

/** Clicks, and types in between; the page itself, not the test, counts the clicks. */
async function clicks(page: Page, ...steps: (Locator | (() => Promise<unknown>))[]) {
  await page.getByRole("heading", { name: "What is wrong now?" }).waitFor();
  await page.evaluate(() => {
    (window as any).clicks = 0;
    window.addEventListener("click", (event) => event.isTrusted && ((window as any).clicks += 1), true);
  });
  for (const step of steps) await (typeof step === "function" ? step() : step.click());
  // Pages change within the console, which keeps the count.
  const made = await page.evaluate(() => (window as any).clicks as number);
  expect(made).toBe(steps.filter((step) => typeof step !== "function").length);
  expect(made).toBeLessThanOrEqual(3);
}

/** By keys: the list may have thousands of jobs. */
const search = (page: Page, name: string) => async () => {
  await page.getByRole("heading", { name: "Jobs" }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type(name);
};

const MINE = `on-call-${Date.now()}`;

test("within_three_clicks: why last night's report did not run", async () => {
  const report = await missingInstants(`${MINE}/report`, "echo report", {}, true);
  expect((await call("GET", `/api/v1/jobs/${report}`)).runCount).toBe(0);
  const { context, page, watched } = await open("/");
  await clicks(
    page,
    page.getByRole("link", { name: "Jobs", exact: true }).first(),
    search(page, `${MINE}/report`),
    page.getByRole("link", { name: `${MINE}/report` }),
  );
  // What became of its last instant, and why.
  await page.getByRole("heading", { name: /^The last due instant/ }).waitFor();
  await page
    .locator("[data-code=INSTANT_SKIPPED]")
    .getByText(/paused/)
    .first()
    .waitFor();
  await shot(page, "three-report");
  await close(context, watched);
});

test("within_three_clicks: what is running now", async () => {
  const runId = await trigger(await job(`${MINE}/long`, "sleep 60"));
  await running(runId);
  const { context, page, watched } = await open("/");
  await clicks(page, page.getByRole("link", { name: /^Bodies running/ }));
  const row = page
    .getByRole("table", { name: "Runs" })
    .getByRole("row")
    .filter({ hasText: String(runId) });
  await row.locator("[data-state=RUNNING]").waitFor();
  await row.getByRole("link", { name: `${MINE}/long` }).waitFor();
  await shot(page, "three-running");
  await call("POST", `/api/v1/runs/${runId}/cancel`, {});
  await close(context, watched);
});

test("within_three_clicks: the dead letters of one cause and their redrive", async () => {
  const cause = `no such table: ${MINE.replace(/\d/g, "x")}`;
  const ids = [
    await job(`${MINE}/one`, `echo "${cause}" >&2; exit 5`),
    await job(`${MINE}/two`, `echo "${cause}" >&2; exit 5`),
  ];
  const runs: number[] = [];
  for (const jobId of ids) {
    for (let times = 0; times < 2; times += 1) {
      const runId = await trigger(jobId);
      await ended(runId);
      runs.push(runId);
    }
  }
  const { context, page, watched } = await open("/");
  await clicks(
    page,
    page.getByRole("list", { name: "Causes of dead letters" }).getByRole("link", { name: new RegExp(cause) }),
    page
      .getByRole("list", { name: "Causes" })
      .getByRole("listitem")
      .filter({ hasText: cause })
      .getByRole("button", { name: "Redrive all 4" }),
    page.getByRole("dialog").getByRole("button", { name: "Redrive (4)" }),
  );
  await page.getByText("Done for 4 of 4.").waitFor();
  // The list of the cause was open all the while.
  expect(new URL(page.url()).searchParams.get("cause")).toBeTruthy();
  await shot(page, "three-redrive");
  for (const runId of runs) {
    const run = await ended(runId);
    expect(run.generation).toBe(2);
  }
  await close(context, watched);
});

test("within_three_clicks: the backfill of a missing day", async () => {
  const jobId = await missingInstants(`${MINE}/missing`, "echo made up for");
  const { context, page, watched } = await open("/");
  await clicks(
    page,
    page.getByRole("link", { name: "Jobs", exact: true }).first(),
    search(page, `${MINE}/missing`),
    page.getByRole("link", { name: `${MINE}/missing` }),
    page.getByRole("button", { name: "Backfill them" }),
  );
  const dialog = page.getByRole("dialog");
  const start = dialog.getByRole("button", { name: /^Start \(\d+ runs\)$/ });
  await start.waitFor();
  const count = Number(/\d+/.exec(await start.innerText())![0]);
  await dialog.getByText(`${count} runs would start.`).waitFor();
  await shot(page, "three-backfill");
  // Enter confirms what was counted.
  await dialog.getByLabel(/^Reason/).press("Enter");
  await page.locator("main section [data-state=DONE]").waitFor();
  const found = await call("GET", `/api/v1/runs?jobId=${jobId}&source=BACKFILL&state=SUCCESS`);
  expect(found.items).toHaveLength(count);
  await close(context, watched);
});
