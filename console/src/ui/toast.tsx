// Short messages about what was done. A region that screen readers follow; no styles are put into the page.
import { useLingui } from "@lingui/react/macro";
import { CircleCheck, CircleX, X } from "lucide-react";
import { useEffect, type ReactNode } from "react";
import { useValue, value } from "../lib/store";
import { Button } from "./button";

interface Toast {
  id: number;
  text: ReactNode;
  bad: boolean;
  action?: { label: string; run: () => void };
}

const MOST = 4;
const STAYS_MS = 7_000;
const toasts = value<Toast[]>([]);
let counted = 0;

function add(toast: Omit<Toast, "id">) {
  counted += 1;
  toasts.set([...toasts.get(), { ...toast, id: counted }].slice(-MOST));
}

export const tell = (text: ReactNode, action?: Toast["action"]) => add({ text, bad: false, action });
export const complain = (text: ReactNode) => add({ text, bad: true });

const close = (id: number) => toasts.set(toasts.get().filter((toast) => toast.id !== id));

export function Toasts() {
  const { t } = useLingui();
  const shown = useValue(toasts);
  return (
    <div
      role="region"
      aria-label={t`Messages`}
      className="pointer-events-none fixed inset-x-3 bottom-3 z-50 flex flex-col items-end gap-2 max-sm:bottom-16"
    >
      <div aria-live="polite" className="flex w-full max-w-sm flex-col gap-2">
        {shown.map((toast) => (
          <Shown key={toast.id} toast={toast} />
        ))}
      </div>
    </div>
  );
}

function Shown({ toast }: { toast: Toast }) {
  const { t } = useLingui();
  useEffect(() => {
    const timer = setTimeout(() => close(toast.id), toast.action ? 2 * STAYS_MS : STAYS_MS);
    return () => clearTimeout(timer);
  }, [toast]);
  const Icon = toast.bad ? CircleX : CircleCheck;
  return (
    <div className="appear pointer-events-auto flex items-start gap-2 rounded-lg border border-line bg-raised p-3 shadow-lg">
      <Icon aria-hidden className={`mt-0.5 size-4.5 shrink-0 ${toast.bad ? "text-bad" : "text-good"}`} />
      <div className="hostile min-w-0 flex-1">{toast.text}</div>
      {toast.action && (
        <Button
          size="small"
          onClick={() => {
            toast.action?.run();
            close(toast.id);
          }}
        >
          {toast.action.label}
        </Button>
      )}
      <Button kind="ghost" size="small" aria-label={t`Close`} onClick={() => close(toast.id)} className="-m-1">
        <X aria-hidden className="size-4" />
      </Button>
    </div>
  );
}
