import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { jobQuery } from "../api/queries";

/** A link to a job by its name. With `ask`, the name is read if it is not known; else the id stands for it. */
export function JobName({ jobId, ask = false }: { jobId: number; ask?: boolean }) {
  const job = useQuery({ ...jobQuery(jobId), enabled: ask, staleTime: 60_000, refetchInterval: false, retry: false });
  return (
    <Link to="/jobs/$jobId" params={{ jobId }} preload={false} className="link hostile">
      {job.data?.name ?? jobId}
    </Link>
  );
}

/** Nodes of a DAG and hooks know a job by its name only. */
export function JobByName({ name, tenant }: { name: string; tenant: string }) {
  return (
    <Link to="/jobs" search={{ text: name, tenant }} className="link hostile">
      {name}
    </Link>
  );
}
