// The only file that knows cmdk. The node does the search; what it finds is shown as it came.
import { Trans, useLingui } from "@lingui/react/macro";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { ClipboardList, Hash, Plus, Search } from "lucide-react";
import { useDeferredValue, useRef, useState, type ReactNode } from "react";
import { api, good } from "../api/client";
import { usePlaces } from "../shell";
import { useModal } from "./modal";
import { State } from "./state";

const FOUND = 12;

export default function Palette({ onClose }: { onClose: () => void }) {
  const { t } = useLingui();
  const ref = useRef<HTMLDialogElement>(null);
  const navigate = useNavigate();
  const places = usePlaces();
  const [text, setText] = useState("");
  const wanted = useDeferredValue(text.trim());
  useModal(ref);
  const jobs = useQuery({
    queryKey: ["palette", wanted],
    enabled: wanted !== "",
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) =>
      good(api.GET("/api/v1/jobs", { signal, params: { query: { text: wanted, pageSize: FOUND } } })),
  });
  const go = (there: () => Promise<void>) => () => {
    onClose();
    void there();
  };
  const fits = (name: string) => name.toLowerCase().includes(text.trim().toLowerCase());
  // Until the answer comes, those of the last one that still fit: Enter never opens what the text has already ruled out.
  const found = jobs.data?.items.filter((job) => !jobs.isPlaceholderData || fits(job.name)) ?? [];
  const id = /^\d{1,16}$/.test(wanted) ? Number(wanted) : undefined;
  return (
    <dialog
      ref={ref}
      aria-label={t`Search`}
      onCancel={onClose}
      onClose={onClose}
      onMouseDown={(event) => event.target === ref.current && onClose()}
      className="appear mx-auto mt-[10dvh] w-[calc(100vw-1.5rem)] max-w-xl overflow-hidden rounded-xl border border-line bg-raised p-0 shadow-2xl"
    >
      <Command shouldFilter={false} label={t`Search`} loop>
        <div className="flex items-center gap-2.5 border-b border-line px-4">
          <Search aria-hidden className="size-4.5 text-faint" />
          <Command.Input
            value={text}
            onValueChange={setText}
            placeholder={t`A job's name, the id of a job or a run, or a page`}
            className="h-12 flex-1 bg-transparent outline-none"
          />
        </div>
        <Command.List className="max-h-[60dvh] overflow-auto p-1.5">
          {id !== undefined && (
            <>
              <Row
                value={`run-${id}`}
                icon={<Hash />}
                onSelect={go(() => navigate({ to: "/runs/$runId", params: { runId: id } }))}
              >
                <Trans>Run {id}</Trans>
              </Row>
              <Row
                value={`job-id-${id}`}
                icon={<Hash />}
                onSelect={go(() => navigate({ to: "/jobs/$jobId", params: { jobId: id } }))}
              >
                <Trans>Job {id}</Trans>
              </Row>
            </>
          )}
          {wanted !== "" &&
            found.map((job) => (
              <Row
                key={job.jobId}
                value={`job-${job.jobId}`}
                icon={<ClipboardList />}
                onSelect={go(() => navigate({ to: "/jobs/$jobId", params: { jobId: job.jobId } }))}
              >
                <span className="hostile min-w-0 flex-1 truncate">{job.name}</span>
                {job.displayName && <span className="hostile truncate">{job.displayName}</span>}
                <span className="hostile truncate text-faint">{job.tenantId}</span>
                {job.lastRunState && <State of={job.lastRunState} plain />}
              </Row>
            ))}
          {fits(t`Create a job`) && (
            <Row value="create" icon={<Plus />} onSelect={go(() => navigate({ to: "/jobs/new" }))}>
              <Trans>Create a job</Trans>
            </Row>
          )}
          {places
            .flat()
            .filter((place) => fits(place.text))
            .map((place) => (
              <Row
                key={place.to}
                value={`page-${place.to}`}
                icon={<place.icon />}
                onSelect={go(() => navigate({ to: place.to }))}
              >
                {place.text}
              </Row>
            ))}
          <Command.Empty className="px-3 py-6 text-center text-soft">
            {jobs.isFetching ? <Trans>Searching…</Trans> : <Trans>Nothing has this name.</Trans>}
          </Command.Empty>
        </Command.List>
      </Command>
    </dialog>
  );
}

function Row({
  value,
  icon,
  onSelect,
  children,
}: {
  value: string;
  icon: ReactNode;
  onSelect: () => void;
  children: ReactNode;
}) {
  return (
    <Command.Item
      value={value}
      onSelect={onSelect}
      className="flex cursor-pointer items-center gap-2.5 rounded-md px-2.5 py-2 data-[selected=true]:bg-accent-wash [&>svg]:size-4 [&>svg]:shrink-0 [&>svg]:text-faint"
    >
      {icon}
      {children}
    </Command.Item>
  );
}
