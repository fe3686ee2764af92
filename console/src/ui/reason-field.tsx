import { Trans } from "@lingui/react/macro";
import { useId } from "react";

/** Asks for a reason, which goes to the audit trail. */
export function ReasonField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const id = useId();
  return (
    <div>
      <label htmlFor={id} className="mb-1 block text-[0.9rem] font-medium">
        <Trans>Reason</Trans>{" "}
        <span className="font-normal text-faint">
          <Trans>(optional, kept in the audit trail)</Trans>
        </span>
      </label>
      <input
        id={id}
        className="input"
        value={value}
        maxLength={500}
        onChange={(event) => onChange(event.target.value)}
      />
    </div>
  );
}
