//! `child_jobid`: tasks that run after another one succeeded, as a DAG.

use super::task::Task;
use crate::{
    draft::{Draft, Drafts},
    text,
};
use campanile_schema::{
    graph::{EdgeSpec, GraphSpec, NodeSpec, state::NodeRule},
    job::{Action, JobSpec, Trigger},
    limits::GRAPH_NODES,
};
use std::collections::{BTreeMap, BTreeSet};

/// The job of a task, and if it has children its DAG. `is_child`: another task runs it too.
pub fn add(id: i64, tasks: &BTreeMap<i64, Task>, is_child: bool, drafts: &mut Drafts) {
    let task = &tasks[&id];
    let mut job = Draft {
        spec: task.spec.clone(),
        suspend: None,
        place: task.place.clone(),
        origin: task.origin(),
        changed: task.changed.clone(),
    };
    if task.children.is_empty() {
        job.suspend = suspended(task);
        if is_child && job.suspend.is_some() {
            // Paused it would hold up the DAG: its node would wait until somebody resumes the job.
            let told = "it is stopped, and XXL-JOB runs it only after other tasks: its own schedule is left out";
            job.changed.push(told.to_owned());
            job.suspend = None;
        } else {
            job.spec.trigger = task.trigger.clone();
        }
        drafts.add(job);
        return;
    }
    let dag = format!("{}/dag", task.spec.name);
    job.changed.push(format!(
        "it has children: the DAG {dag} has its schedule and runs them after it; triggered manually, the job runs alone"
    ));
    drafts.add(job);
    let (found, mut changed) = reached(id, tasks);
    match circle(id, tasks) {
        None if found.len() <= GRAPH_NODES => {
            let spec = spec(task, &dag, &found, tasks, &mut changed);
            let origin = format!("children of {}", task.origin());
            drafts.add(Draft { spec, suspend: suspended(task), place: task.place.clone(), origin, changed });
        }
        None => {
            let reason = format!("{} tasks follow from it, and a DAG has at most {GRAPH_NODES}", found.len());
            drafts.refuse(&task.place, &format!("children of {}", task.origin()), reason, "split it");
        }
        Some(circle) => {
            let shown: Vec<String> = circle.iter().take(10).map(ToString::to_string).collect();
            let reason = format!(
                "its children run in a circle ({}), which a DAG cannot; its schedule is not imported",
                shown.join(" -> ")
            );
            let advice = "take one of them out of child_jobid there, or schedule the job here";
            drafts.refuse(&task.place, &format!("children of {}", task.origin()), reason, advice);
        }
    }
}

/// A task that runs by hand only is never due.
fn suspended(task: &Task) -> Option<bool> {
    (task.is_stopped && !matches!(task.trigger, Trigger::Manual {})).then_some(true)
}

/// The task and all that follow from it, and what is said of children that are not there.
fn reached(root: i64, tasks: &BTreeMap<i64, Task>) -> (BTreeSet<i64>, Vec<String>) {
    let (mut found, mut missing, mut open) = (BTreeSet::from([root]), BTreeSet::new(), vec![root]);
    while let Some(id) = open.pop() {
        for child in &tasks[&id].children {
            if !tasks.contains_key(child) {
                missing.insert(*child);
            } else if found.insert(*child) {
                open.push(*child);
            }
        }
    }
    let told = |id| format!("the child {id} is left out: it is not in the dump, or it was refused");
    (found, missing.into_iter().take(20).map(told).collect())
}

/// A way from a task back to itself or to one before, if there is one. It goes down without calling itself: a dump may have long chains.
fn circle(root: i64, tasks: &BTreeMap<i64, Task>) -> Option<Vec<i64>> {
    let (mut done, mut way) = (BTreeSet::new(), vec![(root, 0)]);
    let mut on_way = BTreeSet::from([root]);
    while let Some((id, next)) = way.last_mut() {
        let id = *id;
        let children = tasks.get(&id).map(|task| task.children.as_slice()).unwrap_or_default();
        let Some(child) = children.get(*next).copied() else {
            way.pop();
            on_way.remove(&id);
            done.insert(id);
            continue;
        };
        *next += 1;
        if on_way.contains(&child) {
            let from = way.iter().position(|(id, _)| *id == child).unwrap_or(0);
            return Some(way[from..].iter().map(|(id, _)| *id).chain([child]).collect());
        }
        if tasks.contains_key(&child) && !done.contains(&child) {
            on_way.insert(child);
            way.push((child, 0));
        }
    }
    None
}

fn spec(
    task: &Task,
    name: &str,
    found: &BTreeSet<i64>,
    tasks: &BTreeMap<i64, Task>,
    changed: &mut Vec<String>,
) -> JobSpec {
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    let mut parents: BTreeMap<i64, usize> = BTreeMap::new();
    for id in found {
        for child in tasks[id].children.iter().filter(|child| found.contains(child)) {
            edges.push(EdgeSpec::new(&id.to_string(), &child.to_string()));
            *parents.entry(*child).or_default() += 1;
        }
    }
    let mut several = Vec::new();
    for id in found {
        let mut node = NodeSpec::new(&id.to_string(), &tasks[id].spec.name);
        if parents.get(id).is_some_and(|count| *count > 1) {
            node.rule = NodeRule::AnySuccess;
            several.push(id.to_string());
        }
        nodes.push(node);
    }
    if !several.is_empty() {
        changed.push(text::sentence(&format!(
            "XXL-JOB runs {} again after each of the tasks before it; here it runs once, after the first that succeeds",
            several.join(", ")
        )));
    }
    let mut spec = JobSpec::new(&task.spec.tenant_id, name, task.trigger.clone());
    spec.action = Some(Action::Dag(GraphSpec::new(nodes, edges)));
    spec.concurrency_policy = task.spec.concurrency_policy;
    spec.dead_letter = false;
    spec.labels.clone_from(&task.spec.labels);
    spec.display_name.clone_from(&task.spec.display_name);
    spec.owner.clone_from(&task.spec.owner);
    spec
}
