// What is around every page: navigation, search, who is signed in, and whether what is seen is current.
import { Trans, useLingui } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import {
  Activity,
  CircleHelp,
  ClipboardList,
  Cpu,
  Inbox,
  ListChecks,
  LogOut,
  Mail,
  Menu as MenuIcon,
  Network,
  ScrollText,
  Search,
  TriangleAlert,
  Users,
  X,
  type LucideIcon,
} from "lucide-react";
import { lazy, Suspense, useEffect, useRef, useState, type ReactNode } from "react";
import { pulse } from "./api/client";
import { nodeQuery } from "./api/queries";
import { closeSession, signIn } from "./api/session";
import icon from "./icon.svg";
import { useKeys } from "./lib/keys";
import { useValue } from "./lib/store";
import { useNow } from "./lib/time";
import { Button } from "./ui/button";
import { Dialog } from "./ui/dialog";
import { Divider, Item } from "./ui/menu";
import { useModal } from "./ui/modal";
import { Preferences } from "./ui/preferences";

const loadPalette = () => import("./ui/palette");
const Palette = lazy(loadPalette);

export interface Place {
  to: string;
  text: string;
  icon: LucideIcon;
  key: string;
}

/** The pages that this person can use. Operators' pages are not offered to others; the API refuses them as well. */
export function usePlaces(): Place[][] {
  const { t } = useLingui();
  const operator = useIsOperator();
  const places: Place[][] = [
    [
      { to: "/", text: t`Now`, icon: Activity, key: "h" },
      { to: "/jobs", text: t`Jobs`, icon: ClipboardList, key: "j" },
      { to: "/runs", text: t`Runs`, icon: ListChecks, key: "r" },
    ],
    [
      { to: "/failures", text: t`Failures`, icon: TriangleAlert, key: "f" },
      { to: "/waiting", text: t`Waiting for you`, icon: CircleHelp, key: "w" },
      { to: "/dead-letters", text: t`Dead letters`, icon: Inbox, key: "d" },
      { to: "/outbox", text: t`Outbox`, icon: Mail, key: "o" },
    ],
  ];
  if (operator) {
    places.push([
      { to: "/executors", text: t`Executors`, icon: Cpu, key: "e" },
      { to: "/cluster", text: t`Cluster`, icon: Network, key: "c" },
    ]);
  }
  places.push([
    { to: "/tenants", text: operator ? t`Tenants` : t`Tenant`, icon: Users, key: "t" },
    { to: "/audit", text: t`Audit`, icon: ScrollText, key: "a" },
  ]);
  return places;
}

export function useSession() {
  const who = useValue(signIn);
  return who.state === "in" ? who.session : undefined;
}

export const useIsOperator = () => useSession()?.role === "OPERATOR";

export function Shell() {
  const { t } = useLingui();
  const [palette, setPalette] = useState(false);
  const [help, setHelp] = useState(false);
  const [drawer, setDrawer] = useState(false);
  const navigate = useNavigate();
  const places = usePlaces();
  const path = useRouterState({ select: (state) => state.location.pathname });
  useEffect(() => setDrawer(false), [path]);
  // Loaded before it is needed, so that what is typed right after the key arrives.
  useEffect(() => void setTimeout(() => void loadPalette(), 1500), []);
  const keys: Record<string, () => void> = {
    "/": () => {
      const search = document.querySelector<HTMLInputElement>("main input[type=search]");
      if (search) search.focus();
      else setPalette(true);
    },
    "?": () => setHelp(true),
    c: () => void navigate({ to: "/jobs/new" }),
  };
  for (const place of places.flat()) keys[`g ${place.key}`] = () => void navigate({ to: place.to });
  useKeys(keys);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        if (!document.querySelector("dialog[open]")) setPalette(true);
      }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
  return (
    <div className="min-h-dvh md:grid md:grid-cols-[13.5rem_minmax(0,1fr)]">
      <a
        href="#main"
        className="sr-only rounded bg-accent p-2 text-accent-ink focus:not-sr-only focus:absolute focus:z-50"
      >
        <Trans>Skip to the page</Trans>
      </a>
      <aside className="sticky top-0 hidden h-dvh flex-col border-r border-line bg-surface md:flex">
        <Brand />
        <Nav places={places} />
        <Foot />
      </aside>
      <div className="min-w-0">
        <div className="sticky top-0 z-30 flex h-13 items-center gap-2 border-b border-line bg-canvas/90 px-3 backdrop-blur md:px-6">
          <Button kind="ghost" className="md:hidden" aria-label={t`Navigation`} onClick={() => setDrawer(true)}>
            <MenuIcon aria-hidden className="size-5" />
          </Button>
          <button
            type="button"
            onClick={() => setPalette(true)}
            className="flex h-9 min-w-0 flex-1 items-center gap-2 rounded-lg border border-line bg-surface px-3 text-left text-faint hover:border-strong sm:max-w-md"
          >
            <Search aria-hidden className="size-4 shrink-0" />
            <span className="truncate">
              <Trans>Search jobs, go anywhere</Trans>
            </span>
            <kbd className="ml-auto hidden rounded border border-line px-1.5 text-[0.78rem] sm:inline">Ctrl K</kbd>
          </button>
          <div className="ml-auto flex items-center gap-1">
            <Freshness />
            <Account onHelp={() => setHelp(true)} />
          </div>
        </div>
        <main id="main" tabIndex={-1} className="mx-auto max-w-[84rem] p-3 pb-20 outline-none sm:p-4 md:px-6 md:py-5">
          <Outlet />
        </main>
      </div>
      {drawer && <Drawer places={places} onClose={() => setDrawer(false)} />}
      {palette && (
        <Suspense>
          <Palette onClose={() => setPalette(false)} />
        </Suspense>
      )}
      {help && <Help places={places} onClose={() => setHelp(false)} />}
    </div>
  );
}

