//! Creates a job, triggers it, waits for its run: `cargo run -p campanile-client --example caller -- HOST:PORT TOKEN`.

use campanile_client::{
    Client, ClientError, Job, WatchEvent,
    schema::{
        error::ErrorCode,
        payload::Payload,
        view::{LogBody, TriggerBody},
        watch::WatchRuns,
    },
};

#[tokio::main]
async fn main() -> Result<(), ClientError> {
    let mut args = std::env::args().skip(1);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:7701".to_owned());
    let token = args.next().unwrap_or_default();
    let client = Client::connect(address, token).await?;

    // With a key, starting this example again finds the job instead of failing.
    let job = client.job_create_once(Job::manual("example_greeting").label("of", "example"), "example").await?.job_id;

    let body = TriggerBody { params: Some(Payload(r#"{"name":"Ada"}"#.to_owned())), ..TriggerBody::default() };
    let run = match client.job_trigger(job, body).await {
        Err(ClientError::Api(error)) if error.known() == ErrorCode::RunActive => {
            println!("a run is active already: {}", error.message);
            return Ok(());
        }
        other => other?,
    };
    println!("run {} is {}", run.run_id, run.state);
    // Its states as they become durable; it ends with the run.
    let mut changes = client.run_watch(WatchRuns { run_id: Some(run.run_id), ..WatchRuns::default() }).await?;
    while let Some(heard) = changes.next().await? {
        if let WatchEvent::Change(change) = heard {
            println!("{} {}", change.at, change.state);
        }
    }
    let run = client.run_get(run.run_id).await?;
    println!("run {} is {}: {:?}", run.run_id, run.state, run.result.or(run.last_error.map(Payload)));
    print!("{}", client.run_log(run.run_id, LogBody::default()).await?.text);
    Ok(())
}
