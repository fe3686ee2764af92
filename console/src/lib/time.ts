// Instants and durations for people.
import { i18n } from "@lingui/core";
import { useSyncExternalStore } from "react";

export const HOUR_MS = 3_600_000;
export const DAY_MS = 86_400_000;

let now = Date.now();
/** The node's clock minus ours, ms: instants are compared with the node's. */
let offset = 0;
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void) {
  listeners.add(listener);
  timer ??= setInterval(() => {
    if (document.hidden) return;
    now = Date.now();
    for (const told of listeners) told();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0 && timer) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

export function learnNodeTime(instant: string) {
  const there = Date.parse(instant);
  if (Number.isFinite(there)) offset = there - Date.now();
}

/** Now by the node's clock, ms; the component is drawn again every second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now) + offset;
}

export function nodeNow(): number {
  return Date.now() + offset;
}

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["second", 1],
  ["minute", 60],
  ["hour", 3600],
  ["day", 86_400],
  ["month", 2_629_800],
  ["year", 31_557_600],
];

/** "3 min. ago", "in 2 hr." in the language of the page. */
export function relative(ms: number, at: number): string {
  const seconds = (ms - at) / 1000;
  const size = Math.abs(seconds);
  let [unit, length] = STEPS[0]!;
  for (const [name, seconds] of STEPS) {
    // 90 s is "90 seconds", not "2 minutes": the smaller unit up to one and a half of the larger.
    if (size >= seconds * 1.5 || name === "second") [unit, length] = [name, seconds];
  }
  const format = new Intl.RelativeTimeFormat(i18n.locale || "en", {
    style: "short",
    numeric: size < 1 ? "auto" : "always",
  });
  return format.format(Math.trunc(seconds / length), unit);
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** `2026-02-24 09:00:00.120` in a zone; without milliseconds when there are none. Zone undefined: the viewer's. */
export function absolute(ms: number, zone?: string, withZone = false): string {
  const key = zone ?? "";
  let format = formats.get(key);
  if (!format) {
    try {
      format = made(zone);
    } catch {
      format = made("UTC");
    }
    formats.set(key, format);
  }
  const parts = Object.fromEntries(format.formatToParts(ms).map((part) => [part.type, part.value]));
  const fraction = ms % 1000 === 0 ? "" : `.${String(((ms % 1000) + 1000) % 1000).padStart(3, "0")}`;
  const text = `${parts.year}-${parts.month}-${parts.day} ${parts.hour}:${parts.minute}:${parts.second}${fraction}`;
  return withZone ? `${text} ${zone ?? viewerZone()}` : text;
}

function made(zone?: string) {
  return new Intl.DateTimeFormat("en-CA", {
    timeZone: zone,
    hourCycle: "h23",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
  });
}

export function viewerZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
}

/** `840 ms`, `12.4 s`, `3 min 20 s`, `2 h 5 min`, `4 d 3 h`. */
export function duration(ms: number): string {
  const size = Math.max(0, ms);
  if (size < 1000) return `${Math.round(size)} ms`;
  if (size < 60_000) return `${trimmed(size / 1000, size < 10_000 ? 2 : 1)} s`;
  const seconds = Math.round(size / 1000);
  if (seconds < 3600) return both(Math.floor(seconds / 60), "min", seconds % 60, "s");
  const minutes = Math.round(seconds / 60);
  if (minutes < 1440) return both(Math.floor(minutes / 60), "h", minutes % 60, "min");
  const hours = Math.round(minutes / 60);
  return both(Math.floor(hours / 24), "d", hours % 24, "h");
}

const trimmed = (value: number, digits: number) => String(Number(value.toFixed(digits)));
const both = (large: number, unit: string, small: number, smaller: string) =>
  small === 0 ? `${large} ${unit}` : `${large} ${unit} ${small} ${smaller}`;

/** Seconds of a schedule: `30 s`, `5 min`, `7 d`. */
export const everySeconds = (seconds: number) => duration(seconds * 1000);

export function bytes(count: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value : trimmed(value, value < 10 ? 1 : 0)} ${units[unit]}`;
}

/** `12,431`, or `1.2M` from a million on. */
export function amount(value: number): string {
  const locale = i18n.locale || "en";
  if (Math.abs(value) < 1_000_000) return new Intl.NumberFormat(locale, { maximumFractionDigits: 1 }).format(value);
  return new Intl.NumberFormat(locale, { notation: "compact", maximumFractionDigits: 1 }).format(value);
}

/** `2026-02-24T09:00` in the zone of the viewer, for a field of the browser. */
export function localField(instant: string | null | undefined): string {
  if (!instant) return "";
  const at = new Date(instant);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}
