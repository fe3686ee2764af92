import { useEffect, type RefObject } from "react";

/** Opens a dialog over the page, and gives the focus back to where it was when the dialog is gone. */
export function useModal(dialog: RefObject<HTMLDialogElement | null>) {
  useEffect(() => {
    const before = document.activeElement;
    // React mounts twice while it looks for mistakes.
    if (dialog.current && !dialog.current.open) {
      dialog.current.showModal();
      // The first field, not the button that closes. On a phone it would bring up the keys over half of the dialog.
      const first = dialog.current.querySelector<HTMLElement>("input, textarea, select, [type=submit]");
      if (first && matchMedia("(pointer: fine)").matches) first.focus();
    }
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
    };
  }, [dialog]);
}
