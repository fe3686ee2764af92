//! The end of a session: how to wait for an answer without waiting for ever when the session ends, and threads whose
//! failure ends the session.

use campanile_ports::StoreError;
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use tokio::sync::{Notify, mpsc, oneshot};

/// Once over, nothing of the session counts any more.
#[derive(Default)]
pub struct Shutdown {
    over: AtomicBool,
    told: Notify,
}

impl Shutdown {
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    pub(crate) fn tell(&self) {
        self.over.store(true, Ordering::Release);
        self.told.notify_waiters();
    }

    /// Waits so long; true: the session is over, at once when it was before.
    pub(crate) async fn comes_within(&self, wait: Duration) -> bool {
        let mut told = std::pin::pin!(self.told.notified());
        told.as_mut().enable();
        self.is_over() || tokio::time::timeout(wait, told).await.is_ok()
    }

    /// What an actor of the session answers; None = it will not. Most actors that end drop what they were asked, and who waits hears of
    /// it. But a message that is sent while its actor ends can stay in the queue for as long as anybody can send to it
    /// (<https://github.com/tokio-rs/tokio/issues/7714>), so the end of the session is waited for too.
    pub async fn or_answer<T>(&self, mut answer: oneshot::Receiver<T>) -> Option<T> {
        let mut told = std::pin::pin!(self.told.notified());
        // From here on no end is overlooked.
        told.as_mut().enable();
        if self.is_over() {
            return answer.try_recv().ok();
        }
        tokio::select! {
            biased;
            answered = &mut answer => answered.ok(),
            () = told => answer.try_recv().ok(),
        }
    }
}

/// Starts a thread of a session. Its error ends the session, and so does a panic: or those who wait for the thread would wait for ever.
pub(crate) fn thread(
    name: &'static str,
    failures: mpsc::UnboundedSender<StoreError>,
    body: impl FnOnce() -> Result<(), StoreError> + Send + 'static,
) -> std::io::Result<()> {
    let run = move || {
        let alarm = Alarm { name, failures };
        if let Err(error) = body() {
            let _ = alarm.failures.send(error);
        }
    };
    std::thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}

struct Alarm {
    name: &'static str,
    failures: mpsc::UnboundedSender<StoreError>,
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ =
                self.failures.send(StoreError::Unavailable(format!("the session's thread '{}' panicked", self.name)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test]
    async fn a_thread_that_fails_or_panics_ends_the_session_and_one_that_returns_does_not() {
        let told = async |body: fn() -> Result<(), StoreError>| {
            let (failures, mut failed) = mpsc::unbounded_channel();
            thread("tested", failures, body).unwrap();
            failed.recv().await.map(|error| error.to_string())
        };
        assert_eq!(told(|| Ok(())).await, None);
        assert!(told(|| Err(StoreError::Unavailable("no disk".to_owned()))).await.unwrap().contains("no disk"));
        assert!(told(|| panic!("on purpose")).await.unwrap().contains("'tested' panicked"));
    }

    #[tokio::test]
    async fn nobody_waits_for_a_message_that_was_left_in_a_queue() {
        let shutdown = Arc::new(Shutdown::default());
        let (left_in_a_queue, answer) = oneshot::channel::<u8>();
        let waiting = tokio::spawn({
            let shutdown = shutdown.clone();
            async move { shutdown.or_answer(answer).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        shutdown.tell();
        assert_eq!(waiting.await.unwrap(), None);
        drop(left_in_a_queue);
        let (_left_later, answer) = oneshot::channel::<u8>();
        assert_eq!(shutdown.or_answer(answer).await, None, "it was over before");
    }

    #[tokio::test]
    async fn who_looks_again_and_again_hears_of_the_end() {
        let shutdown = Shutdown::default();
        assert!(!shutdown.comes_within(Duration::from_millis(1)).await);
        let tell = async {
            tokio::task::yield_now().await;
            shutdown.tell();
        };
        let (over, ()) = tokio::join!(shutdown.comes_within(Duration::from_secs(5)), tell);
        assert!(over);
        assert!(shutdown.comes_within(Duration::from_secs(5)).await);
    }

    #[tokio::test]
    async fn an_answer_that_is_there_counts_also_after_the_end() {
        let shutdown = Shutdown::default();
        let (port, answer) = oneshot::channel();
        port.send(7).unwrap();
        assert_eq!(shutdown.or_answer(answer).await, Some(7));
        let (port, answer) = oneshot::channel();
        port.send(8).unwrap();
        shutdown.tell();
        assert_eq!(shutdown.or_answer(answer).await, Some(8));
        let (port, answer) = oneshot::channel::<u8>();
        drop(port);
        assert_eq!(shutdown.or_answer(answer).await, None);
    }
}
