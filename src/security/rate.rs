//! How often a credential may call: so many calls a second, and as many at once when it was quiet before.

use campanile_schema::error::{ApiError, ErrorCode};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// A credential that was quiet this long is forgotten: it has its whole second by then.
const FORGET: Duration = Duration::from_secs(60);

/// What credentials have left.
pub struct Rate {
    per_sec: f64,
    state: Mutex<State>,
}

struct State {
    left: HashMap<String, Left>,
    cleaned: Instant,
}

struct Left {
    calls: f64,
    at: Instant,
}

impl Rate {
    pub fn new(per_sec: u32, now: Instant) -> Self {
        Self { per_sec: f64::from(per_sec), state: Mutex::new(State { left: HashMap::new(), cleaned: now }) }
    }

    /// Takes one call of a credential's, or says when to come back.
    pub fn take(&self, name: &str, now: Instant) -> Result<(), ApiError> {
        let mut state = self.state.lock();
        if now.saturating_duration_since(state.cleaned) >= FORGET {
            state.cleaned = now;
            state.left.retain(|_, left| now.saturating_duration_since(left.at) < FORGET);
        }
        let full = Left { calls: self.per_sec, at: now };
        let left = state.left.entry(name.to_owned()).or_insert(full);
        let since = now.saturating_duration_since(left.at).as_secs_f64();
        left.calls = (left.calls + since * self.per_sec).min(self.per_sec);
        left.at = now;
        if left.calls < 1.0 {
            let wait = (1.0 - left.calls) / self.per_sec;
            let message = format!("this credential may make {} calls a second", self.per_sec);
            return Err(ApiError::new(ErrorCode::RateLimited, message).retry_after((wait * 1e3).ceil() / 1e3));
        }
        left.calls -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_has_its_calls_a_second_and_others_have_theirs() {
        let begin = Instant::now();
        let after = |ms: u64| begin + Duration::from_millis(ms);
        let rate = Rate::new(10, begin);
        let taken =
            |name: &str, ms: u64, tries: usize| (0..tries).filter(|_| rate.take(name, after(ms)).is_ok()).count();
        assert_eq!((taken("a", 0, 20), taken("b", 0, 20)), (10, 10));
        let refused = rate.take("a", after(50)).unwrap_err();
        assert_eq!((refused.known(), refused.retry_after_sec), (ErrorCode::RateLimited, Some(0.05)));
        assert_eq!((taken("a", 100, 20), taken("a", 600, 20)), (1, 5));
        assert_eq!(taken("a", 120_000, 20), 10, "never more than a second's worth");
        assert_eq!(rate.state.lock().left.len(), 1, "the other one is forgotten");
    }
}
