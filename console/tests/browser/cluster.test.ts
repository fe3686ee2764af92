// The console against a real cluster of three nodes: what it shows comes from all of them, and it outlives the restart of a node.
import { afterAll, beforeAll, expect, test } from "vitest";
import { startCluster, type RealCluster } from "./support/cluster";
import { callOf, jobSpec, until } from "./support/node";
import { close, inaccessible, open, runOf, shot, withBrowser } from "./support/page";

withBrowser();

let cluster: RealCluster;
beforeAll(async () => {
  cluster = await startCluster();
}, 400_000);
afterAll(async () => {
  await cluster?.end();
}, 120_000);

test("pages and an action work on a cluster, and go on while nodes restart", { timeout: 300_000 }, async () => {
  const base = cluster.urls[0]!;
  const call = callOf(base, cluster.token);
  // Enough jobs that every node owns some.
  for (let number = 0; number < 12; number += 1)
    await call(
      "POST",
      "/api/v1/jobs",
      jobSpec(`spread/${number}`, "echo here", { trigger: { type: "FIXED_RATE", everySec: 2 } }),
    );
  const slow = await call("POST", "/api/v1/jobs", jobSpec("cluster/slow", "sleep 600"));
  const { context, page, watched } = await open("/", { base });
  await page.getByLabel("Token").fill(cluster.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "What is wrong now?" }).waitFor();
  await page.getByRole("img", { name: /^Due instants by minute: [1-9]/ }).waitFor();

  await page.getByRole("link", { name: "Cluster", exact: true }).click();
  const members = page.getByRole("table", { name: "Nodes" });
  await until(
    "three nodes",
    () => members.locator("[data-state=ALIVE]").count(),
    (count) => count === 3,
  );
  await shot(page, "cluster");

  await page.getByRole("link", { name: "Jobs", exact: true }).click();
  await page.getByRole("link", { name: "spread/11", exact: true }).waitFor();
  await page.getByRole("link", { name: "cluster/slow" }).click();
  await page.getByRole("button", { name: "Run now" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Run now" }).click();
  await page.waitForURL(/\/runs\/\d+/);
  const runId = await runOf(page);
  await page.locator("h1 [data-state=RUNNING]").waitFor();
  await page.getByRole("link", { name: "Runs", exact: true }).click();
  await page.getByLabel("State", { exact: true }).selectOption({ label: "running" });
  await page
    .getByRole("table", { name: "Runs" })
    .getByRole("link", { name: String(runId) })
    .waitFor();
  // What a cluster lists by job only is refused with a sentence, not with an empty list.
  await page.getByLabel("State", { exact: true }).selectOption({ label: "succeeded" });
  await page.getByRole("alert").getByText(/job/).first().waitFor();
  await page.goto(`${base}/runs?state=SUCCESS&job=${(await call("GET", "/api/v1/jobs/by-name?name=spread/1")).jobId}`);
  await page.locator("tr [data-state=SUCCESS]").first().waitFor();
  expect(await inaccessible(page)).toEqual([]);

  // Another node is restarted: the console says that it is away, and then that it is back.
  await page.getByRole("link", { name: "Cluster", exact: true }).click();
  const third = members.getByRole("row").filter({ hasText: "n3" });
  await third.locator("[data-state=ALIVE]").waitFor();
  const startThird = await cluster.stop(3);
  await third.locator("[data-state=ALIVE]").waitFor({ state: "detached", timeout: 60_000 });
  await startThird();
  await third.locator("[data-state=ALIVE]").waitFor({ timeout: 60_000 });

  // The node that serves the page is restarted: what is seen is called old, then goes on in the same session.
  await page.goto(`${base}/runs/${runId}`);
  await page.locator("h1 [data-state=RUNNING]").waitFor();
  const startFirst = await cluster.stop(1);
  await page.getByText(/no answer for \d+ s|the node does not answer/).waitFor({ timeout: 60_000 });
  // The run goes on under another owner meanwhile.
  const second = callOf(cluster.urls[1]!, cluster.token);
  await until(
    "another owner",
    () => second("GET", `/api/v1/runs/${runId}`).catch((thrown) => ({ state: String(thrown) })),
    ({ state }) => state === "RUNNING",
    60_000,
  );
  await page.locator("h1 [data-state=RUNNING]").waitFor();
  await startFirst();
  await page.getByText(/^\d+ ms$/).waitFor({ timeout: 60_000 });
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel the run" }).click();
  await page.locator("h1 [data-state=CANCELED]").waitFor({ timeout: 60_000 });
  expect((await second("GET", `/api/v1/runs/${runId}`)).state).toBe("CANCELED");
  expect((await second("GET", `/api/v1/jobs/${slow.jobId}`)).lastRunState).toBe("CANCELED");
  await shot(page, "cluster-run");
  await close(context, watched);
});
