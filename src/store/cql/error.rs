//! What the driver's errors mean for a port.

use super::options::CqlOptions;
use campanile_ports::StoreError;
use scylla::errors::{DbError, ExecutionError, NewSessionError, RequestAttemptError};
use std::error::Error;

/// Whether the server has said that it did nothing and will do nothing.
fn is_refusal(error: &ExecutionError) -> bool {
    match error {
        ExecutionError::BadQuery(_) | ExecutionError::PrepareError(_) => true,
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(kind, _)) => matches!(
            kind,
            DbError::SyntaxError
                | DbError::Invalid
                | DbError::Unauthorized
                | DbError::ConfigError
                | DbError::AlreadyExists { .. }
                | DbError::AuthenticationError
        ),
        _ => false,
    }
}

/// Whether the request was never sent, or was turned down before it did anything.
fn is_unsent(error: &ExecutionError) -> bool {
    match error {
        ExecutionError::EmptyPlan | ExecutionError::ConnectionPoolError(_) => true,
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(kind, _)) => {
            matches!(
                kind,
                DbError::Unavailable { .. }
                    | DbError::Overloaded
                    | DbError::IsBootstrapping
                    | DbError::Unprepared { .. }
            )
        }
        ExecutionError::LastAttemptError(RequestAttemptError::UnableToAllocStreamId) => true,
        _ => false,
    }
}

/// A read, or a statement that may be made again as it is.
pub fn unavailable(doing: &str, error: &ExecutionError) -> StoreError {
    if is_refusal(error) {
        return StoreError::Refused(format!("{doing}: {error}"));
    }
    StoreError::Unavailable(format!("{doing}: {error}"))
}

/// A write. Everything that may have been executed is unknown.
pub fn written(doing: &str, error: &ExecutionError) -> StoreError {
    if is_refusal(error) || is_unsent(error) {
        return unavailable(doing, error);
    }
    StoreError::Unknown(format!("{doing}: {error}"))
}

/// Rows that are not as the schema says.
pub fn damaged(doing: &str, error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("{doing}: {error}"))
}

/// No session with any server.
pub fn not_connected(options: &CqlOptions, error: &NewSessionError) -> StoreError {
    // The driver tells why a server was refused, or refused us, only deep within.
    let mut told = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let more = inner.to_string();
        if !told.contains(&more) {
            told = format!("{told}: {more}");
        }
        source = inner.source();
    }
    let points = options.contact_points.join(", ");
    let small = told.to_ascii_lowercase();
    let refused = |why: &str| StoreError::Refused(format!("the CQL servers at {points} {why}: {told}"));
    // A wrong password comes as the reason why the last server gave no metadata.
    if small.contains("authenticat") || small.contains("username and/or password") {
        return match options.user.as_str() {
            "" => refused("ask for a user: set [cql] user and password_file"),
            _ => refused("refuse [cql] user or password_file"),
        };
    }
    if small.contains("invalid peer certificate") {
        return refused(
            "have certificates that cannot be verified: check [cql] tls_ca_file, and tls_name when they name no IP address",
        );
    }
    if small.contains("certificaterequired") || small.contains("certificate required") {
        return refused("ask for a certificate of ours: set [cql] tls_cert_file and tls_key_file");
    }
    let hint = match &options.tls {
        Some(_) => "; do they speak TLS at these ports? If not, [cql] tls is to be false",
        None => "; if they speak TLS only, [cql] tls is to be true",
    };
    StoreError::Unavailable(format!("none of the CQL servers at {points} ([cql] contact_points) answers: {told}{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use scylla::{errors::WriteType, statement::Consistency};

    fn told(kind: DbError) -> StoreError {
        let attempt = RequestAttemptError::DbError(kind, "why".to_owned());
        written("a row is written", &ExecutionError::LastAttemptError(attempt))
    }

    #[test]
    fn a_write_that_was_turned_away_may_be_made_again_and_one_that_may_stand_is_unknown() {
        let consistency = Consistency::LocalQuorum;
        let timeout = DbError::WriteTimeout { consistency, received: 1, required: 2, write_type: WriteType::Simple };
        for kind in [
            DbError::Overloaded,
            DbError::IsBootstrapping,
            DbError::Unavailable { consistency, required: 2, alive: 1 },
            DbError::Unprepared { statement_id: bytes::Bytes::new() },
        ] {
            assert!(matches!(told(kind.clone()), StoreError::Unavailable(_)), "{kind:?}");
        }
        for kind in [DbError::ServerError, DbError::TruncateError, timeout] {
            assert!(matches!(told(kind.clone()), StoreError::Unknown(_)), "{kind:?}");
        }
        for kind in [DbError::Unauthorized, DbError::Invalid, DbError::ConfigError] {
            assert!(matches!(told(kind.clone()), StoreError::Refused(_)), "{kind:?}");
        }
    }
}
