// A run is followed, canceled and decided about; its log is searched, and its trace is shown.
import { expect, test } from "vitest";
import { call, ended, job, loseExecutor, trigger, until } from "./support/node";
import { close, open, shot, withBrowser } from "./support/page";

withBrowser();

test("a run is followed while it runs, and can be canceled", async () => {
  const runId = await trigger(
    await job("live/slow", "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do echo tick $i; sleep 1; done"),
  );
  const { context, page, watched } = await open(`/runs/${runId}`);
  await page.locator("h1 [data-state=RUNNING]").waitFor();
  await page.getByRole("log").getByText("tick 3", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel the run" }).click();
  await page.locator("h1 [data-state=CANCELED]").waitFor();
  await close(context, watched);
});

test("a run that may not run twice waits for a person, who decides", async () => {
  const jobId = await job("careful/settle", "sleep 300", { idempotent: false, executorSelector: "careful" });
  const runId = await trigger(jobId);
  const { context, page, watched } = await open("/waiting");
  await loseExecutor("careful", runId);
  // It comes by itself.
  await page.getByRole("link", { name: `run ${runId}` }).waitFor({ timeout: 45_000 });
  await page.getByRole("link", { name: `run ${runId}` }).click();
  await page.getByText("This run waits for you").waitFor();
  await page.getByRole("button", { name: "It did its work" }).click();
  await page
    .getByRole("dialog")
    .getByLabel(/^Reason/)
    .fill("seen at the bank");
  await page.getByRole("dialog").getByRole("button", { name: "It succeeded" }).click();
  await page.locator("h1 [data-state=SUCCESS]").waitFor();
  await close(context, watched);
});

test("the log is searched by the node: text, level and the last lines", async () => {
  const script =
    "for i in $(seq 1 3000); do echo \"INFO line $i\"; done; echo 'ERROR it broke at 42'; echo 'WARN so so'";
  const runId = await trigger(await job("why/log", script));
  await ended(runId);
  const asked: string[] = [];
  const { context, page, watched } = await open(`/runs/${runId}`);
  page.on("request", (request) => request.url().includes("/log?") && asked.push(request.url()));
  const log = page.getByRole("log");
  await log.getByText("WARN so so").waitFor();
  await page.getByLabel("Search in the log").fill("BROKE");
  await page.getByRole("button", { name: "Only these lines" }).click();
  await until(
    "the filter",
    () => log.getByText("WARN so so").count(),
    (count) => count === 0,
  );
  await log.getByText("it broke at 42", { exact: false }).waitFor();
  expect(asked.at(-1)).toContain("contains=BROKE");
  // Typing on narrows further, until nothing fits.
  await page.getByLabel("Search in the log").fill("broke nowhere");
  await page.getByText("No line matches.").waitFor();
  await page.getByRole("button", { name: "Only these lines" }).click();
  await page.getByLabel("Search in the log").fill("");
  await page.getByLabel("Least level").selectOption("WARN");
  await log.getByText("ERROR it broke").waitFor();
  await until(
    "only grave lines",
    () => log.getByText("INFO line").count(),
    (count) => count === 0,
  );
  await page.getByLabel("Least level").selectOption("");
  await page.getByLabel("How many lines").selectOption("100");
  await log.getByText("INFO line 2999", { exact: true }).waitFor();
  expect(asked.at(-1)).toContain("tail=100");
  await log.evaluate((element) => element.scrollTo(0, 0));
  await log.getByText("INFO line 2903", { exact: true }).waitFor();
  // The view is a link.
  expect(page.url()).toContain("tail=100");
  await shot(page, "run-log");
  await close(context, watched);
});

test("a run shows the trace that its caller began", async () => {
  const traceId = "0af7651916cd43dd8448eb211c80319c";
  const jobId = await job("why/traced", "true");
  const run = await call(
    "POST",
    `/api/v1/jobs/${jobId}/trigger`,
    {},
    { traceparent: `00-${traceId}-b7ad6b7169203331-01` },
  );
  const { context, page, watched } = await open(`/runs/${run.runId}`);
  await page.getByText(traceId).waitFor();
  await close(context, watched);
});
