// What a person chose: theme, language, how times are shown.
import { i18n } from "@lingui/core";
import { kept } from "./store";

export const theme = kept("theme", ["system", "light", "dark"]);
export const times = kept("times", ["relative", "local", "utc"]);
export const language = kept("language", ["auto", "en", "zh-Hans"]);

export function applyTheme() {
  const chosen = theme.get();
  if (chosen === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", chosen);
}
theme.subscribe(applyTheme);

export function resolvedLanguage(): "en" | "zh-Hans" {
  const chosen = language.get();
  if (chosen !== "auto") return chosen;
  return firstOf(navigator.languages);
}

function firstOf(tags: readonly string[]): "en" | "zh-Hans" {
  for (const tag of tags) {
    const lower = tag.toLowerCase();
    if (lower.startsWith("zh")) return "zh-Hans";
    if (lower.startsWith("en")) return "en";
  }
  return "en";
}

/** Loads one catalogue, the one that is needed. */
export async function applyLanguage() {
  const tag = resolvedLanguage();
  const { messages } = tag === "en" ? await import("../locales/en.po") : await import("../locales/zh-Hans.po");
  i18n.loadAndActivate({ locale: tag, messages });
  document.documentElement.lang = tag;
}
