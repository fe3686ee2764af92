//! Creates a job, triggers it, waits for its run: `cargo run -p campanile-client --example caller -- HOST:PORT TOKEN`.

use campanile_client::{
    Client, ClientError,
    schema::{
        error::ErrorCode,
        job::{JobSpec, Trigger},
        payload::Payload,
        view::{LogBody, TriggerBody},
    },
};
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), ClientError> {
    let mut args = std::env::args().skip(1);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:7701".to_owned());
    let token = args.next().unwrap_or_default();
    let client = Client::connect(address, token).await?;

    let mut spec = JobSpec::new("default", "example_greeting", Trigger::Manual {});
    spec.params = Payload(r#"{"name":"nobody"}"#.to_owned());
    // With a key, starting this example again finds the job instead of failing.
    let job = client.job_create_once(spec, "example").await?.job_id;

    let body = TriggerBody { params: Some(Payload(r#"{"name":"Ada"}"#.to_owned())), ..TriggerBody::default() };
    let mut run = match client.job_trigger(job, body).await {
        Err(ClientError::Api(error)) if error.known() == ErrorCode::RunActive => {
            println!("a run is active already: {}", error.message);
            return Ok(());
        }
        other => other?,
    };
    println!("run {} is {}", run.run_id, run.state);
    while !run.state.is_final() {
        tokio::time::sleep(Duration::from_millis(200)).await;
        run = client.run_get(run.run_id).await?;
    }
    println!("run {} is {}: {:?}", run.run_id, run.state, run.result.or(run.last_error.map(Payload)));
    print!("{}", client.run_log(run.run_id, LogBody::default()).await?.text);
    Ok(())
}
