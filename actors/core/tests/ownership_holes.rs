//! Histories that are too rare for the random world, told step by step: each breaks the protocol once its rule is left out.

use crate::ownership_model::{
    random::Random,
    store::{REPLICAS, Store},
};
use campanile_core::ownership::{
    Hints, Output, Ownership, Settings, Transition,
    rows::ShardRow,
    session::LeasedSession,
    store::{Batch, Statement, StoreAnswer, Ticket},
    watch::{Watch, WatchVerdict},
};
use campanile_schema::ids::{SessionId, ShardId};

const LEASE_MS: u64 = 1_000;
const KEEP_MS: u64 = 2_000;
const A: usize = 0;
const B: usize = 1;

/// Two sessions and a store that answers at once, unless it is told not to.
struct TestBench {
    store: Store,
    now_ms: u64,
    sessions: Vec<Ownership>,
    took: Vec<(usize, Transition)>,
    /// LWTs on this shard's row time out, and stay on their way.
    late: Option<ShardId>,
    on_their_way: Vec<Statement>,
    timed_out: Vec<Ticket>,
}

impl TestBench {
    fn new() -> Self {
        let settings = |session| Settings {
            session: SessionId(session),
            lease_ms: LEASE_MS,
            beat_ms: 200,
            watch_ms: 200,
            reconcile_ms: 300,
            keep_ended_ms: KEEP_MS,
            window: 3,
            lanes: 1,
            predecessor: None,
        };
        let mut sessions: Vec<_> = [1, 2].map(|session| Ownership::new(settings(session), 0)).into();
        for (watcher, other) in [(A, 2), (B, 1)] {
            let watch = [SessionId(other)].into();
            sessions[watcher].hint(0, Hints { watch, ..Hints::default() });
        }
        let store = Store::new(2, None);
        Self {
            store,
            now_ms: 0,
            sessions,
            took: Vec::new(),
            late: None,
            on_their_way: Vec::new(),
            timed_out: Vec::new(),
        }
    }

    fn may_act(&self, session: usize) -> bool {
        self.sessions[session].may_act(self.now_ms)
    }

    fn ever(&self, session: usize, transition: Transition) -> bool {
        self.took.contains(&(session, transition))
    }

    /// One tick of a session; what it asks is executed and answered at once.
    fn tick(&mut self, session: usize) {
        self.sessions[session].tick(self.now_ms);
        for timed_out in std::mem::take(&mut self.timed_out) {
            self.sessions[session].answered(self.now_ms, timed_out, StoreAnswer::Unknown);
        }
        loop {
            let asked = self.asked(session);
            if asked.is_empty() {
                return;
            }
            for (ticket, statement) in asked {
                match self.execute(session, &statement) {
                    // At the next tick: a timeout takes time.
                    StoreAnswer::Unknown => self.timed_out.push(ticket),
                    answer => self.sessions[session].answered(self.now_ms, ticket, answer),
                }
            }
        }
    }

    /// Lets time pass for one session, tick by tick.
    fn pass(&mut self, session: usize, ms: u64) {
        for _ in 0..ms / 50 {
            self.now_ms += 50;
            self.tick(session);
        }
    }

    fn execute(&mut self, session: usize, statement: &Statement) -> StoreAnswer {
        let id = self.sessions[session].id();
        match statement {
            Statement::Append { lane, seq, batch } => {
                self.store.write(id, *lane, *seq, batch, [0; REPLICAS]);
                StoreAnswer::Done
            }
            Statement::ReadLane { .. } => StoreAnswer::Lane(Vec::new()),
            Statement::PutShard { shard, .. } if self.late == Some(*shard) => {
                self.on_their_way.push(statement.clone());
                StoreAnswer::Unknown
            }
            other => self.store.execute(other),
        }
    }

