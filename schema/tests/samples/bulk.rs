//! Bulk operations, what happens to them, and what nodes tell each other of them.

use super::{AT, JOB, RUN, Sample, audit, sample};
use campanile_schema::{
    event::Event,
    ids::BulkId,
    peer::bulk::{BulkAnswer, BulkCall, BulkLook, BulkLooked, BulkWork, BulkWorked},
    stored::bulk::{
        BulkAction, BulkChange, BulkCounts, BulkFailure, BulkItem, BulkMark, BulkPage, BulkPlace, BulkState,
        StoredBulk, StoredBulkFilter,
    },
};

pub const ID: BulkId = BulkId(24_576);

pub fn filter() -> StoredBulkFilter {
    StoredBulkFilter {
        status: Some(1),
        labels: Some("team=pay".to_owned()),
        text: Some("bill".to_owned()),
        states: vec![7, 8],
        job: Some(JOB),
        source: Some(1),
        from_ms: Some(AT - 9),
        to_ms: Some(AT),
        cause: Some("c0ffee".to_owned()),
    }
}

pub fn counts() -> BulkCounts {
    let failure = BulkFailure { id: JOB.0, code: "423_JOB_PAUSED".into(), message: "the job is paused".into() };
    BulkCounts { done: 60, unchanged: 3, failed: 1, compensated: 2, failures: vec![failure] }
}

pub fn places() -> Vec<(&'static str, BulkPlace)> {
    vec![
        ("", BulkPlace::Shard { shard: 7, after: RUN.0, created_ms: Some(AT) }),
        ("at the beginning", BulkPlace::Shard { shard: 7, after: 0, created_ms: None }),
        ("", BulkPlace::Page { token: "e.01ff".to_owned() }),
    ]
}

pub fn page() -> BulkPage {
    let items = vec![BulkItem { id: JOB.0, generation: 0 }, BulkItem { id: RUN.0, generation: 2 }];
    BulkPage { items, next: Some(places().remove(0).1) }
}

/// One of the shortest kind, and one with every field.
pub fn stored() -> Vec<(&'static str, StoredBulk)> {
    let short = StoredBulk { id: ID, by: audit::paused().origin, created_ms: AT, ..StoredBulk::default() };
    let full = StoredBulk {
        action: BulkAction::Delete,
        tenant: Some("finance".into()),
        filter: filter(),
        reason: Some("not needed any more".into()),
        state: BulkState::Aborted,
        matched: 120,
        matched_more: true,
        place: Some(places().remove(1).1),
        pages: 2,
        page: Some(page()),
        anew: true,
        counts: counts(),
        grace_ms: Some(60_000),
        delete_at_ms: Some(AT + 60_000),
        deleting: true,
        undo_of: Some(BulkId(20_480)),
        undone_by: Some(BulkId(28_672)),
        state_reason: Some("too many".into()),
        ended_ms: Some(AT + 90_000),
        ..short.clone()
    };
    vec![("short", short), ("every field", full)]
}

/// Each change, optional fields set and left out.
pub fn changes() -> Vec<(&'static str, BulkChange)> {
    let (_, bulk) = stored().remove(0);
    vec![
        ("", BulkChange::Created { bulk: Box::new(bulk) }),
        ("", BulkChange::Begun { id: ID, page: page() }),
        ("the last page", BulkChange::Begun { id: ID, page: BulkPage { items: Vec::new(), next: None } }),
        ("", BulkChange::Done { id: ID, counts: counts(), at_ms: AT }),
        ("nothing", BulkChange::Done { id: ID, counts: BulkCounts::default(), at_ms: AT }),
        ("", BulkChange::Aborted { id: ID, reason: Some("too many".into()), at_ms: AT }),
        ("short", BulkChange::Aborted { id: ID, reason: None, at_ms: AT }),
        ("", BulkChange::Deleting { id: ID }),
        ("", BulkChange::Undone { id: ID, by: BulkId(28_672), at_ms: AT }),
        ("", BulkChange::Forgotten { id: ID }),
    ]
}

