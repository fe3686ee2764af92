//! Changes as they become durable. A watch finds its place again by itself when its connection breaks or its node goes away; what
//! was lost meanwhile is told, not hidden.

use super::{
    Client,
    link::{Call, WatchNotification},
    retry::{RepeatEffect, Retry},
};
use crate::error::ClientError;
use campanile_schema::{
    error::{ApiError, ErrorCode},
    ids::RunId,
    limits::{CLIENT_CHANGES_WAITING, WATCH_BEAT_MS},
    rpc::{codec::from_map, method},
    view::RunView,
    watch::{Changed, JobChange, RunChange, WatchEnded, WatchJobs, WatchRuns, Watching},
};
use serde::{Serialize, de::DeserializeOwned};
use std::{collections::VecDeque, marker::PhantomData, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

/// A watch that hears nothing for so long has lost its node: it hears of each beat.
const SILENCE: Duration = Duration::from_millis(2 * WATCH_BEAT_MS + 5_000);
/// A watch that cannot be opened again for so long gives up.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between attempts to open it again.
const RETRY_PAUSE: Retry =
    Retry { attempts: u32::MAX, first: Duration::from_millis(100), longest: Duration::from_secs(2), refusals: true };

/// What a watch tells.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchEvent<T> {
    Change(T),
    /// So many changes at least, of all that the node saw, came and went unheard: read anew what must be known.
    Dropped(u64),
}

/// Changes, one after the other; dropped, it is ended. `T` is [`RunChange`] or [`JobChange`].
pub struct Changes<T> {
    client: Client,
    method: &'static str,
    body: Body,
    notifications: mpsc::Receiver<WatchNotification>,
    /// Heard and not yet given out.
    waiting: VecDeque<WatchEvent<T>>,
    ended: bool,
    item: PhantomData<T>,
}

/// What was asked for, with the place that was reached.
#[derive(Clone)]
enum Body {
    Runs(WatchRuns),
    Jobs(WatchJobs),
}

impl Body {
    fn reached(&mut self, cursor: String) {
        match self {
            Self::Runs(body) => body.after = Some(cursor),
            Self::Jobs(body) => body.after = Some(cursor),
        }
    }
}

impl Serialize for Body {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Runs(body) => body.serialize(s),
            Self::Jobs(body) => body.serialize(s),
        }
    }
}

impl Client {
    /// Runs as they change. That of one run begins with its state, and ends after its end.
    pub async fn run_watch(&self, body: WatchRuns) -> Result<Changes<RunChange>, ClientError> {
        Changes::open(self.clone(), method::RUN_WATCH, Body::Runs(body)).await
    }

    /// Definitions of jobs as they change.
    pub async fn job_watch(&self, body: WatchJobs) -> Result<Changes<JobChange>, ClientError> {
        Changes::open(self.clone(), method::JOB_WATCH, Body::Jobs(body)).await
    }

    /// Waits for the end of a run, at most so long; its state then. No polling: the node answers when there is something to say.
    pub async fn run_wait(&self, run: RunId, patience: Duration) -> Result<RunView, ClientError> {
        /// One question; well below the silence after which a connection counts as broken.
        const QUESTION: Duration = Duration::from_secs(20);
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let wait = left.min(QUESTION);
            let patient = self.with_timeout(self.timeout + wait);
            let view = patient.run_get_after(run, wait).await?;
            if view.state.is_final() || left <= wait {
                return Ok(view);
            }
        }
    }
}

impl<T: DeserializeOwned> Changes<T> {
    async fn open(client: Client, method: &'static str, body: Body) -> Result<Self, ClientError> {
        let notifications = ask(&client, method, &body).await?;
        Ok(Self { client, method, body, notifications, waiting: VecDeque::new(), ended: false, item: PhantomData })
    }

    /// The next change. None: the one run that was watched is final, and that was told.
    pub async fn next(&mut self) -> Result<Option<WatchEvent<T>>, ClientError> {
        loop {
            if let Some(next) = self.waiting.pop_front() {
                return Ok(Some(next));
            }
            if self.ended {
                return Ok(None);
            }
            match tokio::time::timeout(SILENCE, self.notifications.recv()).await {
                Ok(Some(WatchNotification { method: method::WATCH_ENDED, params })) => self.over(&params)?,
                Ok(Some(notification)) => self.take(&notification.params)?,
                // The connection is gone, the node is silent, or this end did not keep up.
                Ok(None) | Err(_) => self.open_again().await?,
            }
        }
    }

    /// Where it stands; another watch can go on `after` it.
    pub fn cursor(&self) -> Option<&str> {
        match &self.body {
            Body::Runs(body) => body.after.as_deref(),
            Body::Jobs(body) => body.after.as_deref(),
        }
    }

    fn take(&mut self, params: &[u8]) -> Result<(), ClientError> {
        let changed: Changed<T> = from_map(params).map_err(|error| ClientError::Protocol(error.message))?;
        if changed.dropped > 0 {
            self.waiting.push_back(WatchEvent::Dropped(changed.dropped));
        }
        self.waiting.extend(changed.items.into_iter().map(WatchEvent::Change));
        self.body.reached(changed.cursor);
        Ok(())
    }

    fn over(&mut self, params: &[u8]) -> Result<(), ClientError> {
        let ended: WatchEnded = from_map(params).map_err(|error| ClientError::Protocol(error.message))?;
        match ended.code {
            None => self.ended = true,
            // Its node restarts or stops: opened again, perhaps at another.
            Some(code) if code == ErrorCode::NotReady.as_str() => self.notifications.close(),
            Some(code) => {
                let message = ended.message.unwrap_or_default();
                return Err(ClientError::Api(ApiError { code, message, detail: None, retry_after_sec: None }));
            }
        }
        Ok(())
    }

    async fn open_again(&mut self) -> Result<(), ClientError> {
        let until = Instant::now() + PATIENCE;
        let mut tried = 0u32;
        loop {
            tried = tried.saturating_add(1);
            match ask(&self.client, self.method, &self.body).await {
                Ok(notifications) => {
                    self.notifications = notifications;
                    return Ok(());
                }
                // No answer in time is as passing as a lost connection: to watch changes nothing.
                Err(ClientError::Timeout { .. }) if Instant::now() < until => {}
                Err(error) => match RETRY_PAUSE.pause(tried, &error) {
                    Some(pause) if Instant::now() + pause < until => tokio::time::sleep(pause).await,
                    Some(_) | None => return Err(error),
                },
            }
        }
    }
}

/// Asks for a watch; what it tells comes out of the receiver.
async fn ask(
    client: &Client,
    method: &'static str,
    body: &Body,
) -> Result<mpsc::Receiver<WatchNotification>, ClientError> {
    let (tell, notifications) = mpsc::channel(CLIENT_CHANGES_WAITING);
    let make =
        |params, reply: oneshot::Sender<_>| Call { method, params, facts: None, reply, watch: Some(tell.clone()) };
    // Once: a watch that was opened and not heard of would be there twice.
    client.ask::<_, Watching>(method, body, RepeatEffect::Once, make).await.map(|_| notifications)
}
