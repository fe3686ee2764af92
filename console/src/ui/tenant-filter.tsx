import { useLingui } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { tenantsQuery } from "../api/queries";
import { useIsOperator } from "../shell";

/** For operators, who see every tenant. */
export function TenantFilter({
  value,
  onChange,
}: {
  value: string | undefined;
  onChange: (tenant: string | undefined) => void;
}) {
  const { t } = useLingui();
  const operator = useIsOperator();
  const tenants = useQuery({ ...tenantsQuery, enabled: operator });
  if (!operator) return null;
  const names = tenants.data?.items.map((tenant) => tenant.tenantId) ?? [];
  if (value && !names.includes(value)) names.unshift(value);
  return (
    <select
      className="input w-auto max-w-44"
      aria-label={t`Tenant`}
      value={value ?? ""}
      onChange={(event) => onChange(event.target.value || undefined)}
    >
      <option value="">{t`all tenants`}</option>
      {names.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
}
