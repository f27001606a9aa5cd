//! Series of daily gains: of the organization or a part of it, and of one creator.

use chrono::{DateTime, NaiveDate, Utc};
use salvo::{Router, Writer};
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::fields::{CreatorPath, WindowOnPlatform};
use crate::app::App;
use crate::http::input::fields::Params;
use crate::http::input::window::{WindowMeta, WindowParams};
use crate::http::input::{FromQuery, Parts};
use crate::http::route::read;
use crate::http::{Args, Caller, Kept, Path, Problem, Query, WithMeta, kept};
use crate::model::gains::Gains;
use crate::model::period::Window;
use crate::store::analytics::subjects::{self, GainColumns};
use crate::store::analytics::{SubjectScope, accounts};
use crate::store::outbox::data_version::CacheDependencies;

pub(super) fn router() -> Router {
    Router::with_path("analytics/timeseries").push(read(of_organization))
}

/// What a series is of, and whose it is.
struct SeriesQuery {
    of: WindowOnPlatform,
    account_id: Option<Uuid>,
    creator_id: Option<Uuid>,
}

impl FromQuery for SeriesQuery {
    fn read(query: &mut Params<'_>, parts: &Parts<'_>) -> Self {
        SeriesQuery {
            of: WindowOnPlatform::read(query, parts),
            account_id: query.about("Only this account.").uuid("account_id"),
            creator_id: query.about("Only the accounts of this creator.").uuid("creator_id"),
        }
    }
}

/// One UTC day of the organization, or of the part of it that was asked for.
#[derive(Serialize, JsonSchema)]
struct SeriesDay {
    /// UTC day.
    date: NaiveDate,
    #[serde(flatten)]
    gains: Gains,
}

/// Reads what the organization gained on each day.
///
/// Individually tracked videos are included, unless only an account or a creator is asked for.
#[endpoint(
    operation_id = "getTimeseries",
    responses((status_code = 404, description = "The organization has no such account or creator."))
)]
async fn of_organization(
    app: App,
    caller: Caller,
    query: Query<SeriesQuery>,
) -> Result<Kept<WithMeta<Vec<SeriesDay>, WindowMeta>>, Problem> {
    let Query(SeriesQuery { of: WindowOnPlatform { window, platform }, account_id, creator_id }) = query;
    let organization = caller.organization;
    let now = app.clock.now().await;
    let window = window.at(now)?;
    let about = (window, window.complete_through(now), platform, account_id, creator_id);
    kept(&app, &caller, "getTimeseries", &about, up_to(window), async {
        let scope = if account_id.is_none() && creator_id.is_none() {
            SubjectScope::for_organization(&app.pg, organization, platform).await?
        } else {
            let subjects = accounts::fetch_subject_ids(&app.pg, organization, account_id, creator_id).await?;
            SubjectScope::for_subjects(organization, platform, subjects)
        };
        let (days, meta) = series(&app, &scope, window, now, GainColumns::All).await?;
        let data = days.into_iter().map(|(date, gains)| SeriesDay { date, gains }).collect();
        Ok(WithMeta { data, meta })
    })
    .await
}

/// What a series rests on.
const fn up_to(window: Window) -> CacheDependencies {
    CacheDependencies { until: window.end, videos: false }
}

/// One UTC day of a creator.
#[derive(Serialize, JsonSchema)]
struct CreatorDay {
    /// UTC day.
    date: NaiveDate,
    /// Gain in views.
    views: i64,
    /// Gain in likes, comments and shares together.
    engagement: i64,
}

/// Reads what a creator's accounts gained on each day.
///
/// The accounts are those that are linked now, with all their history.
#[endpoint(operation_id = "getCreatorTimeseries")]
pub(super) async fn of_creator(
    app: App,
    caller: Caller,
    args: Args<(Path<CreatorPath>, Query<WindowParams>)>,
) -> Result<Kept<WithMeta<Vec<CreatorDay>, WindowMeta>>, Problem> {
    let Args((Path(CreatorPath { creator_id }), Query(window))) = args;
    let now = app.clock.now().await;
    let window = window.at(now)?;
    let about = (creator_id, window, window.complete_through(now));
    kept(&app, &caller, "getCreatorTimeseries", &about, up_to(window), async {
        let subjects =
            accounts::fetch_subject_ids(&app.pg, caller.organization, None, Some(creator_id)).await?;
        let scope = SubjectScope::for_subjects(caller.organization, None, subjects);
        let (days, meta) = series(&app, &scope, window, now, GainColumns::Engagement).await?;
        let day =
            |(date, gains): (_, Gains)| CreatorDay { date, views: gains.views, engagement: gains.engagement };
        Ok(WithMeta { data: days.into_iter().map(day).collect(), meta })
    })
    .await
}

/// The gains of every day of the window, ascending.
async fn series(
    app: &App,
    scope: &SubjectScope,
    window: Window,
    now: DateTime<Utc>,
    columns: GainColumns,
) -> Result<(Vec<(NaiveDate, Gains)>, WindowMeta), Problem> {
    let days = subjects::fetch_daily(&app.history, scope, window, columns).await?;
    let latest = days.values().filter_map(|day| day.as_of).max();
    let data_as_of = subjects::resolve_as_of(&app.history, scope, window, latest).await?;
    let gains = |date| days.get(&date).map_or_else(Gains::default, |day| day.gains);
    let days = window.iter_days().map(|date| (date, gains(date))).collect();
    Ok((days, WindowMeta::new(window, now, data_as_of)))
}
