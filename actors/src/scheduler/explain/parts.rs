//! What the reasons of runs and those of jobs share.

use campanile_schema::{
    view::{
        RunView,
        explain::{HolderKind, HolderView, ReasonView},
    },
    wait::WaitCode,
};

/// Pauses of many that cover the job of an explanation.
#[derive(Clone, Debug, Default)]
pub(super) struct Pauses {
    pub tenant: bool,
    pub system: bool,
    /// Who paused the tenant. Not of the system: that is about no tenant, and only operators may read it.
    pub by: Option<HolderView>,
}

/// A pause of the tenant, of the whole system, or of both.
pub(super) fn pause(pauses: &Pauses, tenant: &str) -> ReasonView {
    let (what, how) = match (pauses.tenant, pauses.system) {
        (true, true) => (
            format!("the tenant '{tenant}' and the whole system are paused"),
            format!("campanile tenant resume {tenant}, and campanile system resume"),
        ),
        (false, true) => ("the whole system is paused".to_owned(), "campanile system resume".to_owned()),
        // It may have ended since the run said so.
        (true | false, false) => {
            (format!("the tenant '{tenant}' is paused"), format!("campanile tenant resume {tenant}"))
        }
    };
    ReasonView::wait(WaitCode::TenantPaused, what).held_by(pauses.by.clone()).freed_by(how)
}

/// A run that holds what another one waits for.
pub(super) fn holder(run: &RunView) -> HolderView {
    HolderView {
        id: Some(run.run_id.to_string()),
        state: Some(run.label().to_owned()),
        since: run.started_at,
        ..HolderView::new(HolderKind::Run)
    }
}

/// A span of time for people.
pub(super) fn span(ms: i64) -> String {
    let ms = ms.max(0);
    let (seconds, minutes, hours) = (ms / 1_000, ms / 60_000, ms / 3_600_000);
    match ms {
        0..10_000 => format!("{}.{} s", seconds, ms % 1_000 / 100),
        10_000..120_000 => format!("{seconds} s"),
        120_000..7_200_000 => format!("{minutes} min"),
        7_200_000..172_800_000 => format!("{hours} h"),
        _ => format!("{} days", hours / 24),
    }
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn spans_are_told_in_the_unit_that_people_would_use() {
        let told = [-1, 0, 1_250, 9_999, 10_000, 119_999, 120_000, 7_200_000, 172_800_000].map(span);
        assert_eq!(told, ["0.0 s", "0.0 s", "1.2 s", "9.9 s", "10 s", "119 s", "2 min", "2 h", "2 days"]);
    }
}
