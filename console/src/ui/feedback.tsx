// What a page says while it loads, when it failed and when there is nothing.
import { Trans, useLingui } from "@lingui/react/macro";
import { CircleX, type LucideIcon } from "lucide-react";
import type { ReactNode } from "react";
import { problemOf } from "../api/client";
import { Button } from "./button";

export function Failure({ error, retry, compact = false }: { error: unknown; retry?: () => void; compact?: boolean }) {
  const problem = problemOf(error);
  return (
    <div role="alert" className={`rounded-[10px] border border-bad/40 bg-bad-wash text-ink ${compact ? "p-3" : "p-4"}`}>
      <div className="flex items-start gap-2.5">
        <CircleX aria-hidden className="mt-0.5 size-4.5 shrink-0 text-bad" />
        <div className="min-w-0 flex-1">
          <p className="hostile font-medium">
            {problem.status === 0 ? <Trans>The node does not answer.</Trans> : problem.message}
          </p>
          {problem.advice && <p className="hostile mt-0.5 text-soft">{problem.advice}</p>}
          <p className="mt-1 text-[0.86rem] text-soft">
            {problem.status === 0 ? (
              <span className="hostile">{problem.message}</span>
            ) : (
              <a className="link" href={`/errors#${encodeURIComponent(problem.code)}`} target="_blank" rel="noreferrer">
                <code>{problem.code}</code>
              </a>
            )}
            {problem.requestId && (
              <>
                {" · "}
                <Trans>
                  request <code className="hostile">{problem.requestId}</code>
                </Trans>
              </>
            )}
          </p>
        </div>
        {retry && (
          <Button size="small" onClick={retry}>
            <Trans>Try again</Trans>
          </Button>
        )}
      </div>
    </div>
  );
}

export function Loading({ lines = 6 }: { lines?: number }) {
  const { t } = useLingui();
  return (
    <div role="status" aria-label={t`Loading`} className="space-y-2.5 p-4">
      {Array.from({ length: lines }, (_, index) => (
        <div key={index} className={`pulse h-4 rounded bg-line ${WIDTHS[index % WIDTHS.length]}`} />
      ))}
    </div>
  );
}
const WIDTHS = ["w-11/12", "w-3/4", "w-5/6", "w-2/3"];

export function Nothing({ icon: Icon, title, children }: { icon: LucideIcon; title: ReactNode; children?: ReactNode }) {
  return (
    <div className="flex flex-col items-center gap-1.5 px-4 py-12 text-center">
      <Icon aria-hidden className="size-8 text-strong" strokeWidth={1.5} />
      <p className="font-medium">{title}</p>
      {children && <div className="max-w-prose text-soft">{children}</div>}
    </div>
  );
}
