// Makes src/api/schema.d.ts from a node's OpenAPI document. Argument: the URL of a node, or a file with the document.
// With --check it changes nothing and fails when the committed file differs.
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const target = new URL("../src/api/schema.d.ts", import.meta.url);
const head = "// Generated from the OpenAPI document of a node by scripts/types.mjs. Do not edit.\n\n";

const from = process.argv[2];
if (!from) {
  console.error("usage: node scripts/types.mjs (http://127.0.0.1:7700 | openapi.json) [--check]");
  process.exit(2);
}
const document = from.startsWith("http")
  ? await (await fetch(new URL("/openapi.json", from))).json()
  : JSON.parse(await readFile(from, "utf8"));
// Problems have one form (src/api/client.ts); listing them with each operation would make the file three times as long.
for (const methods of Object.values(document.paths)) {
  for (const operation of Object.values(methods)) {
    for (const status of Object.keys(operation.responses ?? {})) {
      if (Number(status) >= 400) delete operation.responses[status];
    }
  }
}
// Examples say nothing about types, and some change with each release.
// openapi-fetch reads tuples as arrays; both sides get arrays, so that what was read can be sent.
(function plain(value) {
  if (!value || typeof value !== "object") return;
  if (Array.isArray(value.prefixItems)) {
    value.items = value.prefixItems[0];
    for (const name of ["prefixItems", "minItems", "maxItems"]) delete value[name];
  }
  if ("schema" in value || "type" in value || "$ref" in value) delete value.example;
  for (const inner of Object.values(value)) plain(inner);
})(document);
const made = head + astToString(await openapiTS(document, { alphabetize: true }));
if (process.argv.includes("--check")) {
  if ((await readFile(target, "utf8")) !== made) {
    console.error("src/api/schema.d.ts does not match the OpenAPI document: run `npm run types -- URL` and commit it");
    process.exit(1);
  }
  console.log("src/api/schema.d.ts matches the OpenAPI document");
} else {
  await writeFile(target, made);
}
