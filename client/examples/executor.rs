//! Runs the job of the `caller` example until Ctrl-C: `cargo run -p campanile-client --example executor -- HOST:PORT TOKEN`.

use campanile_client::{Context, Executor, JobError};
use serde::Deserialize;
use std::time::Duration;

#[derive(Deserialize)]
struct Greeting {
    name: String,
}

async fn greet(ctx: Context, params: Greeting) -> Result<String, JobError> {
    ctx.log(format!("attempt {} of {}", ctx.attempt(), ctx.invocation_id()));
    // Long work looks out for being told to stop: canceled, timed out, replaced.
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(100)) => Ok(format!("hello, {}", params.name)),
        reason = ctx.canceled() => Err(JobError::message(format!("stopped early: {reason:?}"))),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:7701".to_owned());
    let token = args.next().unwrap_or_default();
    let executor = Executor::builder(address, token).slots(8).handler("example_greeting", greet).build()?.start();
    executor.ready().await;
    println!("registered; Ctrl-C to end");
    tokio::signal::ctrl_c().await?;
    // What runs may finish; results are handed in; nothing new is taken.
    let left = executor.drain(Duration::from_secs(30)).await;
    println!("{} bodies ran; {} results were not handed in", left.ended, left.unacknowledged);
    Ok(())
}
