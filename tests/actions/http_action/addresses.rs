//! Requests go to public addresses and to what the executor was told to allow, whatever names and redirects say.
use super::{
    LOOPBACK,
    program::eventually,
    target::{ReceivedRequest, Target, can_be_reached, ok, redirect},
    world::World,
};
use campanile_actions::{
    executor,
    http_action::{Addresses, Allowed, Outbound, Resolve},
};
use serde_json::json;
use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

#[test]
fn addresses_that_are_not_public_are_refused() {
    let target = Target::start(|_| ok("inside"));
    let world = World::start(&[]);
    let port = target.address.port();
    for host in
        ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]"]
    {
        let (state, code, why) = world.outcome(json!({"url": format!("http://{host}:{port}/")}));
        assert_eq!((state.as_str(), code.as_str()), ("FAILED", "HTTP_ADDRESS_REFUSED"), "{host}: {why}");
        assert!(why.contains("--http-allow"), "{host}: {why}");
    }
    for url in
        ["http://169.254.169.254/latest/meta-data/", "http://10.0.0.1/", "http://[fd00:ec2::254]/", "http://[fe80::1]/"]
    {
        assert_eq!(world.outcome(json!({"url": url})).1, "HTTP_ADDRESS_REFUSED", "{url}");
    }
    assert_eq!(target.connections(), 0);
    assert!(can_be_reached(&target));
}

#[test]
fn the_proxies_of_the_environment_are_not_asked() {
    let (target, proxy) = (Target::start(|_| ok("direct")), Target::start(|_| ok("by proxy")));
    let world = World::alone();
    let url = proxy.url("");
    let environment = [("HTTP_PROXY", url.as_str()), ("http_proxy", &url), ("ALL_PROXY", &url), ("https_proxy", &url)];
    let executor = world.executor(&LOOPBACK, &environment);
    let world = world.with(executor);
    let id = world.fire(json!({"url": target.url("/")}), json!({}));
    assert_eq!(world.ended(id)["state"], "SUCCESS");
    assert!(world.log(id).contains("direct"));
    assert_eq!(proxy.connections(), 0);
}

#[test]
fn redirects_are_followed_as_far_as_the_action_says_and_judged_anew() {
    let inside = Target::at("127.0.0.2:0", None, |_| ok("inside"));
    let to_inside = inside.url("/secret");
    let target = Target::start(move |heard: &ReceivedRequest| match heard.path.as_str() {
        "/inside" => redirect(&to_inside),
        "/round" => redirect("/round"),
        "/there" => redirect("/here?x=1"),
        _ => ok("arrived"),
    });
    let world = World::start(&LOOPBACK);
    let go = |path: &str, redirects: u8| {
        let action = json!({"url": target.url(path), "maxRedirects": redirects, "headers": {"Authorization": "Bearer x"}, "body": {"n": 1}});
        world.outcome(action)
    };
    let (_, code, why) = go("/there", 0);
    assert_eq!(code, "HTTP_REDIRECTED");
    assert!(why.contains("leads to /here?x=1, and maxRedirects"), "{why}");
    assert_eq!(go("/there", 1).0, "SUCCESS");
    let last = target.heard().pop().unwrap();
    assert_eq!((last.method.as_str(), last.path.as_str(), last.body.as_str()), ("POST", "/here?x=1", "{\"n\":1}"));
    assert_eq!(last.headers["authorization"], "Bearer x");
    let before = target.heard().len();
    assert_eq!(go("/round", 3).1, "HTTP_REDIRECTED");
    assert_eq!(target.heard().len() - before, 4);
    assert_eq!(go("/inside", 3).1, "HTTP_ADDRESS_REFUSED");
    assert_eq!(inside.connections(), 0);
    // Once it is allowed the same goes through, without what was meant for the first server.
    let wider = World::start(&["--http-allow", "127.0.0.1,127.0.0.2"]);
    let action = json!({"url": target.url("/inside"), "maxRedirects": 3, "headers": {"Authorization": "Bearer x"}, "body": {"n": 1}});
    assert_eq!(wider.outcome(action).0, "SUCCESS");
    let heard = inside.heard().pop().unwrap();
    assert_eq!((heard.headers.get("authorization"), heard.headers.get("x-campanile-token")), (None, None));
    assert_eq!((heard.body.as_str(), heard.headers["content-type"].as_str()), ("{\"n\":1}", "application/json"));
}

#[test]
fn hosts_can_be_allowed_by_name() {
    let target = Target::at("127.0.0.1:0", None, |_| ok("by name"));
    let world = World::start(&["--http-allow", "localhost"]);
    let port = target.address.port();
    assert_eq!(world.outcome(json!({"url": format!("http://LocalHost:{port}/")})).0, "SUCCESS");
    assert_eq!(world.outcome(json!({"url": target.url("/")})).1, "HTTP_ADDRESS_REFUSED");
}

/// A name of the attacker: the first look shows an address that may be called, all others one that may not.
struct Rebinding {
    looks: Arc<AtomicUsize>,
}

impl Resolve for Rebinding {
    fn resolve<'a>(&'a self, host: &'a str) -> Addresses<'a> {
        assert_eq!(host, "rebind.test");
        let address: IpAddr = match self.looks.fetch_add(1, Ordering::SeqCst) {
            0 => "127.0.0.2".parse().unwrap(),
            _ => "127.0.0.1".parse().unwrap(),
        };
        Box::pin(async move { Ok(vec![address]) })
    }
}

#[test]
fn a_name_that_changes_between_look_and_call_changes_nothing() {
    let inside = Target::start(|_| ok("inside"));
    let port = inside.address.port();
    let outside = Target::at(&format!("127.0.0.2:{port}"), None, |heard: &ReceivedRequest| match heard.path.as_str() {
        "/again" => redirect("/inside"),
        _ => ok("outside"),
    });
    let looks = Arc::new(AtomicUsize::new(0));
    let outbound = Outbound::new(Allowed::parse(&["127.0.0.2"]).unwrap());
    let outbound = outbound.resolver(Arc::new(Rebinding { looks: looks.clone() }));
    let world = World::alone();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let building = executor::builder(&world.dev.rpc, &world.dev.token, "default", 4, outbound);
    let _executor = runtime.block_on(async { building.build().unwrap().start() });
    // One look for one call: what was judged is what is connected to.
    let url = |path: &str| json!({"url": format!("http://rebind.test:{port}{path}"), "maxRedirects": 1});
    assert_eq!(world.outcome(url("/")).0, "SUCCESS");
    assert_eq!((looks.load(Ordering::SeqCst), outside.heard().len(), inside.connections()), (1, 1, 0));
    assert_eq!(outside.heard()[0].headers["host"], format!("rebind.test:{port}"));
    assert_eq!(world.outcome(url("/")).1, "HTTP_ADDRESS_REFUSED");
    // A redirect is a new look.
    looks.store(0, Ordering::SeqCst);
    assert_eq!(world.outcome(url("/again")).1, "HTTP_ADDRESS_REFUSED");
    assert_eq!((looks.load(Ordering::SeqCst), inside.connections()), (2, 0));
    eventually("the inside was there all the time", || can_be_reached(&inside).then_some(()));
}
