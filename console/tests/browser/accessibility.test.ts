// Every page, dialogs and menus: axe, small screens, both languages and themes, and the keyboard.
import { expect, test } from "vitest";
import { call, server, until } from "./support/node";
import { close, inaccessible, loaded, open, overflow, withBrowser } from "./support/page";

withBrowser();

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
    const { context, page, watched } = await open("/", {
      colorScheme,
      locale,
      viewport: { width, height: 800 },
    });
    expect(await page.getAttribute("html", "lang")).toBe(locale === "zh-CN" ? "zh-Hans" : "en");
    for (const path of await pages()) {
      await page.goto(server() + path);
      await loaded(page);
      expect(await inaccessible(page), path).toEqual([]);
      expect(await overflow(page), path).toBeLessThanOrEqual(0);
    }
    await close(context, watched);
  },
);

test("dialogs and menus can be used by everybody, and give the focus back", async () => {
  const { context, page, watched } = await open("/jobs");
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
