import { Trans, useLingui } from "@lingui/react/macro";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { Download } from "lucide-react";
import { useState } from "react";
import { problemOf, raw } from "../api/client";
import { auditParams, type AuditFilter } from "../api/queries";
import { Button } from "../ui/button";
import { PageHead } from "../ui/page";
import { TenantFilter } from "../ui/tenant-filter";
import { complain } from "../ui/toast";
import Trail from "../ui/trail";
import { Filter } from "./jobs";

export function AuditPage() {
  const { t } = useLingui();
  const filter = useSearch({ from: "/audit" });
  const navigate = useNavigate({ from: "/audit" });
  const [busy, setBusy] = useState(false);
  const setFilter = (change: AuditFilter) =>
    void navigate({
      search: (was) => Object.fromEntries(Object.entries({ ...was, ...change }).filter(([, value]) => value)),
      replace: true,
    });
  const save = async () => {
    setBusy(true);
    try {
      const query = new URLSearchParams(
        Object.entries(auditParams(filter)).flatMap(([name, value]) => (value ? [[name, String(value)]] : [])),
      );
      const text = await (await raw(`/api/v1/audit/export?${query}`)).text();
      // The last line says that nothing is missing.
      if (!text.trimEnd().split("\n").at(-1)?.includes('"end":true'))
        throw new Error(t`The export broke off. Try again.`);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "application/x-ndjson" }));
      link.download = "audit.jsonl";
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    } catch (thrown) {
      complain(problemOf(thrown).message);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <PageHead
        name={t`Audit`}
        title={<Trans>Audit</Trans>}
        below={<Trans>Who changed what, when, from where and why, and who was refused.</Trans>}
      >
        <Button onClick={() => void save()} disabled={busy} aria-busy={busy}>
          <Download aria-hidden className="size-4" /> <Trans>Export these</Trans>
        </Button>
      </PageHead>
      <div className="mb-3 flex flex-wrap items-center gap-2">
        <TenantFilter value={filter.tenant} onChange={(tenant) => setFilter({ tenant })} />
        <Filter
          value={filter.who ?? ""}
          onChange={(who) => setFilter({ who })}
          label={t`Name of a credential`}
          className="max-w-52 min-w-36 flex-1"
        />
        <Filter
          value={filter.operation ?? ""}
          onChange={(operation) => setFilter({ operation })}
          label={t`Operation: job.pause`}
          className="max-w-52 min-w-36 flex-1"
        />
        <select
          className="input w-auto"
          aria-label={t`Outcome`}
          value={filter.outcome ?? ""}
          onChange={(event) => setFilter({ outcome: event.target.value || undefined })}
        >
          <option value="">{t`any outcome`}</option>
          <option value="DONE">{t`done`}</option>
          <option value="REFUSED">{t`refused`}</option>
        </select>
        {Object.keys(filter).length > 0 && (
          <Button kind="ghost" onClick={() => void navigate({ search: {} })}>
            <Trans>Clear</Trans>
          </Button>
        )}
      </div>
      <Trail filter={filter} onFilter={setFilter} />
    </>
  );
}
