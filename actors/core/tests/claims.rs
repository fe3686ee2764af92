//! Whose word about an attempt counts: each claim by each kind of executor, also about attempts that an earlier release started.

use crate::support::{
    make::plain,
    ops::Op,
    sim::{Sim, ended},
};
use campanile_core::job::{Claimant, Command, Effect, Job, Reply, claim, decide_next, pending::pending};
use campanile_schema::{
    event::Event,
    ids::{ExecutorSession, RunId, Token},
    record::{AttemptState, RunState},
    stored::StoredTrigger,
};
use std::sync::Arc;

const NOW: i64 = 1_782_000_000_000;

/// A run of pool "default" under way, started for a credential or, as earlier releases did, for none.
fn started(credential: Option<&str>) -> (Sim, RunId, Token) {
    let mut sim = Sim::create(plain(StoredTrigger::Manual {}), NOW, true);
    sim.op(&Op::Trigger { key: Some(0), params: false });
    let run = sim.job.hot.runs[0].id();
    let (session, credential) = (ExecutorSession(1), credential.map(Into::into));
    sim.command(&Command::Start { run, executor: "x".into(), session, credential, credit_stamp_ms: 0 }).unwrap();
    let token = sim.job.run(run).unwrap().token().unwrap();
    (sim, run, token)
}

fn by(session: u64, credential: &str, pools: Option<&[&str]>) -> Arc<Claimant> {
    let pools = pools.map(|pools| pools.iter().map(|pool| (*pool).into()).collect());
    Arc::new(Claimant { session: ExecutorSession(session), credential: credential.into(), pools })
}

fn claimed(by: &Arc<Claimant>, claim: Command) -> Command {
    Command::Claimed { by: by.clone(), claim: Box::new(claim) }
}

#[test]
fn a_claim_counts_for_the_credential_of_the_attempt_only() {
    let (own, later) = (by(1, "blue", Some(&["default"])), by(2, "blue", Some(&["default"])));
    let foreign = [by(1, "red", Some(&["default"])), by(9, "red", None), by(9, "red", Some(&["other"]))];
    for (who, held) in [(&own, true), (&later, true), (&foreign[0], false), (&foreign[1], false), (&foreign[2], false)]
    {
        let (sim, run, token) = started(Some("blue"));
        let job = sim.job.id;
        let claims = [
            Command::Finish(Box::new(ended(job, run, token, AttemptState::Success))),
            Command::Heard { run, token, session: who.session },
        ];
        for claim in claims {
            let (decision, after) = decide_next(&sim.job, &claimed(who, claim.clone()), &sim.context(0)).unwrap();
            assert_eq!(decision.reply != Reply::Stale, held, "{who:?}: {claim:?}");
            if !held {
                assert_eq!((decision.events.len(), decision.effects.len()), (0, 0), "{who:?}: {claim:?}");
                assert_eq!(after.hot, sim.job.hot);
            }
        }
        let holds = |run, token, attempt| claim::holds(&sim.job, run, token, attempt, who);
        let all =
            [holds(run, token, 1), holds(run, token, 2), holds(run, Token(token.0 + 1), 1), holds(RunId(1), token, 1)];
        assert_eq!(all, [held, false, false, false], "{who:?}");
    }
}

/// A result, and what is said of a run that nobody knows, are answered alike.
#[test]
fn a_foreign_claim_does_not_tell_whether_the_run_exists() {
    let (sim, run, token) = started(Some("blue"));
    let foreign = by(9, "red", None);
    let answers = [run, RunId(run.0 + 4096)].map(|run| {
        let end = ended(sim.job.id, run, token, AttemptState::Success);
        decide_next(&sim.job, &claimed(&foreign, Command::Finish(Box::new(end))), &sim.context(0)).unwrap().0
    });
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0].reply, Reply::Stale);
}

#[test]
fn only_words_about_attempts_can_be_claimed() {
    let (sim, run, token) = started(Some("blue"));
    let own = by(1, "blue", None);
    for command in [Command::Delete, Command::Lost { run, token }, Command::Cancel { run, reason: None }] {
        let (decision, _) = decide_next(&sim.job, &claimed(&own, command), &sim.context(0)).unwrap();
        assert_eq!((decision.reply, decision.events.len()), (Reply::Stale, 0));
    }
}

/// The first credential that may serve the pool and announces the attempt keeps it.
#[test]
fn an_attempt_of_an_earlier_release_is_bound_by_its_announcement() {
    let (mut sim, run, token) = started(None);
    let other_pool = by(1, "red", Some(&["other"]));
    let heard = |who: &Arc<Claimant>| claimed(who, Command::Heard { run, token, session: who.session });
    assert_eq!(sim.command(&heard(&other_pool)).unwrap(), Reply::Stale);
    let own = by(1, "blue", Some(&["default"]));
    assert_eq!(sim.command(&heard(&own)).unwrap(), Reply::Done, "it is bound");
    assert_eq!(sim.job.run(run).unwrap().credential.as_deref(), Some("blue"));
    assert_eq!(sim.command(&heard(&own)).unwrap(), Reply::Unchanged);
    let late = by(1, "green", Some(&["default"]));
    assert_eq!(sim.command(&heard(&late)).unwrap(), Reply::Stale);
    // It is stored: a restart knows it too.
    let hot = sim.job.encode_hot();
    let def = campanile_schema::frame::encode(&*sim.job.def);
    let again = Job::decode(sim.job.id, &def, &hot).unwrap();
    assert_eq!(again.hot, sim.job.hot);
    let watch = pending(&again);
    assert!(matches!(&watch[..], [Effect::Watch { credential: Some(c), .. }] if c == "blue"), "{watch:?}");
    let end = ended(sim.job.id, run, token, AttemptState::Success);
    assert_eq!(sim.command(&claimed(&own, Command::Finish(Box::new(end)))).unwrap(), Reply::Done);
    assert_eq!(sim.job.hot.last_state, Some(RunState::Success.code()));
}

#[test]
fn an_attempt_that_moves_to_another_session_is_watched_there() {
    let (sim, run, token) = started(Some("blue"));
    let later = by(2, "blue", None);
    let heard = claimed(&later, Command::Heard { run, token, session: later.session });
    let (decision, _) = decide_next(&sim.job, &heard, &sim.context(0)).unwrap();
    assert!(matches!(&decision.events[..], [Event::AttemptHeard { session: ExecutorSession(2), .. }]));
    let moved = |effect: &Effect| {
        matches!(effect, Effect::Watch { session: ExecutorSession(2), moved_from: Some(ExecutorSession(1)), .. })
    };
    assert!(decision.effects.iter().any(moved), "{:?}", decision.effects);
}
