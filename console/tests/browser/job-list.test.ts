// The list of jobs: choosing, keys, bulk actions, and thousands of rows.
import { expect, test } from "vitest";
import { call, job, server, token, until } from "./support/node";
import { close, open, withBrowser } from "./support/page";

withBrowser();

test("jobs are chosen and paused by keys, and the pause is undone", async () => {
  const prefix = `bulk-${Date.now()}`;
  for (const number of [1, 2, 3]) await job(`${prefix}/${number}`, "true");
  const { context, page, watched } = await open("/");
  await page.getByRole("heading", { name: "What is wrong now?" }).waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("j");
  await page.getByRole("heading", { name: "Jobs" }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type(prefix);
  await page.waitForURL(new RegExp(`text=${prefix}`));
  await page
    .getByText(/^3 jobs/)
    .first()
    .waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  await page.getByRole("region", { name: "What is selected" }).getByText("2 jobs").waitFor();
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.getByRole("button", { name: "Pause (2)" }).click();
  await page.getByText("Done for 2 of 2.").waitFor();
  const paused = async () => (await call("GET", `/api/v1/jobs?text=${prefix}&status=PAUSED`)).items.length;
  expect(await paused()).toBe(2);
  await page.getByRole("button", { name: "Resume them again" }).click();
  await page.getByText("Undone for 2 of 2.").waitFor();
  expect(await paused()).toBe(0);
  await page.getByRole("dialog").getByRole("button", { name: "Close", exact: true }).last().click();
  // The palette leads to a job by a part of its name.
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search" }).waitFor();
  await page.keyboard.type(`${prefix}/3`);
  await page.getByRole("option", { name: new RegExp(`${prefix}/3`) }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: `${prefix}/3` }).waitFor();
  await close(context, watched);
});

test("a long list has only what is seen in the page, and all of it can be chosen", async () => {
  const prefix = `many-${Date.now()}`;
  const lines = Array.from({ length: 420 }, (_, index) =>
    JSON.stringify({ name: `${prefix}/${index}`, trigger: { type: "MANUAL" }, labels: { many: prefix } }),
  );
  const created = await fetch(`${server()}/api/v1/jobs/bulk`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token()}`, "Content-Type": "application/x-ndjson" },
    body: lines.join("\n"),
  });
  expect((await created.text()).match(/"ok"/g)).toHaveLength(420);
  const { context, page, watched } = await open(`/jobs?text=${prefix}`);
  const rows = page.getByRole("table", { name: "Jobs" }).getByRole("row");
  await page.getByText("100 shown, more follow").waitFor();
  await page.getByRole("checkbox", { name: "Select all that are shown" }).check();
  await page.getByRole("button", { name: "Select all that match, also on further pages" }).click();
  // The end of the list brings more, until there is no more.
  const end = async () => {
    await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight));
    return page.getByText("420 jobs").count();
  };
  await until("the end of the list", end, (count) => count > 0);
  await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight));
  const last = (await call("GET", `/api/v1/jobs?text=${prefix}&pageSize=1000`)).items.at(-1);
  await page.getByRole("link", { name: last.name, exact: true }).waitFor();
  expect(await rows.count()).toBeLessThan(120);
  expect(await rows.last().getAttribute("aria-selected")).toBe("true");
  await page.getByRole("region", { name: "What is selected" }).getByText("All jobs that match").waitFor();
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.getByRole("button", { name: "Pause (420)" }).click();
  await page.getByRole("button", { name: "Stop here" }).click();
  await page.getByText(/^Stopped: done for \d+ of 420\.$/).waitFor();
  await close(context, watched);
});
