// Texts of callers are shown as text.
import { expect, test } from "vitest";
import { ended, job, trigger } from "./support/node";
import { PHONE, close, loaded, open, overflow, withBrowser } from "./support/page";

withBrowser();

test("what callers write is text, whatever it looks like", async () => {
  const evil = '<img src=x onerror="alert(1)"><script>alert(2)</script>';
  const long = "w".repeat(10_000);
  const jobId = await job(
    "hostile/one",
    `printf '%s\\n' '<script>alert(3)</script>' '\\033[31mred'; printf '\\342\\200\\256reversed\\n'; echo '${evil}' >&2; exit 1`,
    {
      labels: { note: evil.slice(0, 60) },
      params: { evil, rtl: "\u202Etxet", long },
      displayName: evil,
      description: `${evil}\n${"w".repeat(4_000)}`,
      owner: `\u2067${evil}`.slice(1),
      annotations: { note: evil, script: "javascript:alert(4)", more: "w".repeat(3_000) },
      tenantId: "default",
    },
  );
  const runId = await trigger(jobId, { reason: evil, params: { [evil]: evil } });
  await ended(runId);
  for (const path of [
    "/jobs?text=hostile",
    `/jobs/${jobId}`,
    `/jobs/${jobId}?tab=definition`,
    `/jobs/${jobId}?tab=versions`,
    `/jobs/${jobId}/edit`,
    `/runs/${runId}`,
    `/runs?labels=${encodeURIComponent(evil)}`,
    "/failures",
    "/dead-letters",
    "/audit",
    "/",
    `/jobs?text=${encodeURIComponent(evil)}`,
  ]) {
    const { context, page, watched } = await open(path, PHONE);
    await loaded(page);
    expect(await page.locator("main img, main script, main a[href^='javascript:']").count(), path).toBe(0);
    expect(await overflow(page), path).toBeLessThanOrEqual(0);
    await close(context, watched);
  }
});