pub fn marks() -> Vec<(&'static str, BulkMark)> {
    let mark = BulkMark { bulk: ID, kept: false, undid: None };
    vec![
        ("paused by it", mark),
        ("paused before", BulkMark { kept: true, ..mark }),
        ("taken back", BulkMark { undid: Some(BulkId(ID.0 + 4096)), ..mark }),
    ]
}

pub fn looks() -> Vec<(&'static str, BulkLook)> {
    let short = BulkLook { created_ms: AT, after: 0, limit: 64, ..BulkLook::default() };
    let full =
        BulkLook { tenant: Some("finance".into()), filter: filter(), marked: Some(ID), after: JOB.0, ..short.clone() };
    vec![("short", short), ("every field", full)]
}

pub fn looked() -> Vec<(&'static str, BulkLooked)> {
    let items = page().items;
    vec![
        ("there are more", BulkLooked { items, next: Some(JOB.0) }),
        ("the end", BulkLooked { items: Vec::new(), next: None }),
    ]
}

pub fn works() -> Vec<(&'static str, BulkWork)> {
    let short = BulkWork {
        bulk: ID,
        action: BulkAction::Pause,
        graced: false,
        undo_of: None,
        again: false,
        items: page().items,
        by: audit::paused().origin,
        reason: None,
    };
    let full = BulkWork {
        action: BulkAction::Delete,
        graced: true,
        undo_of: Some(BulkId(20_480)),
        again: true,
        reason: Some("not needed any more".into()),
        ..short.clone()
    };
    vec![("short", short), ("every field", full)]
}

pub fn worked() -> Vec<(&'static str, BulkWorked)> {
    let full = BulkWorked { counts: counts(), left: vec![page().items.remove(1)] };
    vec![("nothing", BulkWorked::default()), ("every field", full)]
}

/// Each call, optional fields set and left out.
pub fn calls() -> Vec<(&'static str, BulkCall)> {
    let reason = || Some("too many".into());
    let (_, asked) = stored().remove(0);
    let (_, look) = looks().remove(0);
    let (_, work) = works().remove(0);
    let by = audit::paused().origin;
    vec![
        ("", BulkCall::Create(Box::new(asked))),
        ("", BulkCall::Get(ID)),
        ("", BulkCall::List { tenant: Some("finance".into()) }),
        ("of all", BulkCall::List { tenant: None }),
        ("", BulkCall::Abort { id: ID, reason: reason() }),
        ("short", BulkCall::Abort { id: ID, reason: None }),
        ("", BulkCall::Undo { id: ID, by: by.clone(), reason: reason() }),
        ("short", BulkCall::Undo { id: ID, by, reason: None }),
        ("", BulkCall::Begin { id: ID, pages: 2, page: page() }),
        ("", BulkCall::Report { id: ID, pages: 2, counts: counts() }),
        ("", BulkCall::Proceed { id: ID }),
        ("", BulkCall::Look(Box::new(look))),
        ("", BulkCall::Work(Box::new(work))),
    ]
}

pub fn answers() -> Vec<(&'static str, BulkAnswer)> {
    let (_, bulk) = stored().remove(0);
    vec![
        ("", BulkAnswer::State(Box::new(bulk.clone()))),
        ("", BulkAnswer::List(vec![bulk])),
        ("", BulkAnswer::Looked(looked().remove(0).1)),
        ("", BulkAnswer::Worked(worked().remove(0).1)),
    ]
}

/// A bulk operation went on.
pub fn event() -> Event {
    Event::BulkChanged { change: BulkChange::Deleting { id: ID } }
}

/// Jobs that bulk operations paused and resumed.
pub fn samples() -> Vec<Sample> {
    let mark = Some(BulkMark { bulk: ID, kept: false, undid: None });
    let paused = Event::JobPaused { job: JOB, at_ms: AT, reason: None, bulk: mark };
    let resumed = Event::JobResumed { job: JOB, at_ms: AT, bulk: mark };
    vec![
        sample("event", "BulkChanged", &event()),
        sample("event", "JobPaused, by a bulk operation", &paused),
        sample("event", "JobResumed, by a bulk operation", &resumed),
    ]
}
