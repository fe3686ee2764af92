//! Who may touch what. Pure: the caller, and the tenant that a thing belongs to or that a body names.

use super::{Answer, invalid};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    job::JobSpec,
    limits::TENANT_CHARS,
    operations::LeastRole,
};
use campanile_security::auth::{Caller, Role};
use std::fmt::Display;

/// The tenant of bodies that name none, and of operators.
pub(super) const DEFAULT_TENANT: &str = "default";

/// Operators and tenants may call; executors may not.
pub(super) fn caller(caller: &Caller) -> Answer<()> {
    match caller.role {
        Role::Operator | Role::Tenant => Ok(()),
        Role::Executor => Err(forbidden("an executor's credential cannot call this; use an operator's or a tenant's")),
        Role::Metrics => {
            Err(forbidden("a credential for metrics reads /metrics only; use an operator's or a tenant's"))
        }
    }
}

/// Things that belong to no tenant.
pub(super) fn operator(who: &Caller) -> Answer<()> {
    match who.role {
        Role::Operator => Ok(()),
        Role::Tenant | Role::Executor | Role::Metrics => Err(forbidden("only an operator's credential may do this")),
    }
}

/// Whether a credential is at least what the table asks for. Pages and executors have doors of their own, where this is not asked.
pub(super) fn least(who: &Caller, least: LeastRole) -> Answer<()> {
    match least {
        LeastRole::Public => Ok(()),
        LeastRole::Tenant => caller(who),
        LeastRole::Operator | LeastRole::Metrics | LeastRole::Executor => operator(who),
    }
}

/// The one tenant that a caller is bound to; None = every tenant.
pub(super) fn bound_to(who: &Caller) -> Answer<Option<&str>> {
    caller(who)?;
    match (who.role, who.tenant.as_deref()) {
        (Role::Tenant, None) => Err(forbidden("this credential names no tenant")),
        (Role::Tenant, tenant @ Some(_)) => Ok(tenant),
        (Role::Operator | Role::Executor | Role::Metrics, _) => Ok(None),
    }
}

/// The tenant that a list is of, from what the call names. None = of every tenant (operators).
pub(super) fn scope(who: &Caller, named: Option<String>) -> Answer<Option<String>> {
    if let Some(named) = &named {
        check_tenant_name(named)?;
    }
    match (bound_to(who)?, named) {
        (Some(own), Some(named)) if own != named => Err(other_tenant(&named, own)),
        (Some(own), _) => Ok(Some(own.to_owned())),
        (None, named) => Ok(named),
    }
}

/// Fills in the tenant of a spec and checks it, and the pool that it names. A tenant's spec without `tenantId` has the
/// form's default here; HTTP refuses one that wrote it itself, because only it sees the difference.
pub(super) fn settle_spec(who: &Caller, spec: &mut JobSpec) -> Answer<()> {
    let own = bound_to(who)?;
    match own {
        Some(own) if spec.tenant_id.is_empty() || spec.tenant_id == DEFAULT_TENANT => spec.tenant_id = own.to_owned(),
        Some(own) if spec.tenant_id != own => return Err(other_tenant(&spec.tenant_id, own)),
        None if spec.tenant_id.is_empty() => spec.tenant_id = DEFAULT_TENANT.to_owned(),
        Some(_) | None => {}
    }
    if own.is_some() && !who.pools.is_empty() && !who.pools.contains(&spec.executor_selector) {
        let allowed = who.pools.join(", ");
        return Err(forbidden(format!(
            "executorSelector: this credential may name the pools {allowed}, not '{}'",
            spec.executor_selector
        )));
    }
    Ok(())
}

/// A thing that was found by its id: of another tenant = it does not exist.
pub(super) fn owns(who: &Caller, tenant: &str, what: &str, id: &dyn Display) -> Answer<()> {
    match bound_to(who)? {
        Some(own) if own != tenant => Err(absent(what, id)),
        Some(_) | None => Ok(()),
    }
}

/// Says the same for what does not exist and for what must not be seen.
pub(super) fn absent(what: &str, id: &dyn Display) -> ApiError {
    ApiError::new(ErrorCode::NotFound, format!("there is no {what} {id}"))
}

