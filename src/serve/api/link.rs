//! The state of a connection: it reads a head, it handles a request, or it is idle. The transport reports bytes and the
//! service reports requests; both together decide when a connection has used up its time.

use super::{
    connection::{Connection, Phase},
    places::{PlaceKind, Places},
};
use axum::body::{Body, Bytes, HttpBody};
use campanile_schema::limits::{HTTP_HEAD_KEPT_MS, HTTP_HEAD_MS, HTTP_IDLE_MS};
use http_body::{Frame, SizeHint};
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::time::Instant;

/// One connection and its place. Shared by its transport and its requests.
pub(super) struct Link {
    connection: Arc<Connection>,
    places: Arc<Places>,
    pub kind: PlaceKind,
}

impl Link {
    pub fn new(places: Arc<Places>, kind: PlaceKind) -> Arc<Self> {
        Arc::new(Self { connection: Arc::default(), places, kind })
    }

    /// Bytes came.
    pub fn came(&self) {
        let mut state = self.connection.state.lock();
        state.moved = Instant::now();
        if let Phase::Idle(turn) = state.phase {
            state.phase = Phase::Head(state.moved);
            drop(state);
            self.places.busy(turn);
        }
    }

    /// Bytes went.
    pub fn went(&self) {
        self.connection.state.lock().moved = Instant::now();
    }

    /// Until when the connection may go on like this; None = it is to be closed now.
    pub fn until(&self) -> Option<Instant> {
        let state = self.connection.state.lock();
        let head = match self.kind {
            PlaceKind::Everything => HTTP_HEAD_MS,
            PlaceKind::Health => HTTP_HEAD_KEPT_MS,
        };
        match state.phase {
            Phase::Head(since) => Some(since + Duration::from_millis(head)),
            Phase::Busy | Phase::Idle(_) => Some(state.moved + Duration::from_millis(HTTP_IDLE_MS)),
            Phase::Closed => None,
        }
    }

    /// Who is to hear that the connection is closed.
    pub fn wake(&self, waker: &Waker) {
        self.connection.waker.register(waker);
    }

    /// A request has come, and is answered until what this returns is dropped.
    pub fn begin(self: Arc<Self>) -> ActiveRequest {
        let before = {
            let mut state = self.connection.state.lock();
            match state.phase {
                Phase::Closed => Phase::Closed,
                Phase::Head(_) | Phase::Busy | Phase::Idle(_) => std::mem::replace(&mut state.phase, Phase::Busy),
            }
        };
        if let Phase::Idle(turn) = before {
            self.places.busy(turn);
        }
        ActiveRequest { link: self }
    }

    #[cfg(test)]
    pub fn is_closed(&self) -> bool {
        self.connection.state.lock().phase == Phase::Closed
    }

    /// The transport is gone.
    pub fn gone(&self) {
        let before = std::mem::replace(&mut self.connection.state.lock().phase, Phase::Closed);
        if let Phase::Idle(turn) = before {
            self.places.busy(turn);
        }
    }

    fn end(self: &Arc<Self>) {
        if self.connection.state.lock().phase != Phase::Busy {
            return;
        }
        if self.kind == PlaceKind::Health {
            // Such a place is for one answer.
            self.connection.close();
            return;
        }
        // Without the lock: the places are locked before links are.
        let turn = self.places.idle(self.connection.clone());
        let mut state = self.connection.state.lock();
        if state.phase == Phase::Busy {
            state.phase = Phase::Idle(turn);
            state.moved = Instant::now();
        } else {
            drop(state);
            self.places.busy(turn);
        }
    }
}

/// A request that is being answered.
pub(super) struct ActiveRequest {
    link: Arc<Link>,
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.link.end();
    }
}

/// An answer's body; the request is over when it is.
pub(super) struct TrackedBody {
    body: Body,
    _answering: Option<ActiveRequest>,
}

impl TrackedBody {
    /// The same body, which keeps the connection busy until it has been sent or dropped.
    pub fn body(body: Body, answering: Option<ActiveRequest>) -> Body {
        Body::new(Self { body, _answering: answering })
    }
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }
    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
