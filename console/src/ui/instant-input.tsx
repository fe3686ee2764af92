import type { ComponentProps } from "react";
import { localField } from "../lib/time";

interface Props extends Omit<ComponentProps<"input">, "value" | "onChange"> {
  value: string | undefined;
  /** Undefined: the field is empty, or what stands in it is no instant yet. */
  onChange: (instant: string | undefined) => void;
}

/** A field of the browser for an instant, in the zone of the viewer. */
export function InstantInput({ value, onChange, className = "", ...rest }: Props) {
  return (
    <input
      {...rest}
      className={`input ${className}`}
      type="datetime-local"
      step={1}
      value={localField(value)}
      onChange={(event) => {
        const ms = Date.parse(event.target.value);
        onChange(Number.isFinite(ms) ? new Date(ms).toISOString() : undefined);
      }}
    />
  );
}