    /// The statements of a session; what else it puts out is noted.
    fn asked(&mut self, session: usize) -> Vec<(Ticket, Statement)> {
        let mut asked = Vec::new();
        for output in self.sessions[session].outputs() {
            match output {
                Output::Store { ticket, statement } => asked.push((ticket, statement)),
                Output::Took(transition) => self.took.push((session, transition)),
                Output::Load { shard, epoch, .. } => self.sessions[session].loaded(shard, epoch, 0, Vec::new()),
                Output::Acknowledge { .. }
                | Output::Serve { .. }
                | Output::Stop { .. }
                | Output::Released { .. }
                | Output::Lost { .. }
                | Output::RowsRead
                | Output::Over => {}
            }
        }
        asked
    }
}

/// The owner's clock is slow, the watcher's is fast, by a tenth between them; the lease is long, so that the take-over itself hides
/// nothing. True: the owner may still act when it is fenced.
fn clocks_that_differ() -> bool {
    let (lease_ms, slow, fast) = (10_000, 955, 1_045);
    let (mut owner, mut watch) = (LeasedSession::new(SessionId(1), lease_ms, 3, 1), Watch::default());
    let Statement::PutSession { row, .. } = owner.beat(0, vec![0]) else { unreachable!("a heartbeat") };
    owner.answered(&StoreAnswer::Done);
    let mut now_ms = 0;
    while watch.replied(now_ms * fast / 1_000, &row, lease_ms) != WatchVerdict::Silent {
        now_ms += 10;
    }
    owner.may_act(now_ms * slow / 1_000)
}

/// The store stands still for everybody, for longer than every lease. The watcher hears from it first.
/// True: a session that did nothing wrong is fenced.
fn a_stalled_store() -> bool {
    let mut bench = TestBench::new();
    for _ in 0..10 {
        bench.now_ms += 100;
        bench.tick(A);
        bench.tick(B);
    }
    for _ in 0..50 {
        bench.now_ms += 100;
        for session in [A, B] {
            bench.sessions[session].tick(bench.now_ms);
            for (ticket, _) in bench.asked(session) {
                bench.sessions[session].answered(bench.now_ms, ticket, StoreAnswer::Unknown);
            }
        }
    }
    bench.pass(B, 500);
    bench.ever(B, Transition::FenceSent)
}

/// The insert of A is executed and times out; A stops. B sees it silent, ends it, and removes its row in time. A goes on.
/// True: A acts, and B would take all of its shards at once, since it knows that A is over.
fn an_insert_that_nobody_told_of() -> bool {
    let mut bench = TestBench::new();
    bench.tick(B);
    bench.sessions[A].tick(0);
    let is_insert = |(_, statement): &(Ticket, Statement)| matches!(statement, Statement::PutSession { .. });
    let (insert, statement) = bench.asked(A).into_iter().find(is_insert).unwrap();
    assert_eq!(bench.store.execute(&statement), StoreAnswer::Done);
    bench.pass(B, LEASE_MS + KEEP_MS + 1_000);
    assert!(bench.ever(B, Transition::Sealed));
    assert!(bench.ever(B, Transition::SessionDropped));
    bench.sessions[A].answered(bench.now_ms, insert, StoreAnswer::Unknown);
    bench.pass(A, 500);
    bench.may_act(A)
}

/// The insert of A is executed, and on its way a second time; A stops. B sees it silent and ends it; then the second insert
/// comes, and A goes on. True: A acts.
fn a_doubled_insert() -> bool {
    let mut bench = TestBench::new();
    bench.tick(B);
    bench.sessions[A].tick(0);
    let asked = bench.asked(A);
    for (ticket, statement) in &asked {
        let answer = bench.execute(A, statement);
        bench.sessions[A].answered(0, *ticket, answer);
    }
    assert!(bench.may_act(A));
    bench.pass(B, LEASE_MS + 1_000);
    assert!(bench.ever(B, Transition::Sealed));
    for (_, statement) in &asked {
        bench.execute(A, statement);
    }
    bench.pass(A, 500);
    bench.may_act(A)
}

