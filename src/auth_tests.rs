#![allow(clippy::unwrap_used)]
use super::*;
use std::{fs, os::unix::fs::PermissionsExt};

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
        (&format!("ann operator sha256:{hash}\nann operator sha256:{}", "1".repeat(64)), 2, "used twice"),
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
fn a_changed_file_is_taken_over_and_a_broken_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens");
    let write = |text: &str| {
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    };
    write(&token_line("first", &tenant("a")).unwrap());
    let file = WatchedFile::open(&path).unwrap();
    let look_again = || {
        file.lock().looked_at = Instant::now() - Duration::from_millis(TOKEN_RELOAD_MS);
        file.entries()
    };
    write(&format!("# longer, so that the stamp differs\n{}\n", token_line("second", &tenant("b")).unwrap()));
    let entries = look_again();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].1.name, "b");
    write("rubbish");
    assert_eq!(look_again()[0].1.name, "b");
}
