//! Time zones of a directory.
use crate::program::{Dev, campanile};
use serde_json::json;
use std::{fs, path::Path};

/// A compiled zone that is always so many hours ahead of UTC.
fn fixed(hours: i32) -> Vec<u8> {
    let mut block = Vec::from(*b"TZif2");
    block.extend([0; 15]);
    for count in [0_u32, 0, 0, 0, 1, 4] {
        block.extend(count.to_be_bytes());
    }
    block.extend((hours * 3600).to_be_bytes());
    block.extend([0, 0]);
    block.extend(format!("+{hours:02}\0").bytes());
    let mut file = block.clone();
    file.extend(block);
    file.extend(format!("\n<+{hours:02}>-{hours}\n").bytes());
    file
}

fn write(dir: &Path, hours: i32, version: &str) {
    for name in ["Test/Made-Up", "Europe/Berlin"] {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, fixed(hours)).unwrap();
    }
    fs::write(dir.join("tzdata.zi"), format!("# version {version}\n# more\n")).unwrap();
}

#[test]
fn a_directory_of_time_zones_goes_before_the_bundled_ones() {
    let dir = tempfile::tempdir().unwrap();
    let (zones, data) = (dir.path().join("zones"), dir.path().join("data"));
    write(&zones, 5, "9990a");
    let setting = [("CAMPANILE_NODE__TZDB_DIR", zones.to_str().unwrap())];
    let noon = |zone: &str| {
        let args =
            ["cron", "next", "0 12 * * *", "--after", "2030-07-01T00:00:00Z", "--count", "1", "-o", "json", "--tz"];
        let output = campanile().args(args).arg(zone).envs(setting).output().unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["next"][0].as_str().unwrap().to_owned()
    };
    assert_eq!(noon("Test/Made-Up"), "2030-07-01T07:00:00Z");
    assert_eq!(noon("europe/berlin"), "2030-07-01T07:00:00Z");
    // What the directory lacks is there all the same.
    assert_eq!(noon("Asia/Tokyo"), "2030-07-01T03:00:00Z");

    let dev = Dev::start_with(&data, &["--no-demo"], &setting);
    let trigger = json!({"type": "CRON", "expr": "0 12 * * *", "timezone": "Test/Made-Up"});
    dev.job("at-noon", trigger);
    let hour = |dev: &Dev| {
        let view = dev.run(&["job", "get", "at-noon", "-o", "json"]).json();
        view["nextFireAt"].as_str().unwrap()[11..16].to_owned()
    };
    let version = |dev: &Dev| dev.http("GET", "/api/v1/cluster/node", None).1["tzdb"].as_str().unwrap().to_owned();
    assert_eq!((hour(&dev).as_str(), version(&dev).as_str()), ("07:00", "9990a"));
    assert_eq!(dev.stop(), 0);
    // Another version of the database: what is due is computed anew.
    write(&zones, 6, "9990b");
    let dev = Dev::start_with(&data, &["--no-demo"], &setting);
    assert_eq!((hour(&dev).as_str(), version(&dev).as_str()), ("06:00", "9990b"));
}

#[test]
fn a_directory_without_time_zones_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("README"), "nothing here").unwrap();
    let start = |tzdb: &Path| {
        let mut dev = campanile();
        dev.args(["dev", "--no-demo", "--http", "127.0.0.1:0", "--rpc", "127.0.0.1:0", "--data"])
            .arg(dir.path().join("data"));
        let output = dev.env("CAMPANILE_NODE__TZDB_DIR", tzdb).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let told = start(dir.path());
    assert!(told.contains("node.tzdb_dir"), "{told}");
    assert!(told.contains("no compiled time zones"), "{told}");
    let told = start(Path::new("/nonexistent"));
    assert!(told.contains("node.tzdb_dir: /nonexistent: No such file"), "{told}");
    fs::write(dir.path().join("Broken"), b"TZif2 and no more").unwrap();
    let told = start(dir.path());
    assert!(told.contains(&format!("{}", dir.path().join("Broken").display())), "{told}");
}
