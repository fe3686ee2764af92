//! What is refused and with which words, which source wins, and the sample file.
#![allow(clippy::unwrap_used)]
use super::*;

fn load(text: &str, environment: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let shown = file.path().display().to_string();
    Config::load(Some(file.path()), environment)
        .map_err(|errors| ConfigErrors(errors.0.iter().map(|error| error.replace(&shown, "FILE")).collect()))
}

#[test]
fn the_sample_file_is_the_defaults_with_a_comment_above_each() {
    assert_eq!(Config::parse("sample", DEFAULT_FILE).unwrap(), Config::default());
    let all = Table::try_from(Config::default()).unwrap();
    let sample: Table = toml::from_str(DEFAULT_FILE).unwrap();
    assert_eq!(all, sample, "the file must name every setting");
    let lines: Vec<&str> = DEFAULT_FILE.lines().collect();
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| line.contains(" = ") && !line.starts_with('#')) {
        assert!(lines[index - 1].starts_with('#'), "no comment above {line}");
    }
}

#[test]
fn later_sources_win() {
    let text = "[http]\nlisten = \"127.0.0.1:1\"\n[history]\nretention_days = 1\n";
    let config = load(text, &[("CAMPANILE_HTTP__LISTEN", "0.0.0.0:2"), ("CAMPANILE_LOG__FORMAT", "json")]).unwrap();
    assert_eq!(config.http.listen, "0.0.0.0:2".parse().unwrap());
    assert_eq!((config.history.retention_days, config.log.format), (1, LogFormat::Json));
    assert_eq!(config.rpc, RpcSection::default());
    let other = [
        ("CAMPANILE_TOKEN", "x"),
        ("PATH", "y"),
        ("CAMPANILE_NODE__DATA_DIR", "/d"),
        ("CAMPANILE_HTTP__OPEN_METRICS", "true"),
        ("CAMPANILE_CLUSTER__SEEDS", "a:1, b:2"),
        ("CAMPANILE_CLUSTER__NAME", "bells"),
        ("CAMPANILE_CQL__CONTACT_POINTS", "db:9042"),
        ("CAMPANILE_CLUSTER__KEY_FILE", "k"),
        ("CAMPANILE_CLUSTER__TLS_CERT_FILE", "c"),
        ("CAMPANILE_CLUSTER__TLS_KEY_FILE", "d"),
        ("CAMPANILE_CLUSTER__TLS_CA_FILE", "e"),
    ];
    let config = load("", &other).unwrap();
    assert_eq!(config.cluster.seeds, ["a:1", "b:2"]);
    assert_eq!((config.node.data_dir.as_str(), config.http.open_metrics), ("/d", true));
}

