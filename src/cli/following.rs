//! Events of a node that go on for long: heard one after the other; a broken connection is made again where it broke, for a while.

use super::{failure::Failure, remote::Remote};
use campanile_schema::error::ErrorCode;
use campanile_serve::api::Problem;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Pause before the connection is made again.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// A node that was heard may be away so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is asked for.
pub(super) struct Followed<'a> {
    pub path: &'a str,
    pub query: &'a [(&'a str, Option<String>)],
    /// Told when it breaks off for good.
    pub what: &'a str,
    /// When the node ends it in good order, without having said that it is the end, that is the end.
    pub ends: bool,
}

/// Gives every event (its name and data) to `hear`, until that says true: no more is wanted.
pub(super) fn follow(
    remote: &Remote,
    followed: &Followed<'_>,
    mut hear: impl FnMut(&str, &Value) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let (mut last, mut heard) = (None, None);
    loop {
        let (mut over, mut failed) = (false, None);
        let came = remote.events(followed.path, followed.query, last.clone().as_deref(), |event| {
            heard = Some(Instant::now());
            let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
            last = event.id.or_else(|| last.take());
            if event.name == "problem" {
                failed = serde_json::from_value::<Problem>(data).ok().map(|problem| problem.into_error().into());
            } else {
                match hear(&event.name, &data) {
                    Ok(wanted) => over = wanted,
                    Err(failure) => failed = Some(failure),
                }
            }
            !over && failed.is_none()
        });
        let failure = match (over, failed, came) {
            (true, None, _) => return Ok(()),
            (_, Some(failure), _) | (_, None, Err(failure)) => failure,
            (false, None, Ok(())) if followed.ends => return Ok(()),
            (false, None, Ok(())) => Failure::unreachable(format!("{} broke off", followed.what)),
        };
        // What a node that comes back can make good; never at first, when the call itself may be wrong.
        let passing = failure.code == ErrorCode::NotReady.exit_code();
        if !passing || heard.is_none_or(|at: Instant| at.elapsed() > PATIENCE) {
            return Err(failure);
        }
        std::thread::sleep(RETRY_PAUSE);
    }
}
