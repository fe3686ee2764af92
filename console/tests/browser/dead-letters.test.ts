// Dead letters are redriven by cause.
import { expect, test } from "vitest";
import { call, ended, job, trigger, until } from "./support/node";
import { close, open, withBrowser } from "./support/page";

withBrowser();

test("dead letters of one cause are redriven together", async () => {
  const script = 'test -e "$CAMPANILE_FLAG" || { echo "no route to 10.0.0.$$" >&2; exit 4; }';
  const ids = [await job("cause/one", script), await job("cause/two", script)];
  for (const jobId of ids) {
    await ended(await trigger(jobId));
    await ended(await trigger(jobId));
  }
  const { context, page, watched } = await open("/dead-letters");
  const group = page.getByRole("listitem").filter({ hasText: "no route to" });
  await group.getByRole("button", { name: "Redrive all 4" }).waitFor();
  expect(await group.count()).toBe(1);
  await group.getByRole("button", { name: /no route/ }).click();
  const rows = page.getByRole("table", { name: "Dead letters of this cause" }).getByRole("row");
  await until(
    "the dead letters of the cause",
    () => rows.count(),
    (count) => count === 5,
  );
  await group.getByRole("button", { name: "Redrive all 4" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Redrive (4)" }).click();
  await page.getByText("Done for 4 of 4.").waitFor();
  const runs = await call("GET", `/api/v1/jobs/${ids[0]}/runs`);
  expect(runs.items.map((run: { generation: number }) => run.generation)).toEqual([2, 2]);
  await close(context, watched);
});
