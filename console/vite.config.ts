import { lingui } from "@lingui/vite-plugin";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// `npm run dev` shows the sources; calls go to this node.
const node = process.env.CAMPANILE_SERVER ?? "http://127.0.0.1:7700";

export default defineConfig({
  plugins: [react({ babel: { plugins: ["@lingui/babel-plugin-lingui-macro"] } }), lingui(), tailwindcss()],
  build: {
    outDir: "build",
    emptyOutDir: true,
    target: ["chrome123", "firefox121", "safari17.5"],
    // Nothing inline: the Content-Security-Policy of the node is `default-src 'self'`.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // scripts/pack.mjs measures what counts: the first load, packed.
    chunkSizeWarningLimit: 1000,
  },
  server: { proxy: { "/api/v1": node, "/metrics": node } },
  test: {
    projects: [
      { extends: true, test: { name: "unit", include: ["tests/unit/*.test.ts"] } },
      {
        extends: true,
        test: {
          name: "browser",
          include: ["tests/browser/*.test.ts"],
          globalSetup: "tests/browser/support/setup.ts",
          fileParallelism: false,
          testTimeout: 90_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
