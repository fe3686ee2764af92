//! Story 6: two executors go away with a run each. One dies, the other stands still. Both runs move to a third executor. The second
//! executor comes back with the result of its body, which is late and refused.

use super::Story;
use crate::program::eventually;
use serde_json::{Value, json};

/// A body that says which attempt it is and waits until that attempt may end. The first attempts fail, so that their results are known.
fn body(story: &Story, name: &str) -> Value {
    let gate = story.path(&format!("{name}-$CAMPANILE_ATTEMPT"));
    let shell = format!(
        "until [ -e {gate} ]; do sleep 0.05; done; echo {name}-$CAMPANILE_ATTEMPT >> {}; exit $((8 - 4 * CAMPANILE_ATTEMPT))",
        story.path("ended")
    );
    story.body(&format!("{name}-$CAMPANILE_ATTEMPT"), &shell)
}

/// State and executor of an attempt, counted from 1.
fn attempt(run: &Value, number: usize) -> (String, String) {
    let attempt = &run["attempts"][number - 1];
    let text = |field: &str| attempt[field].as_str().unwrap_or_default().to_owned();
    (text("state"), text("executorId"))
}

pub fn story_06_executors_die_and_their_runs_move_and_a_late_result_is_refused(story: &Story) {
    let job = |name: &str| {
        let retry = json!({"maxAttempts": 1});
        story.job(name, &json!({"action": body(story, name), "retryPolicy": retry}))
    };
    let started = |name: &str| eventually(&format!("{name} runs"), || (story.began(name) > 0).then_some(()));
    // Each executor has one place, so each gets the run that waits.
    let [dies, stands] = ["dies", "stands"].map(|name| {
        let job = job(name);
        let executor = story.executor(name, 1);
        let run = story.trigger(job);
        started(&format!("{name}-1"));
        (executor, run)
    });
    let [id_of_dead, id_of_frozen, id_of_third] = ["dies", "stands", "third"].map(|id| story.executor_id(id));
    let _third = story.executor("third", 2);
    dies.0.kill();
    stands.0.freeze();

    // Both are lost, which does not count against the one attempt that they have.
    started("dies-2");
    started("stands-2");
    for (run, first) in [(dies.1, &id_of_dead), (stands.1, &id_of_frozen)] {
        let view = story.until(run, "RUNNING");
        assert_eq!(attempt(&view, 1), ("LOST".to_owned(), first.clone()), "{view}");
        assert_eq!(attempt(&view, 2), ("RUNNING".to_owned(), id_of_third.clone()), "{view}");
        let token = |n: usize| view["attempts"][n]["token"].as_u64().unwrap();
        assert!(token(1) > token(0), "{view}");
    }

    // The body of the frozen executor ends, and its executor reports only now what came of it.
    story.happens("stands-1");
    eventually("its body ends", || (story.lines("ended") == ["stands-1"]).then_some(()));
    stands.0.thaw();
    eventually("it has room again", || {
        let executors = story.items("/api/v1/executors");
        let back = executors.iter().find(|executor| executor["executorId"] == id_of_frozen.as_str())?;
        (back["state"] == "READY" && back["running"] == 0 && back["credit"] == 1).then_some(())
    });
    let view = story.run(stands.1);
    assert_eq!(view["state"], "RUNNING", "the late result counted: {view}");
    assert_eq!(attempt(&view, 1), ("LOST".to_owned(), id_of_frozen.clone()), "{view}");

    story.happens("stands-2");
    story.happens("dies-2");
    for run in [dies.1, stands.1] {
        let ended = story.until(run, "SUCCESS");
        assert_eq!(attempt(&ended, 1).0, "LOST", "{ended}");
        assert_eq!(attempt(&ended, 2), ("SUCCESS".to_owned(), id_of_third.clone()), "{ended}");
        assert_eq!((&ended["attemptCount"], &ended["deadLetter"]), (&json!(2), &json!(false)), "{ended}");
    }
    let mut bodies = story.lines("began");
    bodies.sort();
    assert_eq!(bodies, ["dies-1", "dies-2", "stands-1", "stands-2"]);
}
