#![allow(clippy::unwrap_used)]
use super::*;
use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

fn tenant(name: &str) -> Caller {
    Caller { name: name.into(), role: Role::Tenant, tenant: Some("finance".into()), pools: vec![] }
}

fn refusal(text: &str) -> (usize, String) {
    parse(text).unwrap_err()
}

#[test]
fn a_new_token_and_its_line_find_their_caller_again() {
    let callers = [
        Caller { name: "root".into(), role: Role::Operator, tenant: None, pools: vec![] },
        tenant("fin"),
        Caller { name: "box".into(), role: Role::Executor, tenant: None, pools: vec!["a".into(), "b".into()] },
        Caller { name: "scraper".into(), role: Role::Metrics, tenant: None, pools: vec![] },
    ];
    let tokens: Vec<String> = callers.iter().map(|_| new_token().unwrap()).collect();
    let lines: Vec<String> = callers.iter().zip(&tokens).map(|(c, t)| token_line(t, c).unwrap()).collect();
    let entries = parse(&format!("# ours\n\n{}\n", lines.join("\n"))).unwrap();
    let authenticator = Authenticator { source: Source::Fixed(entries.into()), extra: Arc::default(), rate: None };
    for (caller, token) in callers.iter().zip(&tokens) {
        assert_eq!(authenticator.check(token).as_ref(), Some(caller));
        assert_eq!(authenticator.check(&token[..token.len() - 1]), None);
    }
    let authenticator = authenticator.and("one more", tenant("more"));
    assert_eq!(authenticator.check("one more"), Some(tenant("more")));
    assert_eq!(authenticator.check(&tokens[0]).as_ref(), Some(&callers[0]));
    assert_eq!(authenticator.check(""), None);
    assert_eq!(authenticator.check(&"x".repeat(TOKEN_BYTES + 1)), None);
    assert!(!lines.iter().any(|line| tokens.iter().any(|token| line.contains(&token[4..]))), "a line shows a token");
}

#[test]
fn each_slip_in_the_file_is_named_with_its_line() {
    let hash = "0".repeat(64);
    let cases = [
        ("# x\nann", 2, "write: NAME ROLE"),
        ("ann boss sha256:00", 1, "'boss' is not a role"),
        ("ann operator", 1, "hash is missing"),
        ("ann operator sha256:00", 1, "64 hexadecimal"),
        ("ann operator sha256:zz00000000000000000000000000000000000000000000000000000000000000", 1, "64 hexadecimal"),
        (&format!("\n\nann tenant sha256:{hash}"), 3, "needs tenant="),
        (&format!("ann operator tenant=x sha256:{hash}"), 1, "leave tenant= out"),
        (&format!("ann operator pools=x sha256:{hash}"), 1, "leave pools= out"),
        (&format!("ann executor sha256:{hash}"), 1, "needs pools="),
        (&format!("ann executor tenant=a pools=x sha256:{hash}"), 1, "not tenant="),
        (&format!("ann tenant tenant=a,b sha256:{hash}"), 1, "not a tenant's name"),
        (&format!("ann executor pools=a,,b sha256:{hash}"), 1, "not a pool's name"),
        (&format!("ann operator color=red sha256:{hash}"), 1, "'color=red' is not understood"),
        (&format!("ann operator sha256:{hash} later"), 1, "after the hash"),
        (&format!("ann operator sha256:{hash}\nbob operator sha256:{hash}"), 2, "listed twice"),
        (&format!("ann operator sha256:{hash}\nann executor pools=a sha256:{}", "1".repeat(64)), 2, "used twice"),
        (&format!("ann metrics pools=x sha256:{hash}"), 1, "leave pools= out"),
        (&format!("ann metrics tenant=x sha256:{hash}"), 1, "leave tenant= out"),
    ];
    for (text, line, message) in cases {
        let refused = refusal(text);
        assert_eq!(refused.0, line, "{text}");
        assert!(refused.1.contains(message), "{text}: {}", refused.1);
    }
}

#[test]
fn a_file_that_others_may_write_is_refused_and_an_empty_one_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens");
    fs::write(&path, format!("ann operator sha256:{}\n", "0".repeat(64))).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).unwrap();
    assert!(matches!(Authenticator::from_file(&path), Err(TokenFileError::TooOpen { mode: 0o620, .. })));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(Authenticator::from_file(&path).is_ok());
    fs::write(&path, "# nobody\n").unwrap();
    assert!(matches!(Authenticator::from_file(&path), Err(TokenFileError::Empty { .. })));
    let missing = Authenticator::from_file(&dir.path().join("none"));
    assert!(matches!(missing, Err(TokenFileError::Unreadable { .. })));
}

