//! Templates in the params of a node: `{{nodes.A.result.rows}}` is a value of the result of a node before it, `{{run.logicalTime}}`
//! the instant that the DAG run stands for. `\{{` stands for two braces.
//!
//! A string that is nothing but one template becomes the value itself, of any type. Inside of a longer text a string is written as it
//! is, null as nothing, and any other value as JSON. Names of fields are never templates. Everything is checked when the DAG is
//! compiled; what can only be missing when the node starts is the value.

use super::fields::FieldPath;
use crate::placeholder::{Piece, pieces, text_of};
use campanile_schema::{payload::Payload, text::Text};
use serde_json::{Map, Value};

/// What may stand in braces, for messages and the documents.
pub const NAMES: &str = "nodes.ID.result.FIELD and run.logicalTime";

/// What a template reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Reference {
    /// A field of the result of a node, by its id.
    Result { node: Text, field: FieldPath },
    /// RFC 3339; null for a run that stands for no instant.
    LogicalTime,
}

impl Reference {
    fn parse(name: &str) -> Result<Self, String> {
        if name == "run.logicalTime" {
            return Ok(Self::LogicalTime);
        }
        let mut names = name.split('.');
        if (names.next(), names.clone().nth(1)) == (Some("nodes"), Some("result"))
            && let Some(node) = names.next().filter(|node| !node.is_empty())
        {
            let field = FieldPath::new(names.skip(1).map(Text::from).collect())
                .map_err(|why| format!("'{{{{{}}}}}': {why}", name.escape_debug()))?;
            return Ok(Self::Result { node: node.into(), field });
        }
        let name = name.escape_debug();
        Err(format!("'{{{{{name}}}}}' is not known; there are {NAMES} (write \\{{{{ for two braces)"))
    }
}

/// A JSON value with templates in its strings.
#[derive(Clone, Debug, PartialEq)]
enum Tree {
    Plain(Value),
    Text(Vec<Piece<Reference>>),
    List(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

/// The params of a node. Most have no templates and are kept as they came.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamsTemplate(Params);

#[derive(Clone, Debug, PartialEq)]
enum Params {
    Plain(Payload),
    Tree(Tree),
}

impl ParamsTemplate {
    /// Errors are sentences that name what is wrong, without the field.
    pub fn parse(params: &Payload) -> Result<Self, String> {
        if !params.0.contains("{{") {
            return Ok(Self(Params::Plain(params.clone())));
        }
        tree(params.to_value()).map(|tree| Self(Params::Tree(tree)))
    }

    /// All that it reads, in the order in which it stands there.
    pub fn references(&self) -> Vec<&Reference> {
        let mut found = Vec::new();
        if let Params::Tree(tree) = &self.0 {
            collect(tree, &mut found);
        }
        found
    }

    /// Filled in. `value` says what a reference stands for; its error ends the rendering.
    pub fn render<E>(&self, value: &impl Fn(&Reference) -> Result<Value, E>) -> Result<Payload, E> {
        match &self.0 {
            Params::Plain(params) => Ok(params.clone()),
            Params::Tree(tree) => Ok(Payload::from_value(&filled(tree, value)?)),
        }
    }
}

fn tree(value: Value) -> Result<Tree, String> {
    Ok(match value {
        Value::String(text) if text.contains("{{") => Tree::Text(pieces(&text, Reference::parse)?),
        Value::Array(items) => Tree::List(items.into_iter().map(tree).collect::<Result<_, _>>()?),
        Value::Object(fields) => {
            let field = |(name, value)| Ok((name, tree(value)?));
            Tree::Object(fields.into_iter().map(field).collect::<Result<_, String>>()?)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Tree::Plain(value),
    })
}

fn collect<'t>(tree: &'t Tree, found: &mut Vec<&'t Reference>) {
    match tree {
        Tree::Plain(_) => {}
        Tree::Text(pieces) => found.extend(pieces.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Name(reference) => Some(reference),
        })),
        Tree::List(items) => items.iter().for_each(|item| collect(item, found)),
        Tree::Object(fields) => fields.iter().for_each(|(_, field)| collect(field, found)),
    }
}

