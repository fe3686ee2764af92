/** One of a few, all of them seen. */
export function Segments<T extends string>({
  name,
  value,
  of,
  onChange,
}: {
  name: string;
  value: T;
  of: [T, string][];
  onChange: (value: T) => void;
}) {
  return (
    <div role="radiogroup" aria-label={name} className="flex flex-wrap gap-1.5">
      {of.map(([key, text]) => (
        <label
          key={key}
          className={`cursor-pointer rounded-lg border px-3 py-1.5 has-focus-visible:outline-2 has-focus-visible:outline-accent ${value === key ? "border-accent bg-accent-wash font-medium text-accent" : "border-line hover:border-strong"}`}
        >
          <input
            type="radio"
            name={name}
            value={key}
            checked={value === key}
            onChange={() => onChange(key)}
            className="sr-only"
          />
          {text}
        </label>
      ))}
    </div>
  );
}
