// What differs between two definitions, by the path of each field.

export interface Difference {
  path: string;
  was: string;
  is: string;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === "object" && !Array.isArray(value);
/** A value as a person reads it; nothing for a value that is not there. */
export const shown = (value: unknown) =>
  value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);

export function differences(was: unknown, is: unknown, path = ""): Difference[] {
  if (isObject(was) && isObject(is)) {
    const names = [...new Set([...Object.keys(was), ...Object.keys(is)])].sort();
    return names.flatMap((name) => differences(was[name], is[name], path ? `${path}.${name}` : name));
  }
  // A field that is null and one that is not there mean the same.
  if (shown(was ?? undefined) === shown(is ?? undefined)) return [];
  return [{ path, was: shown(was ?? undefined), is: shown(is ?? undefined) }];
}
