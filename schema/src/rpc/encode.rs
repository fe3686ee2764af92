//! Writes messages into a buffer that is used again and again. A message that cannot be written leaves the buffer as it was.

use super::{codec::CallFacts, executor::Assignment};
use crate::{
    error::{ApiError, ErrorCode},
    limits::RPC_FRAME_BYTES,
    rpc::method,
};
use rmp::encode::{write_array_len, write_map_len, write_nil, write_str, write_uint};
use serde::Serialize;
use std::borrow::Borrow;

/// A message could not be written. Nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    #[error("the message has {bytes} bytes, a frame holds {RPC_FRAME_BYTES}; ask for less at once")]
    TooLarge { bytes: usize },
    #[error("the message cannot be encoded: {0}")]
    Value(String),
}

impl From<EncodeError> for ApiError {
    fn from(error: EncodeError) -> Self {
        let code = match error {
            EncodeError::TooLarge { .. } => ErrorCode::BodyTooLarge,
            EncodeError::Value(_) => ErrorCode::Internal,
        };
        ApiError::new(code, error.to_string())
    }
}

/// `[0, id, method, [params]]`
pub fn request<T: Serialize>(out: &mut Vec<u8>, id: u32, method: &str, params: &T) -> Result<(), EncodeError> {
    frame(out, |out| {
        array(out, 4)?;
        uint(out, 0)?;
        uint(out, u64::from(id))?;
        string(out, method)?;
        array(out, 1)?;
        value(out, params)
    })
}

/// `[0, id, method, [params]]` of a map that is encoded already, as by [`map`]; `[params, facts]` with facts of the call.
pub fn request_of(
    out: &mut Vec<u8>,
    id: u32,
    method: &str,
    params: &[u8],
    facts: Option<&CallFacts>,
) -> Result<(), EncodeError> {
    frame(out, |out| {
        array(out, 4)?;
        uint(out, 0)?;
        uint(out, u64::from(id))?;
        string(out, method)?;
        array(out, if facts.is_some() { 2 } else { 1 })?;
        out.extend_from_slice(params);
        facts.map_or(Ok(()), |facts| value(out, facts))
    })
}

/// One value alone, for [`request_of`].
pub fn map<T: Serialize>(params: &T) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::new();
    value(&mut out, params).map(|()| out)
}

/// `[2, method, [params]]`
pub fn notification<T: Serialize>(out: &mut Vec<u8>, method: &str, params: &T) -> Result<(), EncodeError> {
    frame(out, |out| {
        array(out, 3)?;
        uint(out, 2)?;
        string(out, method)?;
        array(out, 1)?;
        value(out, params)
    })
}

/// `[1, id, nil, result]`
pub fn result<T: Serialize>(out: &mut Vec<u8>, id: u32, answer: &T) -> Result<(), EncodeError> {
    frame(out, |out| {
        array(out, 4)?;
        uint(out, 1)?;
        uint(out, u64::from(id))?;
        nil(out)?;
        value(out, answer)
    })
}

/// `[1, id, error, nil]`
pub fn error(out: &mut Vec<u8>, id: u32, error: &ApiError) -> Result<(), EncodeError> {
    frame(out, |out| {
        array(out, 4)?;
        uint(out, 1)?;
        uint(out, u64::from(id))?;
        value(out, error)?;
        nil(out)
    })
}

/// `[1, ...]` for either outcome; an answer that does not fit becomes an error that says so.
pub fn answer<T: Serialize>(out: &mut Vec<u8>, id: u32, outcome: &Result<T, ApiError>) {
    let refused = match outcome {
        Ok(ok) => match result(out, id, ok) {
            Ok(()) => return,
            Err(e) => ApiError::from(e),
        },
        Err(e) => match error(out, id, e) {
            Ok(()) => return,
            Err(e) => ApiError::from(e),
        },
    };
    // A code and one sentence always fit.
    let _ = error(out, id, &refused);
}

/// `executor.assign` with as many of `items` as fit `max_bytes` (at least one); how many were written.
pub fn assign(out: &mut Vec<u8>, items: &[impl Borrow<Assignment>], max_bytes: usize) -> Result<usize, EncodeError> {
    let mut written = 0;
    frame(out, |out| {
        let begin = out.len();
        array(out, 3)?;
        uint(out, 2)?;
        string(out, method::ASSIGN)?;
        array(out, 1)?;
        write_map_len(out, 1).map_err(wrong)?;
        string(out, "items")?;
        // A length of fixed width, so that it can be set when the count is known.
        out.push(0xdd);
        let length = out.len();
        out.extend_from_slice(&[0; 4]);
        for item in items {
            let before = out.len();
            value(out, item.borrow())?;
            if written > 0 && out.len() - begin > max_bytes {
                out.truncate(before);
                break;
            }
            written += 1;
        }
        out[length..length + 4].copy_from_slice(&(written as u32).to_be_bytes());
        Ok(())
    })?;
    Ok(written)
}

/// Writes one frame, or nothing.
fn frame(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>) -> Result<(), EncodeError> {
    let begin = out.len();
    let outcome = write(out).and_then(|()| match out.len() - begin {
        bytes if bytes > RPC_FRAME_BYTES => Err(EncodeError::TooLarge { bytes }),
        _ => Ok(()),
    });
    if outcome.is_err() {
        out.truncate(begin);
    }
    outcome
}

fn value<T: Serialize>(out: &mut Vec<u8>, value: &T) -> Result<(), EncodeError> {
    rmp_serde::encode::write_named(out, value).map_err(wrong)
}
fn array(out: &mut Vec<u8>, items: u32) -> Result<(), EncodeError> {
    write_array_len(out, items).map(drop).map_err(wrong)
}
fn uint(out: &mut Vec<u8>, n: u64) -> Result<(), EncodeError> {
    write_uint(out, n).map(drop).map_err(wrong)
}
fn string(out: &mut Vec<u8>, text: &str) -> Result<(), EncodeError> {
    write_str(out, text).map_err(wrong)
}
fn nil(out: &mut Vec<u8>) -> Result<(), EncodeError> {
    write_nil(out).map_err(|e| EncodeError::Value(e.to_string()))
}
fn wrong(error: impl std::fmt::Display) -> EncodeError {
    EncodeError::Value(error.to_string())
}
