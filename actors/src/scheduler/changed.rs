//! Reads what a change has left, after the change is durable, because that is the answer to the change. If this read
//! fails, its error must not look like a refusal of the change: the caller would repeat a change that was made.

use campanile_schema::error::{Answer, ApiError, ErrorCode};
use std::{future::Future, time::Duration};
use tokio::time::{Instant, sleep};

/// A shard that moves to another node is found again within this time, mostly.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two reads.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Reads what a change left. Its only error is TIMEOUT, because callers take every other code for a refusal of the change.
pub(super) async fn read_changed<T, F>(read: impl Fn() -> F) -> Answer<T>
where
    F: Future<Output = Answer<T>>,
{
    read_within(PATIENCE, read).await
}

async fn read_within<T, F>(patience: Duration, read: impl Fn() -> F) -> Answer<T>
where
    F: Future<Output = Answer<T>>,
{
    let until = Instant::now() + patience;
    loop {
        match read().await {
            Ok(left) => return Ok(left),
            Err(error) if error.known() == ErrorCode::NotReady && Instant::now() < until => sleep(RETRY_PAUSE).await,
            Err(error) => {
                let what = format!("the change was made, and what it left cannot be read: {}", error.message);
                return Err(ApiError::new(ErrorCode::Timeout, what).retry_after(1.0));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::cell::Cell;

    /// Fails so many times before it succeeds.
    async fn after(failures: u32, code: ErrorCode, patience: Duration) -> (Answer<&'static str>, u32) {
        let tries = Cell::new(0);
        let answer = read_within(patience, || {
            tries.set(tries.get() + 1);
            let failed = tries.get() <= failures;
            async move { if failed { Err(ApiError::new(code, "it moves")) } else { Ok("changed") } }
        })
        .await;
        (answer, tries.get())
    }

    #[tokio::test]
    async fn a_read_after_a_change_is_repeated_and_never_told_as_a_refusal() {
        assert_eq!(after(1, ErrorCode::NotReady, PATIENCE).await, (Ok("changed"), 2));
        for (failures, code) in [(u32::MAX, ErrorCode::NotReady), (1, ErrorCode::NotFound)] {
            let error = after(failures, code, Duration::ZERO).await.0.unwrap_err();
            assert_eq!(error.known(), ErrorCode::Timeout);
            assert!(error.message.contains("the change was made"), "{error}");
            assert!(error.message.contains("it moves"), "{error}");
        }
    }
}
