// Keys of the whole page. A key that is pressed in a field is the field's.
import { useEffect, useRef } from "react";

export function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** Calls the function of a key, or of two keys after one another such as `g j`, while no dialog is open. */
export function useKeys(keys: Record<string, (event: KeyboardEvent) => void>) {
  const current = useRef(keys);
  current.current = keys;
  useEffect(() => {
    let first = "";
    let at = 0;
    const pressed = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
      if (isTyping(event.target) || document.querySelector("dialog[open], [role=menu]")) return;
      const pair = event.timeStamp - at < 1200 ? `${first} ${event.key}` : "";
      const run = current.current[pair] ?? current.current[event.key];
      [first, at] = [event.key, event.timeStamp];
      if (!run) return;
      event.preventDefault();
      run(event);
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
}
