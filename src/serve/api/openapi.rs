//! The OpenAPI 3.1 document, from the table of routes.

use super::{
    events, examples,
    openapi_shapes::Shapes,
    problem::Problem,
    route::{Handler, Route},
};
use campanile_schema::{error::ErrorCode, operations::HttpOutput};
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What any operation can answer besides its own refusals.
const ANY_TIME: &[ErrorCode] = &[
    ErrorCode::InvalidArgument,
    ErrorCode::Unauthenticated,
    ErrorCode::Forbidden,
    ErrorCode::RateLimited,
    ErrorCode::Internal,
    ErrorCode::Overloaded,
    ErrorCode::NotReady,
    ErrorCode::Timeout,
];

/// The document of these routes.
pub(super) fn document(routes: &[Route]) -> Value {
    let mut shapes = Shapes::new();
    let mut paths: BTreeMap<&'static str, Map<String, Value>> = BTreeMap::new();
    for route in routes {
        let verb = route.method.as_str().to_ascii_lowercase();
        paths.entry(route.path).or_default().insert(verb, operation(route, &mut shapes));
    }
    let mut paths = json!(paths);
    let schemas = shapes.finish(&mut paths);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Campanile",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Names are camelCase, enums UPPER_SNAKE (read in any case), instants RFC 3339 in UTC. Unknown \
                            fields are refused by name. Errors are application/problem+json with a stable code.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn operation(route: &Route, shapes: &mut Shapes) -> Value {
    let mut operation = json!({
        "operationId": route.operation,
        "summary": route.summary,
        "tags": [route.operation.split('.').next()],
        "responses": responses(route, &mut shapes.answers),
    });
    let parameters = parameters(route, &mut shapes.requests);
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    if let Some(body) = route.body {
        operation["requestBody"] = json!({
            "required": !body.optional,
            "content": {body.media: media(&(body.schema)(&mut shapes.requests).to_value(), examples::body(route.operation))},
        });
    }
    match route.handler {
        Handler::Page(_) | Handler::Listing(_) | Handler::Console(_) => operation["security"] = json!([]),
        Handler::Operation(_) | Handler::Streamed(_) | Handler::Metrics(_) => {}
    }
    operation
}

fn media(schema: &Value, example: Option<Value>) -> Value {
    match example {
        Some(example) => json!({"schema": schema, "example": example}),
        None => json!({"schema": schema}),
    }
}

fn parameters(route: &Route, schemas: &mut SchemaGenerator) -> Vec<Value> {
    let in_path = route.path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = in_path
        .map(|name| {
            let schema = match name {
                "tenantId" | "target" | "calendar" | "node" | "file" => json!({"type": "string"}),
                _ => json!({"type": "integer", "minimum": 0, "maximum": (1u64 << 53) - 1}),
            };
            json!({"name": name, "in": "path", "required": true, "schema": schema})
        })
        .collect();
    if let Some(query) = route.query {
        let object = query(schemas).to_value();
        let required = object["required"].as_array().cloned().unwrap_or_default();
        for (name, schema) in object["properties"].as_object().into_iter().flatten() {
            let mut schema = schema.clone();
            let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
            let mut parameter = json!({
                "name": name, "in": "query", "required": required.contains(&json!(name)), "schema": schema,
            });
            if let Some(description) = description {
                parameter["description"] = description;
            }
            parameters.push(parameter);
        }
    }
    if route.idempotent_by_key {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "required": false, "schema": {"type": "string"},
            "description": "The same key with the same body again does not do it again, but answers what was made. A \
                key is kept for 30 days; a call whose key came with another request before is refused.",
        }));
    }
    for parameter in &mut parameters {
        if let Some(example) = parameter["name"].as_str().and_then(examples::parameter) {
            parameter["example"] = example;
        }
    }
    parameters
}

