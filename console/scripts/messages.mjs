// Fails when the sentences of the sources are not those of the catalogues: `npm run messages` brings them there.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

const files = ["en", "zh-Hans"].map((locale) => new URL(`../src/locales/${locale}.po`, import.meta.url));
const before = files.map((file) => readFileSync(file, "utf8"));
execFileSync("lingui", ["extract", "--clean", "--workers", "1"], { stdio: ["ignore", "ignore", "inherit"] });
const sentences = (text) => [...text.matchAll(/^msgid (?:".*"\n)+/gm)].join("");
const changed = files.filter((file, index) => sentences(readFileSync(file, "utf8")) !== sentences(before[index]));
files.forEach((file, index) => writeFileSync(file, before[index]));
if (changed.length > 0) {
  console.error("sentences of the sources are not in the catalogues: run `npm run messages`, translate, and commit");
  process.exit(1);
}
console.log("the catalogues have every sentence of the sources");
