import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const entries = (locale: string) => {
  const text = readFileSync(new URL(`../../src/locales/${locale}.po`, import.meta.url), "utf8");
  const unquoted = (lines: string) => [...lines.matchAll(/"(.*)"/g)].map((found) => found[1]).join("");
  return [...text.matchAll(/^msgid ((?:".*"\n)+)msgstr ((?:".*"\n?)+)/gm)]
    .map(([, id, translated]) => [unquoted(id!), unquoted(translated!)] as const)
    .filter(([id]) => id !== "");
};

test("every sentence is translated", () => {
  const chinese = entries("zh-Hans");
  expect(chinese.length).toBeGreaterThan(400);
  expect(chinese.map(([id]) => id)).toEqual(entries("en").map(([id]) => id));
  expect(chinese.filter(([, translated]) => translated === "").map(([id]) => id)).toEqual([]);
});

test("a translation has the places of its sentence", () => {
  const places = (text: string) =>
    [...new Set([...text.matchAll(/<\/?\d+\/?>|\{(\w+)[},]/g)].map((found) => found[1] ?? found[0]))].sort();
  for (const [id, translated] of entries("zh-Hans")) {
    const wanted = places(id);
    // In a plural the singular and the plural may name the same value twice.
    const missing = wanted.filter((place) => !places(translated).includes(place));
    if (id.includes("plural")) expect(missing.length, id).toBeLessThanOrEqual(1);
    else expect(missing, id).toEqual([]);
  }
});