#[test]
fn a_name_may_have_two_tokens_of_one_credential_and_no_third() {
    let line = |n: u32, scope: &str| format!("box executor {scope} sha256:{}", format!("{n:x}").repeat(64));
    let first = line(1, "pools=a,b");
    assert_eq!(check_with("", &first), Ok(false));
    assert_eq!(check_with(&first, &line(2, "pools=a,b")), Ok(true), "also without a line's end");
    let refused = check_with(&first, &line(2, "pools=a")).unwrap_err();
    assert!(refused.contains("with another role, tenant or pools"), "{refused}");
    let refused = check_with(&format!("{first}\n{}\n", line(2, "pools=a,b")), &line(3, "pools=a,b")).unwrap_err();
    assert!(refused.contains("has 2 tokens already"), "{refused}");
    assert_eq!(
        check_with("rubbish\n", &first).unwrap_err(),
        "line 1: write: NAME ROLE [tenant=T] [pools=a,b] sha256:HEX. Correct that first"
    );
}

/// A token file that is written and looked at by hand.
struct Written {
    path: PathBuf,
    file: Arc<WatchedFile>,
    writes: std::cell::Cell<usize>,
    _dir: tempfile::TempDir,
}

impl Written {
    fn new(text: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let file = Arc::new(WatchedFile::open(&path).unwrap());
        Self { path, file, writes: std::cell::Cell::default(), _dir: dir }
    }
    fn write(&self, text: &str) {
        // Another length each time, so that the stamp differs.
        self.writes.set(self.writes.get() + 1);
        fs::write(&self.path, format!("{text}\n#{}\n", "x".repeat(self.writes.get()))).unwrap();
    }
    fn authenticator(&self) -> Authenticator {
        Authenticator { source: Source::File(self.file.clone()), extra: Arc::default(), rate: None }
    }
}

#[test]
fn a_changed_file_is_taken_over_and_a_broken_one_is_not_and_says_so() {
    let written = Written::new(&token_line("first", &tenant("a")).unwrap());
    let changes = written.file.changes();
    written.write(&token_line("second", &tenant("b")).unwrap());
    let entries = written.file.look_again();
    assert_eq!((entries.len(), entries[0].1.name.as_str()), (1, "b"));
    assert!(changes.has_changed().unwrap());
    let authenticator = written.authenticator();
    assert_eq!(authenticator.refused(), None);
    written.write("rubbish");
    assert_eq!(written.file.look_again()[0].1.name, "b");
    assert!(authenticator.refused().unwrap().contains("line 1"), "it is said for as long as it lasts");
    written.write(&token_line("second", &tenant("b")).unwrap());
    written.file.look_again();
    assert_eq!(authenticator.refused(), None);
}

#[test]
fn an_emptied_file_opens_nothing() {
    let written = Written::new(&token_line("first", &tenant("a")).unwrap());
    let authenticator = written.authenticator();
    let known = authenticator.credential("first").unwrap();
    written.write("# nobody");
    assert_eq!(written.file.look_again().len(), 1, "an editor may be writing");
    assert_eq!(written.file.look_again().len(), 0, "it stays so");
    assert!(!authenticator.still_knows(&known));
    assert_eq!(authenticator.check("first"), None);
    written.write(&token_line("first", &tenant("a")).unwrap());
    assert_eq!(written.file.look_again().len(), 1);
    assert!(authenticator.still_knows(&known));
}

#[test]
fn a_connection_is_known_by_its_token_and_not_by_its_name() {
    let lines = |tokens: &[&str]| {
        tokens.iter().map(|token| token_line(token, &tenant("a")).unwrap()).collect::<Vec<_>>().join("\n")
    };
    let written = Written::new(&lines(&["old", "new"]));
    let authenticator = written.authenticator();
    let (old, new) = (authenticator.credential("old").unwrap(), authenticator.credential("new").unwrap());
    assert_eq!(old.caller, new.caller);
    written.write(&lines(&["new"]));
    written.file.look_again();
    assert_eq!([authenticator.still_knows(&old), authenticator.still_knows(&new)], [false, true]);
}
