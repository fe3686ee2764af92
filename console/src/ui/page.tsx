import type { ReactNode } from "react";
import { useEffect } from "react";

/** Title in the tab and on the page, and what can be done. */
export function PageHead({
  title,
  name,
  children,
  below,
}: {
  title: ReactNode;
  name: string;
  children?: ReactNode;
  below?: ReactNode;
}) {
  useEffect(() => {
    document.title = `${name} · Campanile`;
  }, [name]);
  return (
    <header className="mb-4">
      <div className="flex flex-wrap items-center justify-between gap-x-4 gap-y-2">
        <h1 className="hostile flex min-w-0 flex-wrap items-center gap-2.5 text-xl font-semibold">{title}</h1>
        {children && <div className="flex flex-wrap items-center gap-2">{children}</div>}
      </div>
      {below && <div className="mt-1 text-soft">{below}</div>}
    </header>
  );
}

export function Section({
  title,
  children,
  actions,
  flush = false,
}: {
  title?: ReactNode;
  children: ReactNode;
  actions?: ReactNode;
  flush?: boolean;
}) {
  return (
    <section className="card mb-4 overflow-hidden">
      {(title || actions) && (
        <div className="flex min-h-11 flex-wrap items-center justify-between gap-2 border-b border-line px-4 py-1.5">
          {title && <h2 className="text-[0.95rem] font-semibold">{title}</h2>}
          {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
        </div>
      )}
      <div className={flush ? "" : "p-4"}>{children}</div>
    </section>
  );
}

/** Names and values, one beside the other. */
export function Facts({ children }: { children: ReactNode }) {
  return (
    <dl className="grid gap-x-6 gap-y-3.5 max-sm:gap-y-2 sm:grid-cols-[repeat(auto-fill,minmax(13.8rem,1fr))]">
      {children}
    </dl>
  );
}

export function Fact({ name, children, wide = false }: { name: ReactNode; children: ReactNode; wide?: boolean }) {
  return (
    <div className={`min-w-0 max-sm:flex max-sm:justify-between max-sm:gap-4 ${wide ? "col-span-full" : ""}`}>
      <dt className="text-[0.82rem] text-faint">{name}</dt>
      <dd className="hostile mt-0.5 min-w-0 max-sm:mt-0 max-sm:text-right">{children}</dd>
    </div>
  );
}

export function Code({ children, className = "" }: { children: string; className?: string }) {
  return (
    <pre
      tabIndex={0}
      className={`hostile max-h-96 overflow-auto rounded-lg border border-line bg-sunken p-3 text-[0.86rem] whitespace-pre-wrap ${className}`}
    >
      {children}
    </pre>
  );
}
