import { defineConfig } from "@lingui/cli";
import { formatter } from "@lingui/format-po";

export default defineConfig({
  sourceLocale: "en",
  locales: ["en", "zh-Hans"],
  catalogs: [{ path: "src/locales/{locale}", include: ["src"] }],
  format: formatter({ lineNumbers: false }),
});
