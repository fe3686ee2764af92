//! Names in double braces in a text: `{{name}}`, with spaces allowed around the name. `\{{` stands for two braces.
//!
//! The splitter knows no names: templates of actions and templates in the params of a DAG's nodes each parse their own.

use serde_json::Value;

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece<N> {
    /// Text without placeholders, never empty; its escaped braces are written as `{{`.
    Text(String),
    Name(N),
}

/// Splits the text. `parse` gets each name without its braces and the spaces around it; errors are sentences.
pub(crate) fn pieces<N>(text: &str, parse: impl Fn(&str) -> Result<N, String>) -> Result<Vec<Piece<N>>, String> {
    let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
    while let Some(at) = rest.find("{{") {
        if let Some(before) = rest[..at].strip_suffix('\\') {
            plain.push_str(before);
            plain.push_str("{{");
            rest = &rest[at + 2..];
            continue;
        }
        plain.push_str(&rest[..at]);
        let inside = &rest[at + 2..];
        let end = inside.find("}}").ok_or("'{{' without '}}' (write \\{{ for two braces)")?;
        let name = parse(inside[..end].trim())?;
        if !plain.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
        }
        pieces.push(Piece::Name(name));
        rest = &inside[end + 2..];
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    Ok(pieces)
}

/// How a value is written inside of a text: a string as it is, null as nothing, and any other value as JSON.
pub(crate) fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}
