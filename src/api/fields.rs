//! Parameters that several resources share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::input::WindowParams;
use crate::model::platform::Platform;
use crate::store::analytics::SubjectFilter;

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct CreatorPath {
    /// Creator id.
    pub(super) creator_id: Uuid,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct VideoPath {
    /// Video id.
    pub(super) video_id: Uuid,
}

/// Accepts no username, unlike `accounts::AccountPath`.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct AccountIdPath {
    /// Account id.
    pub(super) account_id: Uuid,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct LinkPath {
    /// Creator id.
    pub(super) creator_id: Uuid,
    /// Account id.
    pub(super) account_id: Uuid,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct AnalyticsQuery {
    #[serde(flatten)]
    pub(super) window: WindowParams,
    /// Filter by platform.
    pub(super) platform: Option<Platform>,
}

/// A window, and filters by account.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct AccountsQuery {
    #[serde(flatten)]
    pub(super) window: WindowParams,
    #[serde(flatten)]
    pub(super) filter: SubjectFilter,
}
