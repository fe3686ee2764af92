//! What the driver's errors mean for a port.

use campanile_actors::ports::StoreError;
use scylla::errors::{DbError, ExecutionError, NewSessionError, RequestAttemptError};

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
            matches!(kind, DbError::Unavailable { .. } | DbError::Overloaded | DbError::IsBootstrapping)
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
pub fn not_connected(contact_points: &[String], error: &NewSessionError) -> StoreError {
    let told = error.to_string();
    let points = contact_points.join(", ");
    // The driver tells a wrong password only as the reason why the last server gave no metadata.
    if told.to_ascii_lowercase().contains("authenticat") {
        return StoreError::Refused(format!("the CQL servers at {points} refuse [cql] user or password_file: {told}"));
    }
    StoreError::Unavailable(format!("none of the CQL servers at {points} ([cql] contact_points) answers: {told}"))
}
