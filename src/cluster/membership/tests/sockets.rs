//! The same code over UDP on loopback.

use super::{
    super::{Me, Members, Membership, Options},
    world::{KEY, Start},
};
use crate::node_id;
use campanile_ports::clock::SystemClock;
use campanile_schema::ids::SessionId;
use campanile_security::secrets::KeyRing;
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;

fn options(seeds: Vec<String>) -> Options {
    Options {
        cluster: "test".to_owned(),
        keys: KeyRing::parse(KEY).unwrap(),
        listen: ([127, 0, 0, 1], 0).into(),
        advertised: None,
        seeds,
        clock: Arc::new(SystemClock),
        agreed: Default::default(),
    }
}

fn me(name: &str) -> Me {
    Start::named(name, ([127, 0, 0, 1], 1).into()).me
}

async fn until(mut members: watch::Receiver<Arc<Members>>, what: &str, is_so: impl FnMut(&Arc<Members>) -> bool) {
    let seen = tokio::time::timeout(Duration::from_secs(60), members.wait_for(is_so)).await;
    assert!(seen.is_ok_and(|seen| seen.is_ok()), "not in time: {what}");
}

#[tokio::test]
async fn five_members_find_each_other_and_see_who_goes() {
    let first = Membership::start(options(Vec::new()), me("n0")).unwrap();
    let seeds = vec![first.address().to_string()];
    let mut all = vec![first];
    for at in 1..5 {
        all.push(Membership::start(options(seeds.clone()), me(&format!("n{at}"))).unwrap());
    }
    for membership in &all {
        until(membership.members(), "five", |members| members.all.len() == 5).await;
    }
    all[1].set_session(SessionId(9));
    all[1].set_draining(true);
    for membership in &all {
        let told = |members: &Arc<Members>| {
            members.get(node_id("n1")).is_some_and(|member| member.session == SessionId(9) && member.draining)
        };
        until(membership.members(), "the session", told).await;
    }
    // Killed: nothing is said.
    drop(all.pop());
    let killed = std::time::Instant::now();
    for membership in &all {
        until(membership.members(), "four", |members| members.all.len() == 4).await;
    }
    println!("known to all after {:?}", killed.elapsed());
    let left = all.pop().unwrap();
    let leaving = std::time::Instant::now();
    left.leave().await;
    for membership in &all {
        until(membership.members(), "three", |members| members.all.len() == 3).await;
    }
    println!("left after {:?}", leaving.elapsed());
    assert!(all.iter().all(|membership| membership.counters().rejoins == 0));
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let first = Membership::start(options(Vec::new()), me("n0")).unwrap();
    let why = |options| Membership::start(options, me("n1")).err().unwrap();
    let taken = Options { listen: first.address(), ..options(Vec::new()) };
    assert!(why(taken).contains("is another node running"));
    let everywhere = Options { listen: ([0, 0, 0, 0], 0).into(), ..options(Vec::new()) };
    assert!(why(everywhere).contains("set cluster.gossip_advertise"));
    let keyless = Options { keys: KeyRing::default(), ..options(Vec::new()) };
    assert!(why(keyless).contains("key_file"));
    let crowded = options(vec!["127.0.0.1:1".to_owned(); 65]);
    assert!(why(crowded).contains("at most 64"));
}
