//! Answers that are sent piece by piece while they are made. Whoever makes them waits when the caller does not read, and hears of it
//! when the caller is gone.

use super::route::page;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::Response;
use http_body::Frame;
use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::sync::mpsc;

/// The pieces of an answer.
struct Pieces(mpsc::Receiver<Bytes>);

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;
    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// A good answer whose pieces are sent as they come; at most `waiting` wait for the caller.
pub(super) fn answer(media: &'static str, waiting: usize) -> (mpsc::Sender<Bytes>, Response<Body>) {
    let (pieces, receiver) = mpsc::channel(waiting);
    (pieces, page(media, Body::new(Pieces(receiver))))
}
