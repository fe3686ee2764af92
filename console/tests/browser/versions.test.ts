// Who changed a job, what, and the way back.
import { expect, test } from "vitest";
import { call, job } from "./support/node";
import { close, inaccessible, open, shot, withBrowser } from "./support/page";

withBrowser();

test("a job is rolled back to an earlier version, after what changes was shown", async () => {
  const jobId = await job("versions/one", "true", { timeoutSec: 60 });
  const get = () => call("GET", `/api/v1/jobs/${jobId}`);
  const { version, ...was } = await get();
  const spec = Object.fromEntries(
    Object.entries(was).filter(([name]) => ["name", "trigger", "action", "retryPolicy", "timeoutSec"].includes(name)),
  );
  await call("PUT", `/api/v1/jobs/${jobId}`, { version, spec: { ...spec, timeoutSec: 77 } });
  const { context, page, watched } = await open(`/jobs/${jobId}?tab=versions`);
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
