//! Walks the table of error codes: each has its section in `docs/errors.md`, and HTTP, RPC and CLI answer with what the table says.

mod document;
mod node;
mod provoke;

use campanile_schema::error::{ApiError, ErrorCode};
use campanile_serve::api::Problem;
use node::{Node, cli};
use std::{
    collections::BTreeSet,
    io::{Read, Write},
    net::TcpListener,
    thread,
};

/// What can be provoked on a real node is: the same code from every way in.
#[test]
fn a_real_node_answers_as_the_table_says() {
    let node = Node::start();
    let mut wrong = Vec::new();
    for code in ErrorCode::ALL.iter().copied() {
        let Some(calls) = provoke::calls(code, &node) else { continue };
        let mut expect = |way: &str, got: Option<(String, u16)>, number: u16| {
            if let Some((found, status)) = got
                && (found != code.as_str() || status != number)
            {
                wrong.push(format!("{way}: wanted {} and {number}, got {found} and {status}", code.as_str()));
            }
        };
        expect("HTTP", calls.http.map(|call| node.http(&call)), code.status());
        expect("RPC", calls.rpc.map(|call| node.rpc(&call)), code.status());
        expect("CLI", calls.cli.map(|call| node.cli(&call)), u16::from(code.exit_code()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every code, those too that need a bug or a slow disk: the CLI's exit code, and that it says what to do.
#[test]
fn the_command_line_ends_with_the_exit_code_of_the_table() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let answering = thread::spawn(move || {
        for code in ErrorCode::ALL {
            let (mut stream, _) = listener.accept().unwrap();
            // The whole head has come when the first bytes have: it is small.
            let _ = stream.read(&mut [0; 8192]).unwrap();
            let problem = Problem::new(ApiError::new(*code, "because"), Some("request-1".to_owned()));
            let body = serde_json::to_string(&problem).unwrap();
            let head = "content-type: application/problem+json\r\nconnection: close";
            let answer =
                format!("HTTP/1.1 {} X\r\n{head}\r\ncontent-length: {}\r\n\r\n{body}", code.status(), body.len());
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    for code in ErrorCode::ALL {
        let (exit, told) = cli(&server, "token", &["run", "get", "1"], "");
        assert_eq!(exit, i32::from(code.exit_code()), "{told}");
        assert!(told.contains(&format!("{}: because", code.as_str())), "{told}");
        assert!(told.contains(code.advice()), "{told}");
    }
    answering.join().unwrap();
}

#[test]
fn every_code_has_a_section_and_every_section_a_code() {
    let sections = document::sections();
    let (named, known): (BTreeSet<_>, BTreeSet<_>) =
        (sections.iter().map(|s| s.code.as_str()).collect(), ErrorCode::ALL.iter().map(|c| c.as_str()).collect());
    assert_eq!(named, known);
    let order: Vec<_> = sections.iter().map(|s| s.code.as_str()).collect();
    assert_eq!(order, ErrorCode::ALL.iter().map(|c| c.as_str()).collect::<Vec<_>>(), "in the order of the table");
    for (section, code) in sections.iter().zip(ErrorCode::ALL) {
        let line = format!("HTTP {}, CLI exit {}.", code.status(), code.exit_code());
        assert_eq!(section.numbers, line, "{}", section.code);
        for part in ["What happened", "Why", "What to do"] {
            assert!(
                section.parts.iter().any(|(name, text)| name == part && !text.is_empty()),
                "{}: {part}",
                section.code
            );
        }
        assert_eq!(section.parts.len(), 3, "{}", section.code);
    }
}

/// The link of a problem leads somewhere.
#[test]
fn the_node_serves_the_sections() {
    let node = Node::start();
    let page = node.page("/errors");
    for code in ErrorCode::ALL {
        let kind = Problem::new(ApiError::new(*code, ""), None).kind;
        let anchor = kind.strip_prefix("/errors#").unwrap();
        assert!(page.contains(&format!("<h2 id=\"{anchor}\">")), "{kind}");
    }
    assert!(page.contains("<b>What to do.</b>"), "{page}");
}
