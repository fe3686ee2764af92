//! Texts of callers that take long to parse are parsed on threads of their own: few at once, within a time, and not for a caller
//! who has gone. The threads that serve everybody else are never kept busy by one text.

use super::Answer;
use campanile_schema::{
    error::{ApiError, ErrorCode},
    limits::{PARSE_MS, PARSE_PLACES, PARSE_WAIT_MS},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{sync::Semaphore, time::timeout};

/// Places for parsing. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Parsers {
    places: Arc<Semaphore>,
}

impl Default for Parsers {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(PARSE_PLACES)) }
    }
}

/// Whether parsing is still worth it.
pub struct GoOn {
    abandoned: Arc<AtomicBool>,
    until: Instant,
}

impl GoOn {
    pub fn now(&self) -> bool {
        !self.abandoned.load(Ordering::Relaxed) && Instant::now() < self.until
    }
}

/// Whoever waits for the answer; when it is dropped, parsing ends.
struct ParseWaiter(Arc<AtomicBool>);

impl Drop for ParseWaiter {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Parsers {
    /// Runs `parse` when there is a place. It looks at [`GoOn`] now and then, and ends early when that says so.
    pub async fn run<T: Send + 'static>(&self, parse: impl FnOnce(&GoOn) -> T + Send + 'static) -> Answer<T> {
        let waited = timeout(Duration::from_millis(PARSE_WAIT_MS), self.places.clone().acquire_owned()).await;
        let Ok(Ok(place)) = waited else {
            let message = "too many large bodies are being read at once; send this call again later";
            return Err(ApiError::new(ErrorCode::Overloaded, message).retry_after(1.0));
        };
        let waiting = ParseWaiter(Arc::default());
        let go_on = GoOn { abandoned: waiting.0.clone(), until: Instant::now() + Duration::from_millis(PARSE_MS) };
        let parsed = tokio::task::spawn_blocking(move || {
            // Held until the thread is free again, also when nobody waits any more.
            let _place = place;
            let parsed = parse(&go_on);
            (Instant::now() < go_on.until).then_some(parsed)
        });
        match parsed.await {
            Ok(Some(parsed)) => Ok(parsed),
            Ok(None) => {
                let message = format!("reading this took longer than {} s: send less at once", PARSE_MS / 1_000);
                Err(ApiError::new(ErrorCode::BodyTooLarge, message))
            }
            Err(why) => {
                tracing::error!(%why, "bug: reading a caller's text failed");
                Err(ApiError::new(ErrorCode::Internal, "a bug in reading this; report it with the request id"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::mpsc;

    #[tokio::test]
    async fn it_ends_when_nobody_waits_and_places_are_few() {
        let parsers = Parsers::default();
        let (ended, has_ended) = mpsc::channel();
        let mut calls: Vec<_> = (0..PARSE_PLACES)
            .map(|_| {
                let (parsers, ended) = (parsers.clone(), ended.clone());
                tokio::spawn(async move {
                    parsers
                        .run(move |go_on| {
                            while go_on.now() {
                                std::thread::yield_now();
                            }
                            ended.send(()).unwrap();
                        })
                        .await
                })
            })
            .collect();
        while parsers.places.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        calls.drain(..).for_each(|call| call.abort());
        // The next one gets a place as soon as those threads are free.
        assert!(parsers.run(|go_on| go_on.now()).await.unwrap());
        has_ended.recv().unwrap();
    }
}
