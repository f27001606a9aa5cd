//! The API version, and the identity of the caller.

use chrono::{DateTime, NaiveDate, Utc};
use salvo::{Depot, Request, Writer};
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use crate::app::App;
use crate::http::forwarded::base_url;
use crate::http::{Caller, Data, Problem, Result};
use crate::model::organization::{AccountUsage, Scope};
use crate::store::records::organizations;

/// An API version and its URLs.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Meta {
    /// Always `api_meta`.
    #[schemars(example = &"api_meta")]
    r#type: &'static str,
    /// Version of the API at this path.
    #[schemars(example = &"v2")]
    api_version: &'static str,
    /// `current` or `deprecated`.
    #[schemars(example = &"current")]
    status: &'static str,
    /// URL of the documentation.
    #[schemars(example = &"https://api.example/docs")]
    docs_url: String,
    /// URL of the OpenAPI document.
    #[schemars(example = &"https://api.example/v2/openapi.json")]
    openapi_url: String,
    /// URL to test a key with.
    #[schemars(example = &"https://api.example/v2/whoami")]
    whoami_url: String,
    /// Date from which the version is deprecated; null if it is not.
    #[schemars(example = None::<()>)]
    deprecation: Option<String>,
    /// Date from which the version may be removed; null if it is not deprecated.
    #[schemars(example = None::<()>)]
    sunset: Option<String>,
}

impl Meta {
    fn current(base: &str) -> Self {
        Meta {
            r#type: "api_meta",
            api_version: "v2",
            status: "current",
            docs_url: format!("{base}/docs"),
            openapi_url: format!("{base}/v2/openapi.json"),
            whoami_url: format!("{base}/v2/whoami"),
            deprecation: None,
            sunset: None,
        }
    }

    /// A deprecated version; the URLs are those of the current one.
    pub(super) fn deprecated(
        base: &str,
        api_version: &'static str,
        deprecation: DateTime<Utc>,
        sunset: DateTime<Utc>,
    ) -> Self {
        let [deprecation, sunset] = [deprecation, sunset].map(|time| Some(time.date_naive().to_string()));
        Meta { api_version, status: "deprecated", deprecation, sunset, ..Meta::current(base) }
    }
}

/// Get the API version
///
/// Its status and the URLs of its documentation. Requires no key.
#[endpoint(operation_id = "getMeta")]
pub(super) async fn get_meta(req: &mut Request, depot: &mut Depot) -> Data<Meta> {
    Data { data: Meta::current(&base_url(req, depot)) }
}

/// The organization and the permissions of an API key.
#[derive(Debug, Serialize, JsonSchema)]
struct WhoAmI {
    /// Always `whoami`.
    #[schemars(example = &"whoami")]
    r#type: &'static str,
    /// Organization of the key.
    organization_id: Uuid,
    /// Organization of the key, with its name.
    organization: CallerOrganization,
    /// Name of the key.
    #[schemars(example = &"dashboard")]
    api_key_name: String,
    /// Scopes of the key, including implied ones.
    scopes: Vec<Scope>,
    /// Requests per clock minute.
    #[schemars(example = 600)]
    rate_limit: u32,
    /// Accounts of the organization.
    usage: AccountUsage,
    /// First UTC day with history; absent if the organization does not limit its history.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"2025-11-01")]
    history_since: Option<NaiveDate>,
}

/// An organization.
#[derive(Debug, Serialize, JsonSchema)]
struct CallerOrganization {
    /// Organization id.
    id: Uuid,
    /// Name of the organization.
    #[schemars(example = &"Tidewater Media")]
    name: String,
}

/// Identify the API key
///
/// The organization, scopes and rate limit of the key. Use it to test a key.
#[endpoint(operation_id = "getIdentity")]
pub(super) async fn get_identity(app: App, caller: Caller) -> Result<Data<WhoAmI>> {
    // A key of a deleted organization may still be cached.
    let found = organizations::fetch_account_usage(&app.pg, caller.organization).await?;
    let (name, usage) = found.ok_or_else(Problem::unauthorized)?;
    let data = WhoAmI {
        r#type: "whoami",
        organization_id: caller.organization,
        organization: CallerOrganization { id: caller.organization, name },
        api_key_name: caller.key_name.to_string(),
        scopes: caller.scopes.to_vec(),
        rate_limit: caller.rate_limit,
        usage,
        history_since: caller.history_since,
    };
    Ok(Data { data })
}
