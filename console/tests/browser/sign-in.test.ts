// Who may use the console: tokens, sessions, the dev node that asks nobody, and tenants.
import { expect, test } from "vitest";
import { server, token } from "./support/node";
import { NAMED, close, named, open, withBrowser } from "./support/page";

withBrowser();

test("a session stands for a token, and no script can read either", async () => {
  const { context, page, watched } = await open("/jobs", { base: named() });
  await page.getByRole("heading", { name: "Campanile" }).waitFor();
  await page.getByLabel("Token").fill("cmp_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("the token is not known").waitFor();
  await page.getByLabel("Token").fill(token());
  await page.getByRole("button", { name: "Sign in" }).click();
  // Where the person wanted to go.
  await page.getByRole("heading", { name: "Jobs" }).waitFor();
  const cookies = await context.cookies();
  expect(cookies).toHaveLength(1);
  expect(cookies[0]).toMatchObject({ httpOnly: true, sameSite: "Strict", domain: NAMED, expires: -1 });
  expect(cookies[0]!.value).not.toContain(token());
  const readable = await page.evaluate(
    () => document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage }) + document.documentElement.outerHTML,
  );
  expect(readable).not.toContain(token());
  // It outlives the page, and another page of the same browser has it too.
  await page.reload();
  await page.getByRole("heading", { name: "Jobs" }).waitFor();
  const second = await context.newPage();
  await second.goto(`${named()}/audit`);
  await second.getByRole("heading", { name: "Audit" }).waitFor();
  // The cookie without the header of the console is worth nothing, as from a form of another page.
  const bare = await page.evaluate(async () => [
    (await fetch("/api/v1/jobs")).status,
    (await fetch("/api/v1/jobs", { headers: { "X-Campanile-Console": "1" } })).status,
  ]);
  expect(bare).toEqual([401, 200]);
  const forged = await fetch(`${server()}/api/v1/jobs`, {
    headers: {
      Host: new URL(named()).host,
      Origin: "http://evil.example",
      "X-Campanile-Console": "1",
      Cookie: `${cookies[0]!.name}=${cookies[0]!.value}`,
    },
  });
  expect(forged.status).toBe(401);
  await page.getByRole("button", { name: "Settings and account" }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByLabel("Token").waitFor();
  expect(await context.cookies()).toEqual([]);
  await close(context, watched);
});

test("on the machine of a dev node nobody signs in, but under another name everybody does", async () => {
  const { context, page, watched } = await open("/");
  await page.getByRole("heading", { name: "What is wrong now?" }).waitFor();
  expect(await context.cookies()).toEqual([]);
  await close(context, watched);
  // A page whose name was made to lead to this machine is not this machine.
  expect((await fetch(`${server()}/api/v1/session`, { headers: { "Sec-Fetch-Site": "cross-site" } })).status).toBe(401);
});

test("a tenant sees its own, and nothing that only operators may", async () => {
  // The dev node knows no tenant's token, so the node's answer about the caller is changed on its way.
  const json = { name: "ada", role: "TENANT", tenantId: "default", knownBy: "SESSION", version: "0" };
  const asked: string[] = [];
  const { context, page, watched } = await open("/", {
    prepare: async (page) => {
      await page.route("**/api/v1/session", (route) => route.fulfill({ json }));
      page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    },
  });
  await page.getByRole("heading", { name: "What is wrong now?" }).waitFor();
  await page.getByText("Limits and use").waitFor();
  for (const name of ["Executors", "Cluster"])
    expect(await page.getByRole("link", { name, exact: true }).count(), name).toBe(0);
  await page.goto(`${server()}/tenants`);
  await page.getByRole("table", { name: "Tenants" }).waitFor();
  expect(await page.getByRole("button", { name: /Limits for a tenant|Actions for/ }).count()).toBe(0);
  expect(asked.filter((path) => /executors|pools|cluster|metrics/.test(path))).toEqual([]);
  await close(context, watched);
});