fn responses(route: &Route, schemas: &mut SchemaGenerator) -> Value {
    let mut responses = Map::new();
    let mut good = json!({"description": route.summary});
    match (route.answer, &route.handler) {
        (Some(answer), _) if route.status != 204 => {
            let schema = answer(schemas).to_value();
            good["content"] = json!({route.media: media(&schema, examples::answer(route.operation))});
            for form in route.also {
                let text = json!(examples::text(form));
                // Events have no schema in this version of OpenAPI: some read one as of each event, some as of the whole.
                good["content"][form] = match *form {
                    events::MEDIA => json!({"example": text}),
                    _ => media(&json!({"type": "string"}), Some(text)),
                };
            }
        }
        (_, Handler::Page(_) | Handler::Listing(_) | Handler::Console(_) | Handler::Metrics(_)) => {
            let kind = if route.media.ends_with("json") { "object" } else { "string" };
            good["content"] = json!({route.media: media(&json!({"type": kind}), examples::answer(route.operation))});
        }
        (None, Handler::Operation(_)) if route.media == events::MEDIA => {
            good["content"] = json!({route.media: {"example": examples::changes(route.operation)}});
        }
        (_, Handler::Operation(_) | Handler::Streamed(_)) => {}
    }
    responses.insert(route.status.to_string(), good);
    if let Some(accepted) = route.accepted {
        let schema = accepted(schemas).to_value();
        let told = match route.row.http.map(|http| http.gives) {
            Ok(HttpOutput::Accepted) => "The work has begun and goes on behind the answer",
            Ok(HttpOutput::Spread | HttpOutput::Json | HttpOutput::Nothing) | Err(_) => {
                "The change is kept. These shards have not confirmed it yet; the node goes on telling them until all have"
            }
        };
        responses.insert(
            "202".to_owned(),
            json!({"description": told, "content": {"application/json": media(&schema, examples::accepted(route.operation))}}),
        );
    }
    let problem = schemas.subschema_for::<Problem>().to_value();
    let common = match route.handler {
        Handler::Operation(_) | Handler::Streamed(_) => ANY_TIME,
        Handler::Page(_) | Handler::Listing(_) | Handler::Console(_) | Handler::Metrics(_) => &[],
    };
    let mut by_status: BTreeMap<u16, Vec<ErrorCode>> = BTreeMap::new();
    for code in ErrorCode::ALL.iter().filter(|code| common.contains(code) || route.errors.contains(code)) {
        by_status.entry(code.status()).or_default().push(*code);
    }
    for (status, codes) in by_status {
        let said = codes.iter().map(|code| (code.as_str().to_owned(), json!({"value": examples::problem(*code)})));
        let said: Map<String, Value> = said.collect();
        let lines: Vec<String> = codes.iter().map(|code| format!("`{}`: {}", code.as_str(), code.title())).collect();
        responses.insert(
            status.to_string(),
            json!({"description": lines.join("\n"), "content": {"application/problem+json": {"schema": problem, "examples": said}}}),
        );
    }
    Value::Object(responses)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::api::{openapi_document, routes};
    use std::collections::BTreeSet;

    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(object) => {
                for (key, value) in object {
                    match (key.as_str(), value) {
                        ("$ref", Value::String(target)) => drop(found.insert(target.clone())),
                        _ => references(value, found),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[test]
    fn every_route_is_in_the_document_with_its_types() {
        let document = openapi_document();
        let mut ids = BTreeSet::new();
        for route in routes::table() {
            let verb = route.method.as_str().to_ascii_lowercase();
            let operation = &document["paths"][route.path][&verb];
            assert_eq!(operation["operationId"], route.operation, "{verb} {}", route.path);
            assert!(ids.insert(route.operation), "{} twice", route.operation);
            assert!(operation["responses"][route.status.to_string()].is_object());
            assert_eq!(operation["requestBody"].is_object(), route.body.is_some());
            let named = operation["parameters"].as_array().cloned().unwrap_or_default();
            for name in route.path.split('/').filter_map(|s| s.strip_prefix('{')?.strip_suffix('}')) {
                assert!(named.iter().any(|p| p["name"] == name && p["in"] == "path"), "{}: {name}", route.path);
            }
            for code in route.errors {
                let told = operation["responses"][code.status().to_string()]["description"].as_str().unwrap();
                assert!(told.contains(code.as_str()), "{}: {told}", route.operation);
            }
        }
        let count: usize = document["paths"].as_object().unwrap().values().map(|p| p.as_object().unwrap().len()).sum();
        assert_eq!(count, ids.len());
    }

    #[test]
    fn every_operation_has_examples_that_are_taken() {
        let document = openapi_document();
        for route in routes::table() {
            let operation = &document["paths"][route.path][route.method.as_str().to_ascii_lowercase()];
            let shown =
                |content: &Value| content.as_object().unwrap().values().all(|media| !media["example"].is_null());
            let good = &operation["responses"][route.status.to_string()];
            assert!(route.status == 204 || shown(&good["content"]), "{}: no example of the answer", route.operation);
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                assert!(!parameter["example"].is_null(), "{}: {}", route.operation, parameter["name"]);
            }
            let Some(body) = route.body else { continue };
            let example = &operation["requestBody"]["content"][body.media]["example"];
            assert_eq!((body.check)(example.to_string().as_bytes()), Ok(()), "{}: {example}", route.operation);
        }
    }

    #[test]
    fn every_reference_leads_to_a_schema() {
        let document = openapi_document();
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        assert!(found.len() > 20, "{found:?}");
        for reference in found {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }

    /// A generated client asks for what the node asks for, and for no more.
    #[test]
    fn only_what_a_request_must_have_is_required() {
        let document = openapi_document();
        let create = &document["paths"]["/api/v1/jobs"]["post"];
        let name = |schema: &Value| schema["$ref"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        let request = name(&create["requestBody"]["content"]["application/json"]["schema"]);
        let request = &document["components"]["schemas"][request];
        assert_eq!(request["required"], json!(["name", "trigger"]));
        let read = &document["paths"]["/api/v1/jobs/{jobId}"]["get"]["responses"]["200"]["content"];
        let answer = &document["components"]["schemas"][name(&read["application/json"]["schema"])];
        let required: Vec<&str> = answer["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        for field in ["name", "jobId", "retryPolicy", "timeoutSec", "labels"] {
            assert!(required.contains(&field), "{field} is always in an answer: {required:?}");
        }
        // Tools take a field with a default for one that is always there.
        assert!(!document.to_string().contains("\"default\":"), "defaults are told in words");
        let priority = request["properties"]["priority"]["description"].as_str().unwrap();
        assert!(priority.contains("Default: 100"), "{priority}");
    }

    #[test]
    fn a_jobs_fields_are_described() {
        let document = openapi_document();
        let spec = &document["components"]["schemas"]["JobSpec"];
        for field in ["name", "tenantId", "trigger", "retryPolicy", "timeoutSec", "executorSelector", "params"] {
            assert!(spec["properties"][field].is_object(), "{field}");
        }
        assert_eq!(spec["additionalProperties"], false);
        let listed = document["paths"]["/api/v1/jobs"]["get"]["parameters"].as_array().unwrap();
        let page_size = listed.iter().find(|p| p["name"] == "pageSize").unwrap();
        assert_eq!(
            (&page_size["in"], &page_size["required"]),
            (&serde_json::json!("query"), &serde_json::json!(false))
        );
    }
}
