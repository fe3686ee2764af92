//! The error codes that several operations of the table have in common.

use crate::error::ErrorCode as E;

pub(super) const BAD_SPEC: &[E] = &[
    E::InvalidArgument,
    E::MalformedBody,
    E::InvalidSchedule,
    E::ScheduleNeverFires,
    E::UnknownTimezone,
    E::NoSecretKey,
    E::BodyTooLarge,
    E::UnsupportedMediaType,
    E::NotFound,
    E::DuplicateName,
    E::IdempotencyKeyReused,
    E::StaleVersion,
    E::IllegalState,
    E::TenantQuota,
    E::UpgradeUnderWay,
    E::DagCycle,
];
pub(super) const BAD_APPLY: &[E] = &[
    E::InvalidArgument,
    E::MalformedBody,
    E::NoSecretKey,
    E::BodyTooLarge,
    E::UnsupportedMediaType,
    E::NotFound,
    E::StaleVersion,
    E::UpgradeUnderWay,
];
pub(super) const BAD_LIST: &[E] = &[E::InvalidArgument, E::NotFound];
pub(super) const BAD_JOB_CHANGE: &[E] =
    &[E::InvalidArgument, E::MalformedBody, E::NotFound, E::IllegalState, E::BodyTooLarge, E::UnsupportedMediaType];
pub(super) const BAD_TRIGGER: &[E] = &[
    E::InvalidArgument,
    E::MalformedBody,
    E::NotFound,
    E::IdempotencyKeyReused,
    E::IllegalState,
    E::RunActive,
    E::BodyTooLarge,
    E::UnsupportedMediaType,
    E::JobPaused,
    E::TenantQuota,
    E::JobQueueFull,
];
pub(super) const BAD_PREVIEW: &[E] = &[
    E::InvalidArgument,
    E::MalformedBody,
    E::InvalidSchedule,
    E::ScheduleNeverFires,
    E::UnknownTimezone,
    E::BodyTooLarge,
    E::UnsupportedMediaType,
];
pub(super) const BAD_PRIORITY: &[E] = &[
    E::InvalidArgument,
    E::MalformedBody,
    E::NotFound,
    E::IllegalState,
    E::BodyTooLarge,
    E::UnsupportedMediaType,
    E::UpgradeUnderWay,
];
pub(super) const BAD_RUN_CHANGE: &[E] = &[
    E::HistoryGone,
    E::InvalidArgument,
    E::MalformedBody,
    E::NotFound,
    E::IllegalState,
    E::RunActive,
    E::BodyTooLarge,
    E::UnsupportedMediaType,
    E::JobQueueFull,
    E::JobPaused,
    E::TenantQuota,
];
pub(super) const BAD_RETRY: &[E] = &[
    E::Compensated,
    E::HistoryGone,
    E::InvalidArgument,
    E::MalformedBody,
    E::NotFound,
    E::IllegalState,
    E::RunActive,
    E::BodyTooLarge,
    E::UnsupportedMediaType,
    E::JobQueueFull,
    E::JobPaused,
    E::TenantQuota,
];
pub(super) const BAD_BACKFILL: &[E] = &[
    E::InvalidArgument,
    E::MalformedBody,
    E::NotFound,
    E::BackfillActive,
    E::NoInstants,
    E::BodyTooLarge,
    E::TooManyInstants,
    E::UnsupportedMediaType,
    E::JobPaused,
    E::UpgradeUnderWay,
];
pub(super) const BAD_BACKFILL_CHANGE: &[E] =
    &[E::InvalidArgument, E::MalformedBody, E::NotFound, E::IllegalState, E::BodyTooLarge, E::UnsupportedMediaType];
pub(super) const BAD_BULK: &[E] = &[
    E::InvalidArgument,
    E::MalformedBody,
    E::IllegalState,
    E::BodyTooLarge,
    E::UnsupportedMediaType,
    E::TenantQuota,
    E::UpgradeUnderWay,
];
pub(super) const BAD_BULK_CHANGE: &[E] = &[
    E::InvalidArgument,
    E::MalformedBody,
    E::NotFound,
    E::IllegalState,
    E::BodyTooLarge,
    E::UnsupportedMediaType,
    E::TenantQuota,
];
pub(super) const BAD_BODY: &[E] =
    &[E::InvalidArgument, E::MalformedBody, E::NotFound, E::BodyTooLarge, E::UnsupportedMediaType];
/// Codes of operations about a cluster: on a single node they are refused.
pub(super) const ALONE: &[E] = &[E::IllegalState];
pub(super) const BAD_CORDON: &[E] =
    &[E::IllegalState, E::InvalidArgument, E::MalformedBody, E::NotFound, E::BodyTooLarge, E::UnsupportedMediaType];
/// Codes of operations about a target, and of those that set one.
pub(super) const BAD_TARGET: &[E] = &[E::InvalidArgument, E::NotFound];
/// Codes of operations about a calendar, of those that set one, and of its preview.
pub(super) const BAD_CALENDAR: &[E] = &[E::InvalidArgument, E::NotFound, E::UpgradeUnderWay];
pub(super) const BAD_CALENDAR_SET: &[E] = &[
    E::InvalidArgument,
    E::MalformedBody,
    E::NotFound,
    E::StaleVersion,
    E::BodyTooLarge,
    E::UnsupportedMediaType,
    E::TenantQuota,
    E::UpgradeUnderWay,
];
pub(super) const BAD_CALENDAR_PREVIEW: &[E] =
    &[E::InvalidArgument, E::MalformedBody, E::NotFound, E::BodyTooLarge, E::UnsupportedMediaType];
pub(super) const BAD_TARGET_SET: &[E] = &[
    E::InvalidArgument,
    E::MalformedBody,
    E::BodyTooLarge,
    E::UnsupportedMediaType,
    E::TenantQuota,
    E::UpgradeUnderWay,
];
