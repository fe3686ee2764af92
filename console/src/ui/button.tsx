import { createLink } from "@tanstack/react-router";
import { forwardRef, type AnchorHTMLAttributes, type ButtonHTMLAttributes } from "react";

type Kind = "primary" | "plain" | "ghost" | "danger";

const BASE =
  "inline-flex items-center justify-center gap-1.5 rounded-[7px] border font-medium whitespace-nowrap transition-colors disabled:cursor-not-allowed disabled:opacity-50 select-none [&>svg]:shrink-0";
const KINDS: Record<Kind, string> = {
  primary: "border-transparent bg-accent text-accent-ink hover:brightness-110 disabled:hover:brightness-100",
  plain: "border-strong bg-surface text-ink hover:bg-sunken",
  ghost: "border-transparent text-soft hover:bg-sunken hover:text-ink",
  danger: "border-bad/40 bg-surface text-bad hover:bg-bad-wash",
};
const SIZES = { small: "min-h-7 px-2 text-[0.86rem]", normal: "min-h-9 px-3" };

interface Looks {
  kind?: Kind;
  size?: keyof typeof SIZES;
}

export const looks = ({ kind = "plain", size = "normal" }: Looks, more = "") =>
  `${BASE} ${KINDS[kind]} ${SIZES[size]} ${more}`;

export const Button = forwardRef<HTMLButtonElement, ButtonHTMLAttributes<HTMLButtonElement> & Looks>(
  ({ kind, size, className, ...rest }, ref) => (
    <button ref={ref} type="button" className={looks({ kind, size }, className)} {...rest} />
  ),
);
Button.displayName = "Button";

const Anchor = forwardRef<HTMLAnchorElement, AnchorHTMLAttributes<HTMLAnchorElement> & Looks>(
  ({ kind, size, className, ...rest }, ref) => <a ref={ref} className={looks({ kind, size }, className)} {...rest} />,
);
Anchor.displayName = "Anchor";
/** A link that looks like a button. */
export const ButtonLink = createLink(Anchor);
