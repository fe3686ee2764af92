//! A log that is sent while it grows, as server-sent events: `log` with what was written, `end` when no more will be.
//!
//! The id of an event is where to go on, `ATTEMPT-OFFSET`: a browser sends the last one as `Last-Event-ID` when it connects again,
//! and nothing is lost or told twice. A caller who does not read holds up one piece and a half, never the node.

use super::{
    access,
    events::{self, Events, Over, stopped},
    route::{Answered, Call},
    stream,
};
use crate::ops::Operations;
use campanile_schema::{
    error::{ApiError, ErrorCode},
    ids::RunId,
    limits::{FOLLOW_BEAT_MS, FOLLOW_LOOK_MS, FOLLOW_MS, FOLLOW_PIECE_BYTES},
    operations::RunGet,
    rpc::calls::RunCall,
    view::{LogBody, LogView, RunGetBody},
};
use campanile_security::auth::Caller;
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// What is followed, and how far it was sent.
struct Follow {
    ops: Operations,
    caller: Caller,
    run: RunId,
    /// None = the newest, and those that come after it.
    only: Option<u32>,
    attempt: Option<u32>,
    offset: u64,
    filter: LogBody,
    /// Lines of the first piece; None: all.
    tail: Option<u32>,
    events: Events,
}

pub(super) async fn follow(call: Call, run: RunId, body: LogBody) -> Answered {
    let resumed = call.headers.get("last-event-id").map(|id| place(id.to_str().unwrap_or_default())).transpose()?;
    let is_resumed = resumed.is_some();
    let (attempt, offset) = match resumed {
        Some((attempt, offset)) => (Some(attempt), offset),
        None => (body.attempt, body.offset.unwrap_or(0)),
    };
    // The first look is answered as any other call is.
    let first = LogBody { attempt, offset: Some(offset), ..body.clone() };
    call.ops.run_log_part(&call.caller, run, first, FOLLOW_PIECE_BYTES).await?;
    let Ok(seat) = call.shared.follows.clone().try_acquire_owned() else {
        let message = "the node takes no more followers of logs; read the log without follow, or try again";
        return Err(ApiError::new(ErrorCode::Overloaded, message).retry_after(5.0));
    };
    let (pieces, response) = stream::answer(events::MEDIA, 1);
    let mut stopping = call.shared.stopping.clone();
    let revoked = call.revoked();
    let mut follow = Follow {
        ops: call.ops,
        caller: call.caller,
        run,
        only: body.attempt,
        attempt,
        offset,
        // Of those that were there at the beginning; a caller that comes back has them.
        tail: body.tail.filter(|_| !is_resumed),
        filter: body,
        events: Events::new(pieces),
    };
    tokio::spawn(async move {
        let _seat = seat;
        // Some time or other the token is looked at again: the caller connects anew.
        let limit = Duration::from_millis(FOLLOW_MS);
        let sent = tokio::select! {
            sent = timeout(limit, follow.send()) => sent.unwrap_or(Err(Over::Silent)),
            () = stopped(&mut stopping) => Err(Over::Silent),
            () = revoked => Err(Over::Failed(access::no_longer_valid())),
        };
        if let Err(Over::Failed(error)) = sent {
            follow.events.problem(error).await;
        }
    });
    Ok(response)
}

/// `ATTEMPT-OFFSET`.
fn place(id: &str) -> Result<(u32, u64), ApiError> {
    let parts = id.split_once('-').and_then(|(attempt, offset)| Some((attempt.parse().ok()?, offset.parse().ok()?)));
    parts.filter(|(attempt, _)| *attempt > 0).ok_or_else(|| {
        let message = format!("Last-Event-ID: '{}' is not of the form ATTEMPT-OFFSET", id.escape_debug());
        ApiError::new(ErrorCode::InvalidArgument, message)
    })
}

impl Follow {
    async fn send(&mut self) -> Result<(), Over> {
        self.events.begin().await?;
        let mut beaten = Instant::now();
        loop {
            let view = self.look().await?;
            let news = !view.text.is_empty();
            if news {
                let id = format!("{}-{}", view.attempt, view.next_offset);
                self.events.event("log", Some(&id), &view).await?;
                beaten = Instant::now();
            }
            if view.next_offset > self.offset {
                // Also behind lines that the filter left out.
                (self.attempt, self.offset) = (Some(view.attempt), view.next_offset);
            }
            self.tail = None;
            if view.end && self.at_the_end(&view).await? {
                return Ok(());
            }
            if beaten.elapsed() >= Duration::from_millis(FOLLOW_BEAT_MS) {
                self.events.beat(None).await?;
                beaten = Instant::now();
            }
            if !news {
                let look = Duration::from_millis(FOLLOW_LOOK_MS);
                if timeout(look, self.events.gone()).await.is_ok() {
                    return Err(Over::Silent);
                }
            }
        }
    }

    async fn look(&self) -> Result<LogView, ApiError> {
        let body = LogBody {
            attempt: self.attempt,
            offset: Some(self.offset),
            contains: self.filter.contains.clone(),
            level: self.filter.level,
            tail: self.tail,
        };
        self.ops.run_log_part(&self.caller, self.run, body, FOLLOW_PIECE_BYTES).await
    }

    /// The attempt has ended and was sent. Goes on to the next one, if there is to be one.
    async fn at_the_end(&mut self, view: &LogView) -> Result<bool, Over> {
        let run = self.ops.call::<RunGet>(&self.caller, RunCall::new(self.run, RunGetBody::default())).await?;
        let next = run.attempts.iter().find(|attempt| attempt.attempt > view.attempt);
        match (self.only, next) {
            (None, Some(next)) => (self.attempt, self.offset) = (Some(next.attempt), 0),
            (None, None) if !run.state.is_final() => self.attempt = Some(view.attempt).filter(|attempt| *attempt > 0),
            (Some(_), _) | (None, None) => {
                let state = run.attempts.iter().find(|attempt| attempt.attempt == view.attempt).map(|a| a.state);
                let end =
                    json!({"runId": self.run, "runState": run.state, "attempt": view.attempt, "attemptState": state});
                self.events.event("end", None, &end).await?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_or_refused() {
        assert_eq!(place("2-1234").ok(), Some((2, 1234)));
        for wrong in ["", "2", "2-", "-1", "0-5", "a-b", "2--1", "99999999999-1"] {
            assert!(place(wrong).is_err(), "{wrong}");
        }
    }
}
