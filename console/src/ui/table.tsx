// Lists as tables: real roles also where a narrow screen shows each row as a card, keys to move, and only the rows that are seen are in
// the page when there are many.
import { useLingui } from "@lingui/react/macro";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useRef, useState, type ReactNode } from "react";
import { useKeys } from "../lib/keys";

export interface Column<T> {
  name: string;
  head: ReactNode;
  cell: (row: T) => ReactNode;
  /** Right-aligned. */
  num?: boolean;
  /** Takes the room that is left. */
  main?: boolean;
  /** Not on screens that are narrower than this. */
  from?: "md" | "lg" | "xl";
  /** Its name is not shown in cards. */
  bare?: boolean;
}

interface Selection {
  has: (key: string) => boolean;
  toggle: (key: string) => void;
  all: boolean;
  toggleAll: () => void;
}

interface Props<T> {
  label: string;
  columns: Column<T>[];
  rows: T[];
  rowKey: (row: T) => string;
  onOpen?: (row: T) => void;
  selection?: Selection;
  /** Called when the end is near. */
  onEnd?: () => void;
  keyboard?: boolean;
}

const VIRTUAL_FROM = 150;
/** How near the end of the page more is asked for. */
const NEAR_PX = 600;
const FROM = { md: "max-md:hidden", lg: "max-lg:hidden", xl: "max-xl:hidden" };

export function Table<T>({ label, columns, rows, rowKey, onOpen, selection, onEnd, keyboard = true }: Props<T>) {
  const { t } = useLingui();
  const [cursor, setCursor] = useState(-1);
  const box = useRef<HTMLTableElement>(null);
  const [margin, setMargin] = useState(0);
  const virtual = rows.length > VIRTUAL_FROM;
  useLayoutEffect(() => setMargin(box.current?.offsetTop ?? 0), [virtual]);
  const virtualizer = useWindowVirtualizer({
    count: virtual ? rows.length : 0,
    estimateSize: () => 42,
    overscan: 20,
    scrollMargin: margin,
    getItemKey: (index) => rowKey(rows[index]!),
  });
  const items = virtualizer.getVirtualItems();
  const shown = virtual ? items.map((item) => item.index) : rows.map((_, index) => index);
  const above = virtual && items[0] ? items[0].start - margin : 0;
  const below = virtual ? virtualizer.getTotalSize() - ((items.at(-1)?.end ?? 0) - margin) : 0;
  const atEnd = useRef(onEnd);
  atEnd.current = onEnd;
  useEffect(() => {
    const scrolled = () => {
      const left = document.documentElement.scrollHeight - window.innerHeight - window.scrollY;
      if (left < NEAR_PX) atEnd.current?.();
    };
    window.addEventListener("scroll", scrolled, { passive: true });
    return () => window.removeEventListener("scroll", scrolled);
  }, []);
  const move = (by: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, cursor + by));
    setCursor(next);
    if (virtual) virtualizer.scrollToIndex(next);
    else box.current?.querySelectorAll("tbody tr")[next]?.scrollIntoView({ block: "nearest" });
  };
  const at = rows[cursor];
  useKeys(
    keyboard
      ? {
          j: () => move(1),
          k: () => move(-1),
          o: () => at && onOpen?.(at),
          x: () => at && selection?.toggle(rowKey(at)),
        }
      : {},
  );
  const visible = columns.map((column) => ({ ...column, hide: column.from ? FROM[column.from] : "" }));
  const span = visible.length + (selection ? 1 : 0);
  return (
    <table ref={box} role="table" aria-label={label} aria-rowcount={rows.length} className="data cards">
      <thead role="rowgroup">
        <tr role="row">
          {selection && (
            <th role="columnheader" className="w-8">
              <input
                type="checkbox"
                className="size-4 accent-accent"
                aria-label={t`Select all that are shown`}
                checked={selection.all}
                onChange={selection.toggleAll}
              />
            </th>
          )}
          {visible.map(({ name, head, num, main, hide }) => (
            <th
              key={name}
              role="columnheader"
              scope="col"
              className={`${num ? "num" : ""} ${main ? "w-full" : ""} ${hide}`}
            >
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {above > 0 && (
          <tr aria-hidden>
            <td colSpan={span} style={{ height: above, padding: 0 }} />
          </tr>
        )}
        {shown.map((index) => {
          const row = rows[index]!;
          const key = rowKey(row);
          const on = selection?.has(key) ?? false;
          return (
            <tr
              key={key}
              role="row"
              ref={virtual ? virtualizer.measureElement : undefined}
              data-index={index}
              data-on={on || undefined}
              data-cursor={index === cursor || undefined}
              aria-selected={selection ? on : undefined}
            >
              {selection && (
                <td role="cell" className="pick">
                  <input
                    type="checkbox"
                    className="size-4 accent-accent"
                    aria-label={t`Select this row`}
                    checked={on}
                    onChange={() => selection.toggle(key)}
                  />
                </td>
              )}
              {visible.map(({ name, head, cell, num, main, hide, bare }) => (
                <td key={name} role="cell" className={`${num ? "num" : ""} ${main ? "main" : ""} ${hide}`}>
                  {!bare && (
                    <span aria-hidden className="name">
                      {head}
                    </span>
                  )}
                  {cell(row)}
                </td>
              ))}
            </tr>
          );
        })}
        {below > 0 && (
          <tr aria-hidden>
            <td colSpan={span} style={{ height: below, padding: 0 }} />
          </tr>
        )}
      </tbody>
    </table>
  );
}
