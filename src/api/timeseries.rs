//! Daily gains of the organization, an account or a creator.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::fields::{AnalyticsQuery, CreatorPath};
use crate::http::input::{FromQuery, QueryParams, WindowParams, Windowed};
use crate::http::output::WindowMeta;
use crate::http::{Args, Cached, Path, Query, Records, Result, WindowedRequest, WithMeta};
use crate::model::gains::Gains;
use crate::model::period::Window;
use crate::store::analytics::subjects::{self, DayGains};
use crate::store::analytics::{SubjectScope, accounts};

#[derive(Serialize)]
struct SeriesQuery {
    analytics: AnalyticsQuery,
    account_id: Option<Uuid>,
    creator_id: Option<Uuid>,
}

impl FromQuery for SeriesQuery {
    fn read(query: &mut QueryParams<'_>) -> Self {
        SeriesQuery {
            analytics: AnalyticsQuery::read(query),
            account_id: query.describe("Filter by account.").uuid("account_id"),
            creator_id: query.describe("Filter by the creator of the account.").uuid("creator_id"),
        }
    }
}

impl Windowed for SeriesQuery {
    fn window(&self, now: DateTime<Utc>) -> Result<Window> {
        self.analytics.window(now)
    }
}

/// Gains of one UTC day.
#[derive(Serialize, JsonSchema)]
struct SeriesDay {
    /// UTC day.
    date: NaiveDate,
    #[serde(flatten)]
    gains: Gains,
}

type Series<Day> = WithMeta<Vec<Day>, WindowMeta>;

/// Get daily gains
///
/// Gains of the organization on each day of the window. With `account_id` or `creator_id`, individually tracked videos are
/// not included.
#[endpoint(
    operation_id = "getTimeseries",
    responses((status_code = 404, description = "The account or creator does not exist."))
)]
pub(super) async fn get(request: WindowedRequest<Query<SeriesQuery>>) -> Result<Cached<Series<SeriesDay>>> {
    let WindowedRequest { pg, history, organization, window, .. } = &request;
    let Query(SeriesQuery { analytics: AnalyticsQuery { platform, .. }, account_id, creator_id }) =
        request.args;
    let response = async {
        let scope = if account_id.is_none() && creator_id.is_none() {
            SubjectScope::for_organization(pg, *organization, platform).await?
        } else {
            let subjects =
                accounts::fetch_subject_ids(pg, *organization, account_id, creator_id, platform).await?;
            SubjectScope::for_subjects(*organization, subjects)
        };
        let days = subjects::fetch_daily(history, &scope, *window).await?;
        build_response(&request, &scope, &days, |date, gains| SeriesDay { date, gains }).await
    };
    request.cached(Records::Accounts, response).await
}

/// Gains of a creator on one UTC day.
#[derive(Serialize, JsonSchema)]
struct CreatorDay {
    /// UTC day.
    date: NaiveDate,
    /// Views gained.
    views: i64,
    /// Likes, comments and shares gained.
    engagement: i64,
}

/// Get a creator's daily gains
///
/// Gains of all accounts that are linked now, on each day of the window. Their history before they were linked is included.
#[endpoint(operation_id = "getCreatorTimeseries")]
pub(super) async fn get_creator(
    request: WindowedRequest<Args<(Path<CreatorPath>, Query<WindowParams>)>>,
) -> Result<Cached<Series<CreatorDay>>> {
    let WindowedRequest { pg, history, organization, window, .. } = &request;
    let Args((Path(CreatorPath { creator_id }), _)) = request.args;
    let response = async {
        let subjects = accounts::fetch_subject_ids(pg, *organization, None, Some(creator_id), None).await?;
        let days = subjects::fetch_daily_engagement(history, *organization, &subjects, *window).await?;
        let scope = SubjectScope::for_subjects(*organization, subjects);
        let day = |date, Gains { views, engagement, .. }| CreatorDay { date, views, engagement };
        build_response(&request, &scope, &days, day).await
    };
    request.cached(Records::Accounts, response).await
}

/// Returns the gains of every day of the window, ascending.
async fn build_response<A, Day>(
    request: &WindowedRequest<A>,
    scope: &SubjectScope,
    days: &BTreeMap<NaiveDate, DayGains>,
    day: impl Fn(NaiveDate, Gains) -> Day,
) -> Result<Series<Day>> {
    let WindowedRequest { history, window, .. } = request;
    let latest = days.values().filter_map(|day| day.as_of).max();
    let data_as_of = subjects::resolve_as_of(history, scope, *window, latest).await?;
    let gains = |date| days.get(&date).map_or_else(Gains::default, |day| day.gains);
    let data = window.iter_days().map(|date| day(date, gains(date))).collect();
    Ok(WithMeta { data, meta: request.meta(data_as_of) })
}
