//! Counts Ctrl-C and SIGTERM: how often somebody asked for the end.

use super::Outcome;
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};
use tokio::sync::watch::{Receiver, channel};

/// Asked so often, everything is killed at once.
const KILLS: u32 = 2;

/// See the module's text. Cheap to clone.
#[derive(Clone)]
pub(super) struct Stop {
    asked: Receiver<u32>,
    kills_at: Arc<AtomicU32>,
}

impl Stop {
    /// Counts signals from now on.
    pub fn on_signals() -> Self {
        let (send, asked) = channel(0);
        let kills_at = Arc::new(AtomicU32::new(KILLS));
        let at = Arc::clone(&kills_at);
        tokio::spawn(async move {
            use tokio::signal::unix::{SignalKind, signal};
            let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
            let (Ok(mut interrupt), Ok(mut term)) = signals else { return };
            for times in 1.. {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = term.recv() => {}
                }
                if times >= at.load(Ordering::Relaxed) {
                    crate::process::children::kill_all();
                    std::process::exit(i32::from(Outcome::Interrupted.exit_code()));
                }
                // The last receiver is gone only when all is over.
                let _ = send.send(times);
            }
        });
        Self { asked, kills_at }
    }

    pub fn is_wanted(&self) -> bool {
        *self.asked.borrow() > 0
    }

    /// Returns once somebody has asked for the end.
    pub async fn wanted(&self) {
        self.times(1).await;
    }

    /// What follows ends when somebody asks once more, and that does not kill everything: returns how often that is.
    pub fn once_more(&self) -> u32 {
        let next = *self.asked.borrow() + 1;
        self.kills_at.store(next + 1, Ordering::Relaxed);
        next
    }

    /// Returns once somebody has asked so often.
    pub async fn times(&self, times: u32) {
        // Without a sender nobody can ask.
        if self.asked.clone().wait_for(|asked| *asked >= times).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
