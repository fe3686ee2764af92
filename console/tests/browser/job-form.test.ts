// A job is created and edited in the form.
import { expect, test } from "vitest";
import { call, job } from "./support/node";
import { close, inaccessible, open, overflow, shot, withBrowser } from "./support/page";

withBrowser();

test("a job is created, run and read from the first field to the last line of its log", async () => {
  const { context, page, watched } = await open("/jobs");
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

test("a DAG is created and edited in the form", async () => {
  await job("dag/part", "true");
  const { context, page, watched } = await open("/jobs/new");
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

test("a job has texts for people in any language, found by search and shown as text", async () => {
  const { context, page, watched } = await open("/jobs/new");
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
