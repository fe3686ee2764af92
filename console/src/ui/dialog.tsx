// Dialogs are the browser's own: focus stays inside, Escape closes, the rest of the page is inert.
import { Trans, useLingui } from "@lingui/react/macro";
import { X } from "lucide-react";
import { useId, useRef, useState, type ReactNode } from "react";
import { Button } from "./button";
import { Failure } from "./feedback";
import { useModal } from "./modal";
import { ReasonField } from "./reason-field";

interface Props {
  title: ReactNode;
  onClose: () => void;
  children: ReactNode;
  wide?: boolean;
}

export function Dialog({ title, onClose, children, wide = false }: Props) {
  const { t } = useLingui();
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useModal(ref);
  return (
    <dialog
      ref={ref}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClose={onClose}
      onMouseDown={(event) => event.target === ref.current && onClose()}
      className={`appear m-auto max-h-[min(46rem,calc(100dvh-2rem))] w-[calc(100vw-1.5rem)] overflow-auto rounded-xl border border-line bg-raised p-0 shadow-2xl ${wide ? "max-w-3xl" : "max-w-lg"}`}
    >
      <div className="p-5">
        <div className="mb-3 flex items-start justify-between gap-3">
          <h2 id={id} className="hostile text-lg font-semibold">
            {title}
          </h2>
          <Button kind="ghost" size="small" aria-label={t`Close`} onClick={onClose} className="-mr-2">
            <X aria-hidden className="size-4.5" />
          </Button>
        </div>
        {children}
      </div>
    </dialog>
  );
}

interface ActionProps {
  title: ReactNode;
  children?: ReactNode;
  /** What the button says. */
  action: ReactNode;
  danger?: boolean;
  /** Ask for a reason, which goes to the audit trail. */
  withReason?: boolean;
  canGo?: boolean;
  wide?: boolean;
  run: (reason: string | undefined) => Promise<unknown>;
  onClose: () => void;
}

/** Asks before something is done, and shows why it was refused. */
export function ActionDialog({
  title,
  children,
  action,
  danger,
  withReason = true,
  canGo = true,
  wide,
  run,
  onClose,
}: ActionProps) {
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>();
  const go = async () => {
    setBusy(true);
    setRefused(undefined);
    try {
      await run(reason.trim() || undefined);
      onClose();
    } catch (thrown) {
      setRefused(thrown);
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose} wide={wide}>
      <form
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (!busy && canGo) void go();
        }}
      >
        {children}
        {withReason && <ReasonField value={reason} onChange={setReason} />}
        {refused !== undefined && <Failure error={refused} compact />}
        <div className="flex flex-wrap justify-end gap-2">
          <Button onClick={onClose}>
            <Trans>Cancel</Trans>
          </Button>
          <Button type="submit" kind={danger ? "danger" : "primary"} disabled={busy || !canGo} aria-busy={busy}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
