//! Changes as server-sent events: what is told, where one goes on, and to whom nothing is told.
use super::{
    follow::Events,
    server::{FINANCE, OPERATOR, SHOP, Server},
};
use serde_json::json;

fn job(server: &Server, name: &str, tenant: &str) -> u64 {
    let spec = json!({"name": name, "tenantId": tenant, "trigger": {"type": "MANUAL"}, "labels": {"of": tenant}});
    server.post("/api/v1/jobs", &spec).expect(201)["jobId"].as_u64().unwrap()
}

fn trigger(server: &Server, job: u64) -> u64 {
    server.post(&format!("/api/v1/jobs/{job}/trigger"), &json!({})).expect(200)["runId"].as_u64().unwrap()
}

#[test]
fn runs_and_definitions_are_told_and_a_browser_finds_its_place_again() {
    let server = Server::start();
    let mut jobs = Events::get(&server, "/api/v1/jobs/watch?labels=of=finance", OPERATOR, None);
    let (fin, shop) = (job(&server, "a", "finance"), job(&server, "b", "shop"));
    let created = jobs.next().unwrap();
    assert_eq!((created.name.as_str(), &created.data["jobId"]), ("job", &json!(fin)));
    assert_eq!(created.data["change"], "CREATED");

    let mut own = Events::get(&server, "/api/v1/runs/watch", FINANCE, None);
    let mut all = Events::get(&server, "/api/v1/runs/watch?state=queued", OPERATOR, None);
    let foreign = trigger(&server, shop);
    let run = trigger(&server, fin);
    let told = own.next().unwrap();
    assert_eq!((told.name.as_str(), &told.data["runId"]), ("run", &json!(run)), "nothing of the shop's");
    assert_eq!(all.next().unwrap().data["runId"], json!(foreign));
    let place = all.next().unwrap().id.unwrap();
    drop(all);
    let later = trigger(&server, job(&server, "c", "shop"));
    let mut again = Events::get(&server, "/api/v1/runs/watch?state=queued", OPERATOR, Some(&place));
    assert_eq!(again.next().unwrap().data["runId"], json!(later), "what came while it was away, and nothing twice");
    // Of another start of the node: what may be lost is told.
    let mut other = Events::get(&server, "/api/v1/runs/watch?after=1-1", OPERATOR, None);
    assert_eq!(other.next().unwrap().name, "dropped");

    // One run, to its end.
    let mut one = Events::get(&server, &format!("/api/v1/runs/{run}/watch"), FINANCE, None);
    assert_eq!(one.next().unwrap().data["state"], "QUEUED");
    server.post(&format!("/api/v1/runs/{run}/cancel"), &json!({})).expect(200);
    assert_eq!(one.next().unwrap().data["state"], "CANCELED");
    assert_eq!(one.next().unwrap().name, "end");
    assert!(one.next().is_none(), "the end is the end");
    // For so long only.
    let mut short = Events::get(&server, &format!("/api/v1/jobs/{fin}/watch?waitSec=0"), OPERATOR, None);
    assert!(short.next().is_none());
}

#[test]
fn what_cannot_be_watched_is_refused_with_its_reason() {
    let server = Server::start();
    let shop = job(&server, "b", "shop");
    let run = trigger(&server, shop);
    for (path, token, code, why) in [
        ("/api/v1/runs/4096/watch".to_owned(), OPERATOR, "404_NOT_FOUND", "4096"),
        (format!("/api/v1/runs/{run}/watch"), FINANCE, "404_NOT_FOUND", "there is no run"),
        (format!("/api/v1/jobs/{shop}/watch"), FINANCE, "404_NOT_FOUND", "there is no job"),
        (format!("/api/v1/runs/watch?jobId={shop}"), FINANCE, "404_NOT_FOUND", "there is no job"),
        ("/api/v1/runs/watch?tenantId=shop".to_owned(), FINANCE, "403_FORBIDDEN", "finance"),
        ("/api/v1/runs/watch?labels=%3Dx".to_owned(), SHOP, "400_INVALID_ARGUMENT", "labels"),
        ("/api/v1/runs/watch?after=x".to_owned(), SHOP, "400_INVALID_ARGUMENT", "cursor"),
        ("/api/v1/runs/watch?waitSec=3601".to_owned(), SHOP, "400_INVALID_ARGUMENT", "waitSec"),
        ("/api/v1/runs/watch?jobid=1".to_owned(), SHOP, "400_INVALID_ARGUMENT", "did you mean `jobId`"),
        (format!("/api/v1/runs/watch?runId={run}&state=FAILED"), SHOP, "400_INVALID_ARGUMENT", "all of its states"),
    ] {
        let told = server.call(token, "GET", &path, None).problem(code);
        assert!(told.contains(why), "{path}: {told}");
    }
}

#[test]
fn it_ends_when_the_node_stops() {
    let server = Server::start();
    let mut events = Events::get(&server, "/api/v1/runs/watch", OPERATOR, None);
    drop(server);
    assert!(events.next().is_none());
}
