// Puts what Vite built into dist/, packed with gzip and Brotli, from where the node takes it in; and fails when the first load is too large.
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

/** What a browser loads before the first page is seen, bytes with gzip. */
const FIRST_LOAD = 350 * 1024;

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const build = join(root, "build");
const dist = join(root, "dist");

async function filesIn(directory) {
  const entries = await readdir(directory, { withFileTypes: true, recursive: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(directory, join(entry.parentPath ?? entry.path, entry.name)));
}

for (const name of await readdir(dist)) if (name !== ".gitignore") await rm(join(dist, name), { recursive: true });
const files = await filesIn(build);
const sizes = new Map();
// The page is written last: a build that is broken off leaves none.
for (const name of files.sort((a, b) => Number(a === "index.html") - Number(b === "index.html"))) {
  const plain = await readFile(join(build, name));
  const target = join(dist, name);
  await mkdir(dirname(target), { recursive: true });
  const gzip = gzipSync(plain, { level: 9 });
  const brotli = brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
  sizes.set(name, gzip.length);
  if (gzip.length < plain.length) await writeFile(`${target}.gz`, gzip);
  if (brotli.length < plain.length) await writeFile(`${target}.br`, brotli);
  await writeFile(target, plain);
}

const index = await readFile(join(build, "index.html"), "utf8");
const named = [...index.matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].map((found) => found[1]);
// One catalogue is loaded besides; the larger one counts.
const catalogues = files.filter((name) => /assets\/(en|zh-Hans)-/.test(name)).map((name) => sizes.get(name));
const first = ["index.html", ...named].reduce((sum, name) => sum + sizes.get(name), Math.max(0, ...catalogues));
const all = [...sizes.values()].reduce((sum, size) => sum + size, 0);
const kib = (bytes) => `${(bytes / 1024).toFixed(1)} KiB`;
console.log(
  `console: ${files.length} files, ${kib(all)} with gzip; first load ${kib(first)} of at most ${kib(FIRST_LOAD)}`,
);
if (first > FIRST_LOAD) {
  console.error("the first load is too large: load what it does not need later");
  process.exit(1);
}
