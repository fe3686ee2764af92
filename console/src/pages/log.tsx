// The output of an attempt: only the lines that are seen are in the page, it follows while the attempt runs, and it can be searched.
import { Plural, Trans, useLingui } from "@lingui/react/macro";
import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDownToLine, ChevronDown, ChevronUp, Download, ListFilter, WrapText } from "lucide-react";
import { useEffect, useReducer, useRef, useState } from "react";
import { raw, type Problem, type Run, type Schemas } from "../api/client";
import { follow, type Live } from "../api/events";
import { LogText, matches, plain } from "../lib/log";
import { amount } from "../lib/time";
import { Button } from "../ui/button";
import { Failure } from "../ui/feedback";
import { LiveSign } from "../ui/live-sign";
import { complain } from "../ui/toast";
import { problemOf } from "../api/client";

/** What the node leaves out. */
export interface LogFilter {
  /** Only lines with this text. */
  contains?: string;
  /** Only lines of this level or a more severe one. */
  level?: Schemas["LogLevel"];
  /** Only so many of the last lines. */
  tail?: number;
}

const LEVELS: Schemas["LogLevel"][] = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR"];
const TAILS = [100, 1_000, 10_000];

interface Props {
  run: Run;
  attempt: number;
  filter: LogFilter;
  onFilter: (change: LogFilter) => void;
  onAttempt: (attempt: number) => void;
}

const LINE = 20;

