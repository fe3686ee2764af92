// How the node serves the files of the console, and what is seen when it answers no more.
import { expect, test } from "vitest";
import { server } from "./support/node";
import { open, withBrowser } from "./support/page";

withBrowser();

test("files are kept for good, pages are not, and no other origin may be used", async () => {
  const browserOf = { Accept: "text/html,*/*", "Accept-Encoding": "gzip" };
  const index = await fetch(server() + "/", { headers: browserOf });
  expect(index.headers.get("content-security-policy")).toContain("default-src 'self'; style-src 'self'");
  expect(index.headers.get("cache-control")).toBe("no-cache");
  expect(index.headers.get("content-encoding")).toBe("gzip");
  const page = await index.text();
  const etag = index.headers.get("etag")!;
  expect((await fetch(server() + "/", { headers: { ...browserOf, "If-None-Match": etag } })).status).toBe(304);
  // A link into the console opens; what a program asks for does not.
  expect(await (await fetch(server() + "/jobs/17?tab=calendar", { headers: browserOf })).text()).toBe(page);
  expect((await fetch(server() + "/jobs/17")).status).toBe(404);
  expect((await fetch(server() + "/api/v1/jobx", { headers: browserOf })).status).toBe(404);
  const script = /src="(\/assets\/[^"]+\.js)"/.exec(page)![1]!;
  for (const encoding of ["gzip", "br", "identity"]) {
    const asset = await fetch(server() + script, { headers: { "Accept-Encoding": encoding } });
    expect(asset.headers.get("cache-control")).toContain("immutable");
    expect(asset.headers.get("content-type")).toContain("text/javascript");
    expect(asset.headers.get("content-encoding") ?? "identity").toBe(encoding);
    expect((await asset.text()).length).toBeGreaterThan(100_000);
  }
  expect((await fetch(server() + "/assets/old-1234.js", { headers: browserOf })).status).toBe(404);
});

test("a node that does not answer is said so, and what is seen is called old", async () => {
  const { context, page } = await open("/jobs");
  await page.getByRole("heading", { name: "Jobs" }).waitFor();
  await page.getByRole("link", { name: "demo/tick" }).waitFor();
  await context.setOffline(true);
  await page.getByText(/no answer for \d+ s/).waitFor({ timeout: 40_000 });
  await page.getByRole("link", { name: "demo/tick" }).waitFor();
  await context.setOffline(false);
  await page.getByText(/^\d+ ms$/).waitFor({ timeout: 40_000 });
  await context.close();
});
