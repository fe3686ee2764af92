//! Who may call what, as the table of operations says: the same over HTTP and RPC, for every operation.
use super::server::{EXECUTOR, FINANCE, Server};
use campanile_client::{Client, ClientError};
use campanile_schema::operations::{self, LeastRole, Row};
use serde_json::{Map, Value, json};

/// A request that is right in its form, from the examples of the document.
struct ExampleRequest {
    path: String,
    body: Option<Value>,
    /// The same in one map.
    params: Value,
}

fn asked(document: &Value, row: &Row) -> ExampleRequest {
    let Ok(http) = row.http else {
        let params = match row.name {
            "job.createMany" => json!({"items": []}),
            "run.failed" => json!({}),
            _ => json!({"watchId": 1}),
        };
        return ExampleRequest { path: String::new(), body: None, params };
    };
    let operation = &document["paths"][http.path][http.verb.as_str().to_lowercase()];
    let content = operation["requestBody"]["content"].as_object().and_then(|content| content.values().next());
    let body = content.map(|content| content["example"].clone());
    let mut params = body.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
    let mut query = Vec::new();
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let (name, example) = (parameter["name"].as_str().unwrap(), &parameter["example"]);
        let value = if parameter["schema"]["type"] == "integer" { json!(1) } else { example.clone() };
        match parameter["in"].as_str().unwrap() {
            "path" => drop(params.insert(name.to_owned(), value)),
            "query" if parameter["required"] == true => {
                query.push(format!("{name}={}", example.as_str().unwrap()));
                params.insert(name.to_owned(), value);
            }
            _ => {}
        }
    }
    let path = path_of(http.path, &params);
    let path = if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) };
    ExampleRequest { path, body, params: Value::Object(params) }
}

fn path_of(pattern: &str, params: &Map<String, Value>) -> String {
    let part = |part: &str| match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
        Some(name) => params[name].as_str().map_or_else(|| params[name].to_string(), str::to_owned),
        None => part.to_owned(),
    };
    pattern.split('/').map(part).collect::<Vec<_>>().join("/")
}

fn refuses(server: &Server, token: &str, rows: impl Iterator<Item = &'static Row>) -> usize {
    let document = server.get("/openapi.json").expect(200);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = runtime.block_on(Client::connect(server.rpc(), token)).unwrap();
    let mut refused = 0;
    for row in rows {
        let ExampleRequest { path, body, params } = asked(&document, row);
        if let Ok(http) = row.http {
            server.call(token, http.verb.as_str(), &path, body.as_ref()).problem("403_FORBIDDEN");
        }
        // Stopping a watch of one's own connection is for whoever has one.
        if row.rpc.is_ok() && row.name != "watch.stop" {
            match runtime.block_on(client.call::<_, Value>(row.name, &params)) {
                Err(ClientError::Api(error)) if error.code == "403_FORBIDDEN" => {}
                other => panic!("{}: {other:?}", row.name),
            }
        }
        refused += 1;
    }
    refused
}

#[test]
fn executors_may_call_nothing() {
    let server = Server::start();
    assert!(refuses(&server, EXECUTOR, operations::all().filter(|row| row.is_of_callers())) > 40);
}

#[test]
fn tenants_may_not_call_what_is_for_operators() {
    let server = Server::start();
    assert!(refuses(&server, FINANCE, operations::all().filter(|row| row.least == LeastRole::Operator)) > 15);
}