export default function Log({ run, attempt, filter, onFilter, onAttempt }: Props) {
  const { t } = useLingui();
  const log = useRef(new LogText());
  const [, draw] = useReducer((count: number) => count + 1, 0);
  const [live, setLive] = useState<Live>("connecting");
  const [problem, setProblem] = useState<Problem>();
  const [wrap, setWrap] = useState(true);
  const [tail, setTail] = useState(true);
  const [search, setSearch] = useState(filter.contains ?? "");
  const { contains, level, tail: newestLines } = filter;
  const isPart = contains !== undefined || level !== undefined || newestLines !== undefined;
  const [at, setAt] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const newest = run.attempts.at(-1)?.attempt === attempt;

  useEffect(() => {
    const stop = new AbortController();
    log.current = new LogText();
    let drawing = 0;
    const query = new URLSearchParams({ follow: "true", attempt: String(attempt) });
    if (contains !== undefined) query.set("contains", contains);
    if (level !== undefined) query.set("level", level);
    if (newestLines !== undefined) query.set("tail", String(newestLines));
    // What was seen with another filter goes at once.
    draw();
    void follow(`/api/v1/runs/${run.runId}/log?${query}`, {
      signal: stop.signal,
      onState: (state, why) => {
        if (stop.signal.aborted) return;
        setLive(state);
        setProblem(why);
      },
      onEvent: ({ name, data }) => {
        if (name !== "log") return;
        const { text, nextOffset } = data as { text: string; nextOffset: number };
        log.current.add(text);
        log.current.next = nextOffset;
        drawing ||= requestAnimationFrame(() => {
          drawing = 0;
          draw();
        });
      },
    });
    return () => {
      stop.abort();
      cancelAnimationFrame(drawing);
    };
  }, [run.runId, run.generation, attempt, contains, level, newestLines]);
  // What is typed reaches the node when the person stops typing.
  useEffect(() => {
    if (contains === undefined || search === contains) return;
    const timer = setTimeout(() => onFilter({ contains: search || undefined }), 300);
    return () => clearTimeout(timer);
  });

  const { lines, dropped } = log.current;
  const virtualizer = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => LINE,
    overscan: 30,
  });
  useEffect(() => {
    if (tail && lines.length > 0) virtualizer.scrollToIndex(lines.length - 1, { align: "end" });
  }, [lines.length, tail, virtualizer]);
  const found = matches(lines, search);
  const current = found.length > 0 ? found[((at % found.length) + found.length) % found.length] : undefined;
  useEffect(() => {
    if (current !== undefined) {
      setTail(false);
      virtualizer.scrollToIndex(current, { align: "center" });
    }
  }, [current, virtualizer]);

  const download = async () => {
    try {
      const response = await raw(`/api/v1/runs/${run.runId}/log?format=text&attempt=${attempt}`);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(await response.blob());
      link.download = `run-${run.runId}-attempt-${attempt}.log`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    } catch (thrown) {
      complain(problemOf(thrown).message);
    }
  };

  const attempts = run.attempts.filter((one) => one.generation === run.generation);
  const empty = lines.length === 0;
  return (
    <section className="card mb-4 overflow-hidden" aria-label={t`Log`}>
      <div className="flex flex-wrap items-center gap-2 border-b border-line px-4 py-2">
        <h2 className="text-[0.95rem] font-semibold">
          <Trans>Log</Trans>
        </h2>
        {attempts.length > 1 && (
          <select
            className="input w-auto"
            aria-label={t`Attempt`}
            value={attempt}
            onChange={(event) => onAttempt(Number(event.target.value))}
          >
            {attempts.map((one) => (
              <option key={one.attempt} value={one.attempt}>{t`attempt ${one.attempt}`}</option>
            ))}
          </select>
        )}
        {newest && <LiveSign live={live} problem={problem} />}
        <span className="flex-1" />
        <input
          type="search"
          className="input w-44 max-sm:w-full"
          aria-label={t`Search in the log`}
          placeholder={t`Search in the log`}
          value={search}
          onChange={(event) => {
            setSearch(event.target.value);
            setAt(0);
          }}
          onKeyDown={(event) => event.key === "Enter" && setAt((was) => was + (event.shiftKey ? -1 : 1))}
        />
        <Button
          size="small"
          kind={contains === undefined ? "ghost" : "plain"}
          aria-pressed={contains !== undefined}
          disabled={contains === undefined && search === ""}
          onClick={() => onFilter({ contains: contains === undefined ? search : undefined })}
        >
          <ListFilter aria-hidden className="size-4" /> <Trans>Only these lines</Trans>
        </Button>
        {search !== "" && (
          <span className="flex items-center gap-1 text-[0.86rem] text-soft" role="status">
            {found.length === 0 ? (
              <Trans>no match</Trans>
            ) : (
              <Trans>
                {(((at % found.length) + found.length) % found.length) + 1} of {amount(found.length)}
              </Trans>
            )}
            <Button
              kind="ghost"
              size="small"
              aria-label={t`Previous match`}
              disabled={found.length === 0}
              onClick={() => setAt((was) => was - 1)}
            >
              <ChevronUp aria-hidden className="size-4" />
            </Button>
            <Button
              kind="ghost"
              size="small"
              aria-label={t`Next match`}
              disabled={found.length === 0}
              onClick={() => setAt((was) => was + 1)}
            >
              <ChevronDown aria-hidden className="size-4" />
            </Button>
          </span>
        )}
        <select
          className="input w-auto"
          aria-label={t`Least level`}
          value={level ?? ""}
          onChange={(event) => onFilter({ level: (event.target.value || undefined) as LogFilter["level"] })}
        >
          <option value="">{t`any level`}</option>
          {LEVELS.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
        <select
          className="input w-auto"
          aria-label={t`How many lines`}
          value={newestLines ?? ""}
          onChange={(event) => onFilter({ tail: event.target.value ? Number(event.target.value) : undefined })}
        >
          <option value="">{t`all lines`}</option>
          {[...new Set([...TAILS, ...(newestLines === undefined ? [] : [newestLines])])].map((count) => (
            <option key={count} value={count}>{t`the last ${amount(count)}`}</option>
          ))}
        </select>
        <Button size="small" kind={wrap ? "plain" : "ghost"} aria-pressed={wrap} onClick={() => setWrap(!wrap)}>
          <WrapText aria-hidden className="size-4" /> <Trans>Wrap</Trans>
        </Button>
        <Button size="small" kind={tail ? "plain" : "ghost"} aria-pressed={tail} onClick={() => setTail(!tail)}>
          <ArrowDownToLine aria-hidden className="size-4" /> <Trans>Follow</Trans>
        </Button>
        <Button size="small" onClick={() => void download()}>
          <Download aria-hidden className="size-4" /> <Trans>Download</Trans>
        </Button>
      </div>
      {problem && live === "over" && (
        <div className="p-3">
          <Failure error={problem} compact />
        </div>
      )}
      {dropped > 0 && (
        <p className="border-b border-line bg-warn-wash px-4 py-1.5 text-[0.86rem]">
          <Plural
            value={dropped}
            one="# older line is not shown. Download the log to see all."
            other="# older lines are not shown. Download the log to see all."
          />
        </p>
      )}
      {empty ? (
        <p className="p-4 text-soft">
          {isPart && live !== "connecting" ? (
            <Trans>No line matches.</Trans>
          ) : live === "over" ? (
            <Trans>The attempt wrote nothing.</Trans>
          ) : (
            <Trans>Nothing is written yet.</Trans>
          )}
        </p>
      ) : (
        <div
          ref={box}
          tabIndex={0}
          role="log"
          aria-label={t`Output of attempt ${attempt}`}
          onWheel={(event) => event.deltaY < 0 && setTail(false)}
          className="max-h-[60dvh] min-h-24 overflow-auto bg-sunken py-2 font-mono text-[0.84rem] leading-5"
        >
          <div className="relative w-full" style={{ height: virtualizer.getTotalSize() }}>
            {virtualizer.getVirtualItems().map((item) => (
              <div
                key={item.key}
                ref={virtualizer.measureElement}
                data-index={item.index}
                className={`absolute top-0 left-0 flex w-full ${item.index === current ? "bg-warn-wash" : "hover:bg-line/40"}`}
                style={{ transform: `translateY(${item.start}px)` }}
              >
                <span aria-hidden className="w-14 shrink-0 pr-3 text-right text-faint select-none">
                  {/* Among lines that are left out, the number would not be that of the line. */}
                  {isPart ? "" : item.index + 1 + dropped}
                </span>
                <span
                  className={`flex-1 pr-3 [unicode-bidi:isolate] ${wrap ? "[overflow-wrap:anywhere] whitespace-pre-wrap" : "whitespace-pre"}`}
                >
                  <Marked text={plain(lines[item.index] ?? "") || "\u00a0"} wanted={search} />
                </span>
              </div>
            ))}
          </div>
        </div>
      )}
    </section>
  );
}

function Marked({ text, wanted }: { text: string; wanted: string }) {
  if (wanted === "") return <>{text}</>;
  const parts: React.ReactNode[] = [];
  const lower = text.toLowerCase();
  const low = wanted.toLowerCase();
  let from = 0;
  for (let found = lower.indexOf(low); found >= 0 && parts.length < 200; found = lower.indexOf(low, from)) {
    parts.push(
      text.slice(from, found),
      <mark key={found} className="rounded-sm bg-warn text-canvas">
        {text.slice(found, found + wanted.length)}
      </mark>,
    );
    from = found + wanted.length;
  }
  parts.push(text.slice(from));
  return <>{parts}</>;
}
