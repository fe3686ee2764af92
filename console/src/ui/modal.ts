import { useEffect, type RefObject } from "react";

/** Opens a dialog over the page, and gives the focus back to where it was when the dialog is gone. */
export function useModal(dialog: RefObject<HTMLDialogElement | null>) {
  useEffect(() => {
    const before = document.activeElement;
    // React mounts twice while it looks for mistakes.
    if (dialog.current && !dialog.current.open) dialog.current.showModal();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
    };
  }, [dialog]);
}
