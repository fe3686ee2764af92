//! Calendars of tenants: named sets of days that jobs are due on, or not.

use super::{Answer, Operations, invalid};
use campanile_schema::{
    limits::CALENDAR_PREVIEW_DAYS,
    operations::{CalendarDelete, CalendarGet, CalendarList, CalendarPreview, CalendarSet, Handle},
    rpc::calls::{CalendarCall, Listed, NoBody, TenantCall},
    view::{
        ReasonBody,
        calendars::{CalendarBody, CalendarPreviewBody, CalendarPreviewView, CalendarView},
    },
};
use campanile_security::auth::Caller;

/// The two names and the body of a call.
fn parts<B>(request: CalendarCall<B>) -> Answer<(String, String, B)> {
    let (tenant, call) = request.parts()?;
    let (calendar, body) = call.parts()?;
    Ok((tenant, calendar, body))
}

impl Handle<CalendarList> for Operations {
    async fn handle(&self, _: &Caller, request: TenantCall<NoBody>) -> Answer<Listed<CalendarView>> {
        let (tenant, NoBody {}) = request.parts()?;
        Ok(Listed { items: self.scheduler.calendars(&tenant).await? })
    }
}

impl Handle<CalendarGet> for Operations {
    async fn handle(&self, _: &Caller, request: CalendarCall<NoBody>) -> Answer<CalendarView> {
        let (tenant, calendar, NoBody {}) = parts(request)?;
        self.scheduler.calendar(&tenant, &calendar).await
    }
}

impl Handle<CalendarSet> for Operations {
    async fn handle(&self, _: &Caller, request: CalendarCall<CalendarBody>) -> Answer<CalendarView> {
        let (tenant, calendar, body) = parts(request)?;
        self.scheduler.set_calendar(&tenant, &calendar, body).await
    }
}

impl Handle<CalendarDelete> for Operations {
    async fn handle(&self, _: &Caller, request: CalendarCall<ReasonBody>) -> Answer<NoBody> {
        let (tenant, calendar, _) = parts(request)?;
        self.scheduler.delete_calendar(&tenant, &calendar).await.map(|()| NoBody {})
    }
}

impl Handle<CalendarPreview> for Operations {
    fn check(request: &CalendarCall<CalendarPreviewBody>) -> Answer<()> {
        if request.body.body.days.is_some_and(|days| !(1..=CALENDAR_PREVIEW_DAYS).contains(&days)) {
            return Err(invalid(format!("days: must be 1 to {CALENDAR_PREVIEW_DAYS}")));
        }
        Ok(())
    }

    async fn handle(&self, _: &Caller, request: CalendarCall<CalendarPreviewBody>) -> Answer<CalendarPreviewView> {
        let (tenant, calendar, body) = parts(request)?;
        self.scheduler.preview_calendar(&tenant, &calendar, body).await
    }
}
