import { DropdownMenu } from "radix-ui";
import type { ReactNode } from "react";

/** Not modal: the modal form would put a style element into the page, which the Content-Security-Policy forbids. */
export function Menu({
  trigger,
  children,
  align = "end",
}: {
  trigger: ReactNode;
  children: ReactNode;
  align?: "start" | "end";
}) {
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          align={align}
          sideOffset={6}
          collisionPadding={8}
          className="appear z-40 max-h-[70dvh] min-w-48 overflow-auto rounded-lg border border-line bg-raised p-1 shadow-xl"
        >
          {children}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

const ITEM =
  "flex w-full cursor-default items-center gap-2 rounded-md px-2.5 py-1.5 outline-none select-none data-[disabled]:opacity-45 data-[highlighted]:bg-accent-wash";

export function Item({
  onSelect,
  disabled,
  danger,
  children,
}: {
  onSelect: () => void;
  disabled?: boolean;
  danger?: boolean;
  children: ReactNode;
}) {
  return (
    <DropdownMenu.Item disabled={disabled} onSelect={onSelect} className={`${ITEM} ${danger ? "text-bad" : ""}`}>
      {children}
    </DropdownMenu.Item>
  );
}

export function Choice<T extends string>({
  label,
  value,
  of,
  onChange,
}: {
  label: string;
  value: T;
  of: [T, string][];
  onChange: (value: T) => void;
}) {
  return (
    <DropdownMenu.RadioGroup value={value} onValueChange={(chosen) => onChange(chosen as T)} aria-label={label}>
      <DropdownMenu.Label className="px-2.5 pt-2 pb-1 text-[0.8rem] text-faint">{label}</DropdownMenu.Label>
      {of.map(([name, text]) => (
        <DropdownMenu.RadioItem
          key={name}
          value={name}
          onSelect={(event) => event.preventDefault()}
          className={`${ITEM} before:w-3.5 before:text-accent data-[state=checked]:before:content-['✓'] data-[state=unchecked]:before:content-['']`}
        >
          {text}
        </DropdownMenu.RadioItem>
      ))}
    </DropdownMenu.RadioGroup>
  );
}

export const Divider = () => <DropdownMenu.Separator className="my-1 h-px bg-line" />;
