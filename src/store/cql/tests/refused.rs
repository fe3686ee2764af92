//! Making the schema, and who is refused by it: with sentences that tell an operator what to do.

use super::{CqlOptions, CqlStore, on_runtime, schema, shared};
use crate::cql::connection;
use campanile_ports::StoreError;
use std::time::Duration;

/// A server needs its time for tables.
const PATIENCE: Duration = Duration::from_secs(30);

fn told(options: CqlOptions) -> String {
    match on_runtime(async move { CqlStore::connect(&options).await.map(|_| ()) }) {
        Err(StoreError::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// The options of the shared cluster, changed.
fn with(change: impl FnOnce(&mut CqlOptions)) -> CqlOptions {
    let mut options = shared().options.clone();
    change(&mut options);
    options
}

#[test]
#[ignore = "needs a CQL server: make test-cql"]
fn a_node_that_is_configured_for_another_cluster_is_refused() {
    let cases = [
        (with(|o| o.cluster = "other".to_owned()), "whose name is tests; this node is configured for other"),
        (with(|o| o.shards = 64), "whose number of shards ([node] shards) is 256; this node is configured for 64"),
        (with(|o| o.data_center = "east".to_owned()), "data_center is 'east', but the servers are in datacenter1"),
        (with(|o| o.keyspace = "nowhere".to_owned()), "no keyspace nowhere of ours: run `campanile schema apply`"),
        (with(|o| o.keyspace = "a; b".to_owned()), "keyspace 'a; b' is not a name"),
        (with(|o| o.retention_days = 9_999), "keeps rows with a TTL at most 3650 days"),
        (with(|o| o.contact_points.clear()), "name at least one server"),
        (with(|o| o.user = "me".to_owned()), "password_file : "),
    ];
    for (options, why) in cases {
        let told = told(options);
        assert!(told.contains(why), "told: {told}\n not: {why}");
    }
    let mut nobody = shared().options.clone();
    nobody.contact_points = vec!["127.0.0.1:9".to_owned()];
    let unreached = on_runtime(async move { CqlStore::connect(&nobody).await.map(|_| ()) });
    let Err(StoreError::Unavailable(why)) = unreached else { panic!("{unreached:?}") };
    assert!(why.contains("none of the CQL servers at 127.0.0.1:9 ([cql] contact_points) answers"), "{why}");
}

#[test]
#[ignore = "needs a CQL server: make test-cql"]
fn two_nodes_make_the_schema_at_once_and_changed_rows_are_told() {
    let options = with(|o| o.keyspace = "second".to_owned());
    let (one, other) = (options.clone(), options.clone());
    let (one, other) =
        on_runtime(
            async move { tokio::join!(schema::apply(&one, "one", 1_000), schema::apply(&other, "other", 2_000)) },
        );
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(one, other);
    assert_eq!(
        one.applied.iter().map(|(n, name)| (*n, name.as_str())).collect::<Vec<_>>(),
        [(1, "ownership"), (2, "journal"), (3, "history"), (4, "packs"), (1001, "audit"), (1002, "definitions")]
    );
    assert_eq!((one.missing.len(), one.warnings.len()), (0, 0), "batch commit log: nothing to warn of");
    let asked = options.clone();
    let (checked, format) = on_runtime(async move {
        let checked = schema::check(&asked).await.unwrap();
        (checked, CqlStore::connect(&asked).await.unwrap().1)
    });
    assert_eq!(checked, one);
    assert_eq!((format.shards, format.cluster_id.0 < 1 << 53), (256, true));
    assert!(format.created_ms == 1_000 || format.created_ms == 2_000);

    let change = |text: &'static str| {
        let options = options.clone();
        on_runtime(async move {
            let session = connection::open(&options).await.unwrap();
            session.query_unpaged(text, ()).await.unwrap();
        });
    };
    // A later release's migration that only adds tables is passed over.
    change("INSERT INTO second.schema_versions (number, name, checksum) VALUES (1099, 'more', 'x') IF NOT EXISTS");
    let again = options.clone();
    on_runtime(async move { CqlStore::connect(&again).await.map(|_| ()) }).unwrap();
    change("UPDATE second.format SET data_center = 'west' WHERE name = 'cluster' IF EXISTS");
    assert!(told(options.clone()).contains("data centre ([cql] data_center) is west; this node is configured for"));
    change("UPDATE second.format SET data_center = 'datacenter1', wire_format = 99 WHERE name = 'cluster' IF EXISTS");
    assert!(told(options.clone()).contains("Start a release that is at least as new"));
    change("UPDATE second.schema_versions SET checksum = 'x' WHERE number = 2 IF EXISTS");
    assert!(told(options.clone()).contains("another migration 0002 journal than this release"));
    change("DELETE FROM second.schema_versions WHERE number = 2 IF EXISTS");
    assert!(told(options.clone()).contains("lacks the migration 0002 journal: run `campanile schema apply`"));
    change("INSERT INTO second.schema_versions (number, name, checksum) VALUES (5, 'later', 'x') IF NOT EXISTS");
    assert!(told(options.clone()).contains("0005 later, which this release does not know"));
}

#[test]
#[ignore = "needs a CQL server: make test-cql"]
fn tables_that_somebody_dropped_or_altered_are_told_before_anything_is_asked_of_them() {
    let options = with(|o| o.keyspace = "altered".to_owned());
    let applied = options.clone();
    on_runtime(async move { schema::apply(&applied, "one", 1_000).await }).unwrap();
    let checked = || {
        let asked = options.clone();
        match on_runtime(async move { schema::check(&asked).await }) {
            Err(StoreError::Refused(why)) => why,
            other => panic!("{other:?}"),
        }
    };
    let change = |text: &'static str| {
        let options = options.clone();
        on_runtime(async move {
            let session = connection::open(&CqlOptions { request_timeout: PATIENCE, ..options }).await.unwrap();
            session.query_unpaged(text, ()).await.unwrap();
        });
    };
    change("ALTER TABLE altered.runs ADD note text");
    let other = options.clone();
    on_runtime(async move { CqlStore::connect(&other).await.map(|_| ()) }).unwrap();
    change("ALTER TABLE altered.runs DROP record");
    for why in [told(options.clone()), checked()] {
        assert!(why.contains("the table altered.runs has no column record"), "{why}");
        assert!(why.contains("`campanile schema print` shows how it must be"), "{why}");
    }
    change("DROP TABLE altered.job_runs");
    for why in [told(options.clone()), checked()] {
        assert!(why.contains("the table altered.job_runs is missing"), "{why}");
    }
}
