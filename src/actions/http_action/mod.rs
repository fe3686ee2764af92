//! Carries out an HTTP action: one request an attempt, from the executor's machine.
//!
//! **What.** [`run`] fills the request in for its attempt, sends it, writes the head of the answer to the run's log, and judges
//! the status. A run that is stopped, or whose time is over, ends its connection at once.
//!
//! **Whom it calls.** Whoever may create jobs chooses the URL, so requests go only to public addresses, unless the executor was
//! told to allow more ([`Allowed`]). What counts is the address that is connected to: a name is resolved once, each of its addresses
//! judged, and the connection made to one of those, so that a name that changes meanwhile changes nothing. Redirects are followed
//! only as often as the action says, and judged anew each time. Proxies of the environment are not used.
//!
//! **What it never does.** It keeps no connection for another attempt, sends no cookie, and follows no redirect from https to http.
//! A request cannot be found again after the executor has died: it counts as lost, as with any other body.
//!
//! Files: `run` an attempt from end to end; `request` the headers that tell of the attempt; `exchange` sending, redirects, the
//! answer; `connect` resolving, judging, connecting, TLS; `address` who may be called; `transcript` what the log gets.

mod address;
mod connect;
mod exchange;
mod request;
mod run;
mod transcript;

pub use address::Allowed;
pub use connect::{Addresses, Outbound, Resolve};
pub use run::run;

/// Why a request has no good answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The action cannot be filled in with this run's params or secrets.
    Template,
    /// The host's name leads to no address.
    NameNotFound,
    /// The host's addresses are not public, and the executor does not allow them.
    AddressRefused,
    /// Nobody takes the connection, or it broke before an answer.
    ConnectFailed,
    /// The server's certificate is not right, or it speaks no TLS.
    TlsFailed,
    /// No whole answer within the action's `timeoutSec`.
    Timeout,
    /// What came back is not HTTP, or too large a head.
    AnswerInvalid,
    /// One redirect too many, or one that cannot be followed.
    Redirected,
    /// A status outside of `expectStatus`.
    Status,
}

impl Fault {
    pub const ALL: &'static [Self] = &[
        Self::Template,
        Self::NameNotFound,
        Self::AddressRefused,
        Self::ConnectFailed,
        Self::TlsFailed,
        Self::Timeout,
        Self::AnswerInvalid,
        Self::Redirected,
        Self::Status,
    ];

    /// Stable code, shown as the attempt's `errorCode`.
    pub fn code(self) -> &'static str {
        match self {
            Self::Template => "HTTP_TEMPLATE",
            Self::NameNotFound => "HTTP_NAME_NOT_FOUND",
            Self::AddressRefused => "HTTP_ADDRESS_REFUSED",
            Self::ConnectFailed => "HTTP_CONNECT_FAILED",
            Self::TlsFailed => "HTTP_TLS_FAILED",
            Self::Timeout => "HTTP_TIMEOUT",
            Self::AnswerInvalid => "HTTP_ANSWER_INVALID",
            Self::Redirected => "HTTP_REDIRECTED",
            Self::Status => "HTTP_STATUS",
        }
    }
}

/// A fault with its text for people.
#[derive(Clone, Debug)]
pub struct Failed {
    pub fault: Fault,
    pub message: String,
}

impl Failed {
    pub fn new(fault: Fault, message: impl Into<String>) -> Self {
        Self { fault, message: message.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_in_the_documents() {
        let text = include_str!("../../../docs/actions.md");
        for fault in Fault::ALL {
            assert!(text.contains(&format!("| `{}` |", fault.code())), "{}", fault.code());
        }
    }
}
