// Small values that several places of the page read.
import { useSyncExternalStore } from "react";

export interface Value<T> {
  get: () => T;
  set: (next: T) => void;
  subscribe: (listener: () => void) => () => void;
}

export function value<T>(first: T): Value<T> {
  let current = first;
  const listeners = new Set<() => void>();
  return {
    get: () => current,
    set: (next) => {
      if (Object.is(next, current)) return;
      current = next;
      for (const listener of listeners) listener();
    },
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export function useValue<T>(of: Value<T>): T {
  return useSyncExternalStore(of.subscribe, of.get);
}

/** Kept in the browser, by name. Anything else than one of `allowed` counts as the first of them. */
export function kept<T extends string>(name: string, allowed: readonly [T, ...T[]]): Value<T> {
  const key = `campanile.${name}`;
  let stored: string | null = null;
  try {
    stored = localStorage.getItem(key);
  } catch {
    // The browser keeps nothing: the choice is of this page only.
  }
  const made = value<T>(allowed.find((word) => word === stored) ?? allowed[0]);
  made.subscribe(() => {
    try {
      localStorage.setItem(key, made.get());
    } catch {
      // See above.
    }
  });
  return made;
}