/// A's claim of shard 1 is on its way. Meanwhile A serves shard 0, has a snapshot of it, and deletes what no span names. Then the
/// claim comes, with a span that begins where the lane stood. True: it names a row that is gone.
fn rows_under_a_late_claim() -> bool {
    let mut bench = TestBench::new();
    let (served, late) = (ShardId(0), ShardId(1));
    let wanted = [(served, SessionId(1)), (late, SessionId(1))].into();
    let members = [SessionId(1), SessionId(2)].into();
    bench.late = Some(late);
    bench.sessions[A].hint(bench.now_ms, Hints { members, wanted, ..Hints::default() });
    bench.tick(A);
    bench.pass(A, 500);
    assert!(bench.sessions[A].serves(served));
    assert!(!bench.on_their_way.is_empty());
    for frame in 1..=5 {
        bench.sessions[A].append(bench.now_ms, 0, &[(served, frame)], Batch::from([0].as_slice())).unwrap();
        bench.pass(A, 50);
    }
    bench.sessions[A].projected(served, 5);
    bench.sessions[A].snapshot_written(bench.now_ms, served, 1, 5);
    bench.pass(A, 1_000);
    assert!(bench.ever(A, Transition::SpanTrimmed));
    let claim = bench.on_their_way[0].clone();
    assert_eq!(bench.store.execute(&claim), StoreAnswer::Done);
    let span = bench.store.shards[&late].spans[0].clone();
    let rows = bench.store.read(span.session, span.lane, span.from, span.from, bench.now_ms, &mut Random::new(0));
    span.from <= 5 && rows.is_empty()
}

#[test]
fn no_rows_are_deleted_under_a_claim_that_may_come() {
    assert!(!rows_under_a_late_claim());
}

#[test]
fn a_stalled_store_does_not_make_everybody_fence_everybody() {
    assert!(!a_stalled_store());
}

#[test]
fn a_slow_clock_is_waited_for() {
    assert!(!clocks_that_differ());
}

#[test]
fn a_session_that_others_took_for_over_does_not_begin() {
    assert!(!an_insert_that_nobody_told_of());
}

#[test]
fn a_doubled_insert_revives_nobody() {
    assert!(!a_doubled_insert());
}

/// A shard is handed to a session in vain: the message is lost. The row says so.
#[test]
fn a_hand_over_is_found_in_the_row() {
    let mut bench = TestBench::new();
    let shard = ShardId(0);
    let members = [SessionId(1), SessionId(2)].into();
    let wanted = [(shard, SessionId(1))].into();
    bench.sessions[A].hint(bench.now_ms, Hints { members, wanted, ..Hints::default() });
    bench.tick(B);
    bench.pass(A, 500);
    assert!(bench.sessions[A].serves(shard));
    assert!(bench.may_act(A));
    let members = [SessionId(1), SessionId(2)].into();
    let wanted = [(shard, SessionId(2))].into();
    bench.sessions[A].hint(bench.now_ms, Hints { members, wanted, ..Hints::default() });
    bench.pass(A, 500);
    bench.sessions[A].stopped(bench.now_ms, shard);
    bench.pass(A, 100);
    assert!(bench.ever(A, Transition::Released));
    bench.pass(B, 500);
    assert!(bench.sessions[B].serves(shard));
    assert!(bench.ever(B, Transition::OwnNameClaimed));
}

