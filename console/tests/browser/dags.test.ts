// The nodes of a DAG run: seen, run again, and marked by a person.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { call, dag, ended, trigger } from "./support/node";
import { PHONE, close, inaccessible, open, overflow, runOf, withBrowser } from "./support/page";

withBrowser();

test("the nodes of a DAG are seen, and the one that failed is run again when its cause is repaired", async () => {
  const directory = mkdtempSync(join(tmpdir(), "campanile-dag-"));
  const flag = join(directory, "flag");
  const jobId = await dag("dag/nightly", flag);
  const { context, page, watched } = await open(`/jobs/${jobId}?tab=definition`);
  const defined = page.getByRole("table", { name: "Nodes" });
  await defined.getByRole("row").filter({ hasText: "report" }).getByText("all before it succeeded").waitFor();
  await page.getByRole("button", { name: "Run now" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Run now" }).click();
  await page.waitForURL(/\/runs\/\d+/);
  await page.locator("h1 [data-state=FAILED]").waitFor();
  const nodes = page.getByRole("table", { name: "Nodes" }).getByRole("row");
  const node = (id: string) => nodes.filter({ has: page.getByText(id, { exact: true }) });
  await node("load").locator("[data-state=SUCCESS]").waitFor();
  await node("check").locator("[data-state=FAILED]").waitFor();
  await node("report").locator("[data-state=UPSTREAM_FAILED]").waitFor();
  const picture = page.getByRole("group", { name: "Picture of the nodes" });
  expect(await picture.locator("g path").count()).toBe(4);
  expect(await picture.getByRole("link").count()).toBe(2);
  expect(await inaccessible(page)).toEqual([]);
  // From the picture to the run of a node, and back.
  await picture.getByRole("link", { name: /check/ }).click();
  await page.getByRole("heading", { name: /dag\/nightly-check/ }).waitFor();
  await page.getByText("Node of the DAG run").waitFor();
  await page.goBack();
  writeFileSync(flag, "");
  await page.getByRole("button", { name: "Run again: node check" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Run again" }).click();
  await page.locator("h1 [data-state=SUCCESS]").waitFor();
  await node("report").locator("[data-state=SUCCESS]").waitFor();
  // What had succeeded did not run again.
  const runId = await runOf(page);
  const after = await call("GET", `/api/v1/runs/${runId}/nodes`);
  expect(after.nodes.map((node: { generation: number }) => node.generation)).toEqual([1, 2, 1]);
  await close(context, watched);
  rmSync(directory, { recursive: true });
});

test("a node of a DAG is marked by a person, and what waits for it goes on", async () => {
  const jobId = await dag("dag/marked", "/nowhere/flag");
  const runId = await trigger(jobId);
  await ended(runId);
  const { context, page, watched } = await open(`/runs/${runId}`, PHONE);
  await page.getByRole("button", { name: "Mark the node check" }).click();
  await page.getByRole("dialog").getByText("succeeded", { exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Mark", exact: true }).click();
  await page.locator("h1 [data-state=SUCCESS]").waitFor();
  await page.getByText("set by a person").waitFor();
  expect(await overflow(page)).toBeLessThanOrEqual(0);
  expect(await inaccessible(page)).toEqual([]);
  await close(context, watched);
});