function Brand() {
  return (
    <Link to="/" className="flex items-center gap-2.5 px-4 pt-4 pb-3 text-[1.05rem] font-semibold tracking-tight">
      <img src={icon} alt="" className="size-7" /> Campanile
    </Link>
  );
}

function Nav({ places }: { places: Place[][] }) {
  const { t } = useLingui();
  return (
    <nav aria-label={t`Pages`} className="flex-1 overflow-y-auto px-2.5">
      {places.map((group, index) => (
        <ul key={index} className="mb-3 space-y-px border-b border-line pb-3 last:border-0">
          {group.map(({ to, text, icon: Icon }) => (
            <li key={to}>
              <Link
                to={to}
                activeOptions={{ exact: to === "/", includeSearch: false }}
                className="flex items-center gap-2.5 rounded-lg px-2.5 py-1.5 text-soft hover:bg-sunken hover:text-ink [&.active]:bg-accent-wash [&.active]:font-medium [&.active]:text-accent"
              >
                <Icon aria-hidden className="size-4.5 shrink-0" />
                {text}
              </Link>
            </li>
          ))}
        </ul>
      ))}
    </nav>
  );
}

function Drawer({ places, onClose }: { places: Place[][]; onClose: () => void }) {
  const { t } = useLingui();
  const ref = useRef<HTMLDialogElement>(null);
  useModal(ref);
  return (
    <div className="md:hidden">
      <dialog
        aria-label={t`Navigation`}
        ref={ref}
        onCancel={onClose}
        onClose={onClose}
        onMouseDown={(event) => event.target === event.currentTarget && onClose()}
        className="m-0 h-dvh max-h-none w-72 max-w-[85vw] border-r border-line bg-surface p-0"
      >
        <div className="flex h-full flex-col">
          <div className="flex items-center justify-between pr-2">
            <Brand />
            <Button kind="ghost" aria-label={t`Close`} onClick={onClose}>
              <X aria-hidden className="size-5" />
            </Button>
          </div>
          <Nav places={places} />
          <Foot />
        </div>
      </dialog>
    </div>
  );
}

function Foot() {
  const session = useSession();
  if (!session) return null;
  return (
    <div className="border-t border-line px-4 py-3 text-[0.84rem] text-soft">
      <p className="hostile truncate font-medium text-ink" title={session.name}>
        {session.name}
      </p>
      <p className="hostile truncate">
        {session.role === "OPERATOR" ? <Trans>operator, all tenants</Trans> : <Trans>tenant {session.tenantId}</Trans>}
      </p>
      <p className="text-faint">{session.version}</p>
    </div>
  );
}

/** Says when what is shown may be old. */
function Freshness() {
  const { t } = useLingui();
  const now = useNow();
  const operator = useIsOperator();
  const node = useQuery({ ...nodeQuery, enabled: operator });
  const old = pulse.failed ? Math.round((now - pulse.at) / 1000) : 0;
  const [dot, text] = pulse.failed
    ? [
        "bg-bad pulse",
        pulse.at ? t`no answer for ${Math.max(1, old)} s: what you see is old` : t`the node does not answer`,
      ]
    : node.data && !node.data.ready
      ? ["bg-warn", t`the node is not ready`]
      : ["bg-good", t`${Math.round(pulse.ms)} ms`];
  return (
    <span
      role="status"
      title={t`Time that the last answer took`}
      className={`flex items-center gap-1.5 px-1.5 text-[0.84rem] tabular-nums ${pulse.failed ? "text-bad" : "text-faint"}`}
    >
      <span className={`size-2 rounded-full ${dot}`} aria-hidden />
      <span className={pulse.failed ? "" : "max-sm:sr-only"}>{text}</span>
    </span>
  );
}

function Account({ onHelp }: { onHelp: () => void }) {
  const { t } = useLingui();
  const session = useSession();
  return (
    <Preferences label={t`Settings and account`}>
      <Divider />
      <Item onSelect={onHelp}>
        <CircleHelp aria-hidden className="size-4" /> <Trans>Keys</Trans>
      </Item>
      {session?.knownBy !== "LOOPBACK" && (
        <Item onSelect={() => void closeSession()}>
          <LogOut aria-hidden className="size-4" /> <Trans>Sign out</Trans>
        </Item>
      )}
    </Preferences>
  );
}

function Help({ places, onClose }: { places: Place[][]; onClose: () => void }) {
  const { t } = useLingui();
  const rows: [string[], ReactNode][] = [
    [["Ctrl K"], <Trans key="p">Search jobs, go anywhere</Trans>],
    [["/"], <Trans key="s">Filter the list</Trans>],
    [["j", "k"], <Trans key="m">Next and previous row</Trans>],
    [["o"], <Trans key="o">Open the row</Trans>],
    [["x"], <Trans key="x">Select the row</Trans>],
    [["c"], <Trans key="c">Create a job</Trans>],
    [["?"], <Trans key="h">These keys</Trans>],
    ...places.flat().map((place): [string[], ReactNode] => [["g", place.key], place.text]),
  ];
  return (
    <Dialog title={t`Keys`} onClose={onClose}>
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1.5 sm:grid-cols-[auto_1fr_auto_1fr]">
        {rows.map(([keys, text]) => (
          <div key={keys.join()} className="contents">
            <dt className="flex gap-1">
              {keys.map((key) => (
                <kbd key={key} className="min-w-6 rounded border border-strong bg-sunken px-1.5 text-center">
                  {key}
                </kbd>
              ))}
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