#[test]
fn slips_are_told_with_their_place() {
    type Case = (&'static str, &'static [(&'static str, &'static str)], &'static str);
    let cases: &[Case] = &[
        (
            "[http]\n\nlisen = \"x\"\n",
            &[],
            "FILE, line 3: unknown field `lisen`, expected one of `listen`, `open_metrics`, `cors_origins`; did you mean `listen`?",
        ),
        ("[htp]\n", &[], "did you mean `http`?"),
        ("[http]\nlisten = 7\n", &[], "FILE, line 2: this is a number, and "),
        ("history = [7]\n", &[], "FILE: history is a section, not a list: write [history] and settings below it"),
        ("[http]\nlisten = \"here\"\n", &[], "FILE, line 2: invalid socket address syntax"),
        ("[http\n", &[], "FILE, line 1: "),
        ("# x\n[node]\nshards = 100\n", &[], "FILE, line 3: node.shards is 0 or a power of two, 1 to 4096"),
        ("[node]\nthreads = 1025\n", &[], "FILE, line 2: node.threads is 0 to 1024"),
        ("history.max_mb = 255\n", &[], "FILE, line 1: history.max_mb is 0 or at least 256"),
        ("history.retention_days = 99999\n", &[], "FILE, line 1: history.retention_days is 0 to 36500"),
        ("history.audit_days = 3651\n", &[], "FILE, line 1: history.audit_days is 0 to 3650"),
        ("cql.keyspace = \"Jobs\"\n", &[], "FILE, line 1: cql.keyspace is a letter, then letters"),
        ("[cql]\nuser = \"me\"\n", &[], "FILE: cql.password_file is needed with cql.user"),
        ("[cql]\ntls_ca_file = \"ca.pem\"\n", &[], "FILE: cql.tls is to be true when another tls_ setting"),
        ("[cql]\ntls = true\ntls_cert_file = \"c\"\n", &[], "FILE: cql.tls_key_file is needed with cql.tls_cert_file"),
        ("[cql]\ntls = true\ntls_name = \"a b\"\n", &[], "FILE, line 3: cql.tls_name is a DNS name or an IP address"),
        (
            "history.retention_days = 4000\n",
            &[("CAMPANILE_CQL__CONTACT_POINTS", "db:9042")],
            "history.retention_days is 0 to 3650 with cql.contact_points",
        ),
        (
            "[history]\nmax_mb = 1000\n[cql]\ncontact_points = \"db:9042\"\n",
            &[],
            "FILE, line 2: history.max_mb is 0 with cql.contact_points: rows of a store that nodes share go by their age alone; set \
             history.retention_days",
        ),
        (
            "",
            &[("CAMPANILE_HISTORY__MAX_MB", "1000"), ("CAMPANILE_CQL__CONTACT_POINTS", "db:9042")],
            "history.max_mb is 0 with cql.contact_points",
        ),
        ("[log]\nlevel = \"loud\"\n", &[], "FILE, line 2: log.level is error, warn"),
        ("[executor]\nhttp_allow = [\"10.0.0/8\"]\n", &[], "FILE, line 2: executor.http_allow is a list of networks"),
        (
            "[http]\ncors_origins = [\"*\"]\n",
            &[],
            "FILE, line 2: http.cors_origins is a list of origins: '*' is no origin",
        ),
        ("[log]\nformat = \"xml\"\n", &[], "FILE, line 2: unknown variant `xml`"),
        (
            "",
            &[("CAMPANILE_HTTP__LISTN", "x")],
            "environment variable CAMPANILE_HTTP__LISTN: there is no setting http.listn; did you mean http.listen?",
        ),
        (
            "",
            &[("CAMPANILE_NODE__SHARDS", "many")],
            "environment variable CAMPANILE_NODE__SHARDS: 'many' is not a whole number",
        ),
        ("", &[("CAMPANILE_NODE__SHARDS", "70000")], "environment variable CAMPANILE_NODE__SHARDS: node.shards: "),
        ("", &[("CAMPANILE_NODE__SHARDS", "3")], "node.shards is 0 or a power of two"),
        ("[cluster]\nseeds = [\"a:1\"]\n", &[], "FILE, line 2: cluster.seeds needs cluster.name"),
        ("[cluster]\nname = \"b\"\n", &[], "FILE: cluster.key_file is needed when cluster.name is set"),
        (
            "[cluster]\n\nbeat_ms = 1000\n",
            &[],
            "FILE, line 3: cluster.beat_ms is 50 to a 3rd of cluster.lease_ms (833)",
        ),
    ];
    for (text, environment, told) in cases {
        let errors = load(text, environment).unwrap_err().to_string();
        assert!(errors.contains(told), "{text} {environment:?}\n  told: {errors}\n  not: {told}");
    }
    assert_eq!(load("", &[]).unwrap().cql(), None, "the embedded store");
    let two = load("[node]\nshards = 3\n[journal]\nsegment_mb = 1\n", &[]).unwrap_err();
    assert_eq!(two.0.len(), 2);
}

#[test]
fn shards_suit_the_store_unless_they_are_set() {
    let alone = load("", &[]).unwrap();
    assert_eq!(alone.store().shards, 16);
    let shared = load("[cql]\ncontact_points = \"db:9042\"\n", &[]).unwrap();
    assert_eq!(shared.cql().unwrap().shards, 256);
    let set = load("[node]\nshards = 64\n[cql]\ncontact_points = \"db:9042\"\n", &[]).unwrap();
    assert_eq!((set.store().shards, set.cql().unwrap().shards), (64, 64));
}

/// What the store advises an operator whose history is damaged (`store/embedded/history.rs`).
#[test]
fn the_loss_of_history_is_accepted_by_file_and_environment() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("campanile.toml");
    std::fs::write(&file, "[history]\naccept_loss = true\n").unwrap();
    let from_file = Config::load(Some(&file), []).unwrap();
    let variable = ("CAMPANILE_HISTORY__ACCEPT_LOSS".to_owned(), "true".to_owned());
    let from_environment = Config::load(None, [variable]).unwrap();
    assert!(from_file.store().accept_history_loss);
    assert!(from_environment.store().accept_history_loss);
    assert!(!Config::default().store().accept_history_loss);
}
