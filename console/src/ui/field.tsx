import { useId, type ReactElement, type ReactNode, cloneElement } from "react";

interface Props {
  label: ReactNode;
  hint?: ReactNode;
  error?: ReactNode;
  children: ReactElement<Record<string, unknown>>;
  className?: string;
}

/** A label with its field, what is wrong with it, and what it means. */
export function Field({ label, hint, error, children, className = "" }: Props) {
  const id = useId();
  const told = error ? `${id}-error` : hint ? `${id}-hint` : undefined;
  return (
    <div className={className}>
      <label htmlFor={id} className="mb-1 block text-[0.9rem] font-medium">
        {label}
      </label>
      {cloneElement(children, { id, "aria-invalid": error ? true : undefined, "aria-describedby": told })}
      {error ? (
        <p id={`${id}-error`} className="hostile mt-1 text-[0.86rem] text-bad">
          {error}
        </p>
      ) : (
        hint && (
          <p id={`${id}-hint`} className="mt-1 text-[0.84rem] text-faint">
            {hint}
          </p>
        )
      )}
    </div>
  );
}

export function Check({
  label,
  hint,
  children,
}: {
  label: ReactNode;
  hint?: ReactNode;
  children: ReactElement<Record<string, unknown>>;
}) {
  const id = useId();
  return (
    <div className="flex items-start gap-2.5">
      {cloneElement(children, { id, className: "mt-1 size-4 accent-accent" })}
      <label htmlFor={id}>
        <span className="font-medium">{label}</span>
        {hint && <span className="block text-[0.84rem] text-faint">{hint}</span>}
      </label>
    </div>
  );
}