/// Hides how the scheduler words a missing thing, so that nobody can tell it from a hidden one.
pub(super) fn same_absence(error: ApiError, what: &str, id: &dyn Display) -> ApiError {
    if error.known() == ErrorCode::NotFound { absent(what, id) } else { error }
}

pub(super) fn check_tenant_name(name: &str) -> Answer<()> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || name.len() > TENANT_CHARS || !name.chars().all(fits) {
        return Err(invalid(format!(
            "tenantId: '{}' is not a tenant's name (1 to {TENANT_CHARS} letters, digits, '.', '_', '-')",
            name.escape_debug()
        )));
    }
    Ok(())
}

fn forbidden(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::Forbidden, message)
}

fn other_tenant(named: &str, own: &str) -> ApiError {
    forbidden(format!("tenantId: this credential is for tenant '{own}', not '{}'", named.escape_debug()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use campanile_schema::job::Trigger;

    fn who(role: Role, tenant: Option<&str>, pools: &[&str]) -> Caller {
        let pools = pools.iter().map(|p| (*p).to_owned()).collect();
        Caller { name: "x".into(), role, tenant: tenant.map(str::to_owned), pools }
    }
    fn code<T>(answer: Answer<T>) -> Option<ErrorCode> {
        answer.err().map(|error| error.known())
    }

    #[test]
    fn each_role_reaches_what_it_may() {
        let (operator_, tenant, executor) =
            (who(Role::Operator, None, &[]), who(Role::Tenant, Some("fin"), &[]), who(Role::Executor, None, &["a"]));
        let forbidden = Some(ErrorCode::Forbidden);
        assert_eq!([code(caller(&operator_)), code(caller(&tenant)), code(caller(&executor))], [None, None, forbidden]);
        assert_eq!(
            [code(operator(&operator_)), code(operator(&tenant)), code(operator(&executor))],
            [None, forbidden, forbidden]
        );
        assert_eq!(scope(&operator_, None).unwrap(), None);
        assert_eq!(scope(&operator_, Some("fin".into())).unwrap().as_deref(), Some("fin"));
        assert_eq!(scope(&tenant, None).unwrap().as_deref(), Some("fin"));
        assert_eq!(scope(&tenant, Some("fin".into())).unwrap().as_deref(), Some("fin"));
        assert_eq!(code(scope(&tenant, Some("ops".into()))), forbidden);
        assert_eq!(code(scope(&operator_, Some("a b".into()))), Some(ErrorCode::InvalidArgument));
        assert_eq!(code(scope(&who(Role::Tenant, None, &[]), None)), forbidden);
        assert_eq!(code(owns(&tenant, "fin", "job", &1)), None);
        assert_eq!(code(owns(&tenant, "ops", "job", &1)), Some(ErrorCode::NotFound));
        assert_eq!(code(owns(&operator_, "ops", "job", &1)), None);
        assert_eq!(code(owns(&executor, "ops", "job", &1)), forbidden);
    }

    #[test]
    fn a_specs_tenant_and_pool_come_from_the_credential() {
        let spec = |tenant: &str, pool: &str| {
            let mut spec = JobSpec::new(tenant, "a", Trigger::Manual {});
            spec.executor_selector = pool.to_owned();
            spec
        };
        let settle = |who: &Caller, mut spec: JobSpec| settle_spec(who, &mut spec).map(|()| spec.tenant_id);
        let tenant = who(Role::Tenant, Some("fin"), &["blue"]);
        let operator = who(Role::Operator, None, &[]);
        assert_eq!(settle(&tenant, spec("default", "blue")).unwrap(), "fin");
        assert_eq!(settle(&tenant, spec("", "blue")).unwrap(), "fin");
        assert_eq!(settle(&tenant, spec("fin", "blue")).unwrap(), "fin");
        assert_eq!(code(settle(&tenant, spec("ops", "blue"))), Some(ErrorCode::Forbidden));
        assert_eq!(code(settle(&tenant, spec("fin", "red"))), Some(ErrorCode::Forbidden));
        assert_eq!(settle(&operator, spec("ops", "red")).unwrap(), "ops");
        assert_eq!(settle(&operator, spec("", "red")).unwrap(), "default");
    }
}
