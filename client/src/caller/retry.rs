//! What is asked again by itself: calls that have the same effect however often they arrive, and only for reasons that pass.

use crate::{clock::random, error::ClientError};
use campanile_schema::{
    error::ErrorCode,
    operations::{self, Row},
};
use std::time::Duration;

/// How often, and after which pauses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    /// The first try counts; 1 = never again.
    pub attempts: u32,
    /// Before the second try; doubles with each, and is drawn from its upper half.
    pub first: Duration,
    /// Longest pause.
    pub longest: Duration,
    /// Also when a node that answers refuses for now (overloaded, not ready, called too often), not only when the answer was lost.
    pub refusals: bool,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 5, first: Duration::from_millis(100), longest: Duration::from_secs(5), refusals: true }
    }
}

impl Retry {
    /// Every refusal and every lost answer is the caller's to handle.
    pub const NEVER: Self = Self { attempts: 1, first: Duration::ZERO, longest: Duration::ZERO, refusals: false };
    /// A lost answer is asked for again; what a node says is the caller's to handle.
    pub const LOST: Self =
        Self { attempts: 5, first: Duration::from_millis(100), longest: Duration::from_secs(5), refusals: false };

    /// Before the try after this one (from 1); None: it is over. A node that says when to come again is believed.
    pub(super) fn pause(&self, tried: u32, error: &ClientError) -> Option<Duration> {
        if tried >= self.attempts || !passes(error) || (error.api().is_some() && !self.refusals) {
            return None;
        }
        let doubled = self.first.saturating_mul(1 << (tried - 1).min(20)).min(self.longest);
        let half = doubled / 2;
        let spread = u64::try_from(half.as_millis()).unwrap_or(u64::MAX).max(1);
        let drawn = half + Duration::from_millis(random() % spread);
        let told = error.api().and_then(|error| error.retry_after_sec).filter(|seconds| seconds.is_finite());
        let told = told.map_or(Duration::ZERO, |seconds| Duration::from_secs_f64(seconds.clamp(0.0, 60.0)));
        Some(drawn.max(told))
    }
}

/// Whether it may be better a moment later.
fn passes(error: &ClientError) -> bool {
    match error {
        ClientError::Io { .. } => true,
        ClientError::Api(error) => {
            matches!(error.known(), ErrorCode::Overloaded | ErrorCode::NotReady | ErrorCode::RateLimited)
        }
        ClientError::Timeout { .. } | ClientError::Protocol(_) => false,
    }
}

/// Whether a call may arrive twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RepeatEffect {
    /// It changes nothing, or carries a key by which the node knows it again.
    Safe,
    Once,
}

impl RepeatEffect {
    /// Of a method that is called without a key. One that this client does not know may change something.
    pub(super) fn of(name: &str) -> Self {
        operations::named(name).map_or(Self::Once, Self::of_row)
    }

    /// Of an operation that is called without a key.
    pub(super) fn of_row(row: &Row) -> Self {
        match row.effect {
            operations::CallEffect::Read => Self::Safe,
            operations::CallEffect::Once => Self::Once,
        }
    }

    /// Of a call that may carry a key.
    pub(super) fn keyed(key: Option<&str>) -> Self {
        if key.is_some() { Self::Safe } else { Self::Once }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use campanile_schema::error::ApiError;

    #[test]
    fn pauses_grow_are_spread_and_end() {
        let (first, longest) = (Duration::from_millis(100), Duration::from_millis(300));
        let retry = Retry { attempts: 4, first, longest, refusals: true };
        let lost = ClientError::io("a", "closed");
        for (tried, least, most) in [(1, 50, 100), (2, 100, 200), (3, 150, 300)] {
            let pause = retry.pause(tried, &lost).map_or(0, |pause| pause.as_millis());
            assert!((least..=most).contains(&pause), "{tried}: {pause}");
        }
        assert_eq!(retry.pause(4, &lost), None);
        assert_eq!(Retry::NEVER.pause(1, &lost), None);
    }

    #[test]
    fn only_what_passes_is_tried_again() {
        let retry = Retry::default();
        let refused = |code| ClientError::Api(ApiError::new(code, "x"));
        for code in ErrorCode::ALL {
            let again = retry.pause(1, &refused(*code)).is_some();
            let wanted = ["429_RATE_LIMITED", "503_DISPATCHER_OVERLOADED", "503_NOT_READY"].contains(&code.as_str());
            assert_eq!(again, wanted, "{}", code.as_str());
        }
        let busy = refused(ErrorCode::Overloaded);
        assert_eq!((Retry::LOST.pause(1, &busy), Retry::NEVER.pause(1, &busy)), (None, None));
        assert_eq!(retry.pause(1, &ClientError::Timeout { method: "x", seconds: 1.0 }), None);
        let told = ClientError::Api(ApiError::new(ErrorCode::Overloaded, "x").retry_after(7.5));
        assert_eq!(retry.pause(1, &told), Some(Duration::from_millis(7_500)));
    }
}