fn filled<E>(tree: &Tree, value: &impl Fn(&Reference) -> Result<Value, E>) -> Result<Value, E> {
    Ok(match tree {
        Tree::Plain(plain) => plain.clone(),
        Tree::Text(pieces) => {
            if let [Piece::Name(only)] = pieces.as_slice() {
                return value(only);
            }
            let mut text = String::new();
            for piece in pieces {
                match piece {
                    Piece::Text(plain) => text.push_str(plain),
                    Piece::Name(reference) => text.push_str(&text_of(value(reference)?)),
                }
            }
            Value::String(text)
        }
        Tree::List(items) => Value::Array(items.iter().map(|item| filled(item, value)).collect::<Result<_, _>>()?),
        Tree::Object(fields) => {
            let field = |(name, tree): &(String, Tree)| Ok((name.clone(), filled(tree, value)?));
            Value::Object(fields.iter().map(field).collect::<Result<Map<_, _>, E>>()?)
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn rendered(params: Value) -> Value {
        let value = |reference: &Reference| match reference {
            Reference::LogicalTime => Ok(json!("2026-06-21T00:00:00.000Z")),
            Reference::Result { node, field } => {
                let result = json!({"rows":3,"names":["a","b"],"none":null,"text":"t"});
                field.find(&result).cloned().ok_or(format!("{node}: {}", field.text()))
            }
        };
        let template = ParamsTemplate::parse(&Payload::from_value(&params)).unwrap();
        template.render(&value).unwrap().to_value()
    }

    #[test]
    fn a_template_alone_is_the_value_and_in_a_text_it_is_written() {
        for (params, filled) in [
            (json!({"n":"{{nodes.A.result.rows}}"}), json!({"n":3})),
            (json!({"n":"{{ nodes.A.result.names }}"}), json!({"n":["a","b"]})),
            (json!({"n":"{{nodes.A.result.names.1}}"}), json!({"n":"b"})),
            (json!({"n":"{{nodes.A.result.none}}"}), json!({"n":null})),
            (json!({"n":"<{{nodes.A.result.none}}>"}), json!({"n":"<>"})),
            (json!({"n":"{{nodes.A.result.rows}} of {{nodes.A.result.text}}"}), json!({"n":"3 of t"})),
            (json!({"d":{"l":["{{run.logicalTime}}",7]}}), json!({"d":{"l":["2026-06-21T00:00:00.000Z",7]}})),
            (json!({"n":"\\{{x}} {y}"}), json!({"n":"{{x}} {y}"})),
            (json!({"{{x}}":1,"a":"{b}"}), json!({"{{x}}":1,"a":"{b}"})),
        ] {
            assert_eq!(rendered(params.clone()), filled, "{params}");
        }
    }

    #[test]
    fn slips_are_named() {
        for (text, told) in [
            ("{{nodes.A.rows}}", "'{{nodes.A.rows}}' is not known; there are nodes.ID.result.FIELD"),
            ("{{nodes.A.result}}", "name a field of the result"),
            ("{{nodes.A.result.}}", "is empty"),
            ("{{nodes..result.x}}", "is not known"),
            ("{{run.id}}", "is not known"),
            ("{{}}", "is not known"),
            ("a {{ b", "without '}}'"),
        ] {
            let error = ParamsTemplate::parse(&Payload::from_value(&json!({ "n": text }))).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_read_is_known_before_anything_runs() {
        let params = json!({"a":["{{nodes.A.result.x.y}} {{run.logicalTime}}"],"b":"{{nodes.B-1.result.z}}"});
        let template = ParamsTemplate::parse(&Payload::from_value(&params)).unwrap();
        let read: Vec<String> = template
            .references()
            .into_iter()
            .map(|reference| match reference {
                Reference::Result { node, field } => format!("{node}:{}", field.text()),
                Reference::LogicalTime => "time".to_owned(),
            })
            .collect();
        assert_eq!(read, ["A:x.y", "time", "B-1:z"]);
    }
}