/// B gets a shard from A, after B has made its hints from rows in which it was A's. B keeps it, however often it reads the rows, until hints
/// that know of it say otherwise.
#[test]
fn hints_from_before_it_came_do_not_send_a_shard_back() {
    let mut bench = TestBench::new();
    let shard = ShardId(0);
    let hints = |owner| Hints {
        members: [SessionId(1), SessionId(2)].into(),
        wanted: [(shard, SessionId(owner))].into(),
        ..Hints::default()
    };
    bench.sessions[A].hint(0, hints(1));
    bench.sessions[B].hint(0, hints(1));
    bench.tick(B);
    bench.pass(A, 500);
    assert!(bench.sessions[A].serves(shard));
    bench.sessions[A].hint(bench.now_ms, hints(2));
    bench.pass(A, 100);
    bench.sessions[A].stopped(bench.now_ms, shard);
    bench.pass(A, 100);
    bench.sessions[B].peer_released(shard);
    bench.tick(B);
    assert!(bench.sessions[B].serves(shard));
    let known = |rows: &[(ShardId, ShardRow)]| rows.iter().find(|(known, _)| *known == shard).unwrap().1.owner;
    assert_eq!(known(bench.sessions[B].rows().0), Some(SessionId(2)), "what hints are made from knows of it at once");
    bench.pass(B, 1_000);
    assert!(bench.sessions[B].serves(shard));
    assert!(!bench.ever(B, Transition::DrainBegan));
    bench.sessions[B].hint(bench.now_ms, hints(1));
    assert!(bench.asked(B).is_empty());
    assert!(bench.ever(B, Transition::DrainBegan));
}

/// A session ended, and only then do hints say who is to have its shard: no further read of the rows is waited for.
#[test]
fn a_shard_without_an_owner_is_claimed_with_the_hint() {
    let mut bench = TestBench::new();
    let shard = ShardId(0);
    let members = [SessionId(1), SessionId(2)].into();
    bench.pass(A, 500);
    assert!(bench.may_act(A));
    assert!(!bench.sessions[A].serves(shard));
    let wanted = [(shard, SessionId(1))].into();
    bench.sessions[A].hint(bench.now_ms, Hints { members, wanted, ..Hints::default() });
    assert!(bench.ever(A, Transition::ClaimSent) || bench.asked(A).len() == 1);
}

/// Claims of what a dead session left are known as such while they are under way, and others are not.
#[test]
fn a_take_over_is_known_while_its_claims_are_under_way() {
    let mut bench = TestBench::new();
    let shard = ShardId(0);
    let hints = |owner| Hints {
        members: [SessionId(owner)].into(),
        watch: [SessionId(2)].into(),
        wanted: [(shard, SessionId(owner))].into(),
        ..Hints::default()
    };
    bench.tick(A);
    bench.late = Some(shard);
    bench.sessions[B].hint(bench.now_ms, hints(2));
    bench.pass(B, 500);
    assert!(!bench.on_their_way.is_empty(), "nobody owned it");
    assert!(!bench.sessions[B].takes_over(), "nobody owned it");
    bench.late = None;
    bench.pass(B, 500);
    assert!(bench.sessions[B].serves(shard));
    bench.late = Some(shard);
    bench.on_their_way.clear();
    bench.sessions[A].hint(bench.now_ms, hints(1));
    bench.pass(A, 3 * LEASE_MS);
    assert!(!bench.on_their_way.is_empty());
    assert!(bench.sessions[A].takes_over());
    bench.late = None;
    bench.pass(A, 500);
    assert!(bench.sessions[A].serves(shard));
    assert!(!bench.sessions[A].takes_over());
}

#[cfg(feature = "faults")]
mod broken {
    use super::*;
    use campanile_core::ownership::rules::{Rule, break_rule};

    fn without(rule: Rule, history: fn() -> bool) -> bool {
        break_rule(Some(rule));
        let harm = history();
        break_rule(None);
        harm
    }

    #[test]
    fn time_of_failed_reads_counts() {
        assert!(without(Rule::FailedReadsDoNotCount, a_stalled_store));
    }

    #[test]
    fn rows_are_deleted_while_a_claim_is_open() {
        assert!(without(Rule::DeleteWhenQuiet, rows_under_a_late_claim));
    }

    #[test]
    fn clocks_are_taken_for_equal() {
        assert!(without(Rule::TenthForClocks, clocks_that_differ));
    }

    #[test]
    fn an_insert_has_no_end() {
        assert!(without(Rule::InsertWithinLease, an_insert_that_nobody_told_of));
    }

    #[test]
    fn rows_of_ended_sessions_go_at_once() {
        assert!(without(Rule::KeepEndedRows, a_doubled_insert));
    }
}
