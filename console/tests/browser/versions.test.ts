// Who changed a job, what, and the way back; and what people write about it.
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { call, close, inaccessible, job, launch, open, overflow, shot } from "./support";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
});

test("a job is rolled back to an earlier version, after what changes was shown", async () => {
  const jobId = await job("versions/one", "true", { timeoutSec: 60 });
  const get = () => call("GET", `/api/v1/jobs/${jobId}`);
  const { version, ...was } = await get();
  const spec = Object.fromEntries(
    Object.entries(was).filter(([name]) => ["name", "trigger", "action", "retryPolicy", "timeoutSec"].includes(name)),
  );
  await call("PUT", `/api/v1/jobs/${jobId}`, { version, spec: { ...spec, timeoutSec: 77 } });
  const { context, page, watched } = await open(browser, `/jobs/${jobId}?tab=versions`);
  const versions = page.getByRole("list", { name: "Versions" }).getByRole("listitem");
  const second = versions.filter({ hasText: "Version 2" });
  await second.getByRole("row").filter({ hasText: "timeoutSec" }).getByText("77").waitFor();
  expect(await versions.count()).toBe(2);
  expect(await inaccessible(page)).toEqual([]);
  await shot(page, "versions");
  await page.getByRole("button", { name: "Roll back to version 1" }).click();
  const dialog = page.getByRole("dialog");
  const row = dialog.getByRole("row").filter({ hasText: "timeoutSec" });
  // From what it is now to what it will be.
  await row.waitFor();
  expect(await row.getByRole("cell").allInnerTexts()).toEqual(["timeoutSec", "77", "60"]);
  await dialog.getByLabel(/^Reason/).fill("too long");
  await shot(page, "roll-back");
  await dialog.getByRole("button", { name: "Roll back" }).click();
  await page.getByText("version 3", { exact: false }).first().waitFor();
  await versions.filter({ hasText: "Version 3" }).getByText("too long").waitFor();
  expect(await get()).toMatchObject({ version: 3, timeoutSec: 60 });
  // Somebody else edits it while the dialog is open: the roll back is refused.
  await page.getByRole("button", { name: "Roll back to version 2" }).click();
  await dialog.getByRole("row").filter({ hasText: "timeoutSec" }).waitFor();
  await call("PUT", `/api/v1/jobs/${jobId}`, { version: 3, spec: { ...spec, timeoutSec: 99 } });
  await dialog.getByRole("button", { name: "Roll back" }).click();
  await dialog.getByText("409_STALE_VERSION").waitFor();
  expect(await get()).toMatchObject({ version: 4, timeoutSec: 99 });
  await close(context, watched);
});

test("a job has texts for people in any language, found by search and shown as text", async () => {
  const { context, page, watched } = await open(browser, "/jobs/new");
  const name = `versions/texts-${Date.now()}`;
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByText("by hand", { exact: true }).click();
  await page.getByLabel("Shell script").fill("true");
  await page.getByLabel("Display name").fill("每日计费");
  await page.getByLabel("Owner").fill("finance@example.org");
  await page.getByLabel("Description").fill("Closes the books.\n<script>alert(1)</script>");
  await page.getByLabel("Annotations").fill("runbook=https://example.org/billing");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name }).waitFor();
  await page.getByText("每日计费").waitFor();
  await page.getByText("<script>alert(1)</script>").waitFor();
  const link = page.getByRole("link", { name: "https://example.org/billing" });
  expect(await link.getAttribute("rel")).toContain("noreferrer");
  expect(await inaccessible(page)).toEqual([]);
  await shot(page, "texts");
  const found = await call("GET", `/api/v1/jobs/by-name?name=${encodeURIComponent(name)}`);
  expect(found).toMatchObject({
    displayName: "每日计费",
    owner: "finance@example.org",
    annotations: { runbook: "https://example.org/billing" },
  });
  // Edited, and emptied again.
  await page.getByRole("link", { name: "Edit" }).click();
  await page.getByLabel("Owner").fill("");
  await page.getByLabel("Annotations").fill("");
  await page.getByRole("button", { name: "Look at the changes" }).click();
  await page.getByRole("dialog").getByRole("row").filter({ hasText: "owner" }).waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await page.getByText("version 2").waitFor();
  const after = await call("GET", `/api/v1/jobs/${found.jobId}`);
  expect(after.displayName).toBe("每日计费");
  expect(after.owner ?? null).toBeNull();
  expect(after.annotations ?? {}).toEqual({});
  await page.setViewportSize({ width: 360, height: 740 });
  expect(await overflow(page)).toBeLessThanOrEqual(0);
  // The list finds it by the text.
  await page.goto(new URL(`/jobs?text=${encodeURIComponent("每日计费")}`, page.url()).href);
  await page.getByRole("link", { name, exact: true }).waitFor();
  await close(context, watched);
});
