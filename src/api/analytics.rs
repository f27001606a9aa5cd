//! Answers about windows of history over creators and the whole organization: leaderboard, series, headline figures.

use std::collections::HashMap;

use chrono::{DateTime, NaiveDate, Utc};
use salvo::{Router, Writer};
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::fields::{CreatorPath, ON_PLATFORM};
use crate::app::App;
use crate::http::extract::{FromQuery, Parts};
use crate::http::fields::Params;
use crate::http::route::read;
use crate::http::window::{WindowMeta, WindowParams};
use crate::http::{Args, Caller, Path, Problem, Query, WithMeta};
use crate::model::change::{self, Change};
use crate::model::limits::{SHORT_LIST, SHORT_LIST_DEFAULT};
use crate::model::period::Window;
use crate::model::platform::Platform;
use crate::store::analytics::overview::Holdings;
use crate::store::analytics::{self, DayTotals, Scope, creators, overview as figures};

pub(super) fn router() -> Router {
    Router::with_path("overview").push(read(overview))
}

/// The window and platform that a leaderboard or headline figures are asked for.
struct Filter {
    window: WindowParams,
    platform: Option<Platform>,
}

impl FromQuery for Filter {
    fn read(query: &mut Params<'_>, parts: &Parts<'_>) -> Self {
        Filter {
            window: WindowParams::read(query, parts),
            platform: query.about(ON_PLATFORM).word("platform"),
        }
    }
}

struct TopParams {
    filter: Filter,
    limit: usize,
}

impl FromQuery for TopParams {
    fn read(query: &mut Params<'_>, parts: &Parts<'_>) -> Self {
        query.about("How many creators the ranking has.");
        let limit = query.integer_or("limit", &SHORT_LIST, SHORT_LIST_DEFAULT);
        TopParams { filter: Filter::read(query, parts), limit: limit as usize }
    }
}

#[derive(Serialize, JsonSchema)]
struct TopCreator {
    id: Uuid,
    r#type: &'static str,
    name: String,
    views: i64,
    engagement: i64,
    account_count: usize,
    #[serde(skip)]
    name_key: String,
    #[serde(skip)]
    subjects: Vec<i64>,
}

/// Ranks the creators by the views that their accounts gained.
#[endpoint(operation_id = "listTopCreators")]
pub(super) async fn top_creators(
    app: App,
    caller: Caller,
    query: Query<TopParams>,
) -> Result<WithMeta<Vec<TopCreator>, WindowMeta>, Problem> {
    let Query(TopParams { filter, limit }) = query;
    let now = app.clock.now().await;
    let window = filter.window.at(now);
    let ranked = creators::ranked(&app.pg, caller.organization, filter.platform).await?;
    let removed = analytics::removed_subjects(&app.pg, caller.organization).await?;
    let scope = Scope {
        organization: caller.organization,
        platform: filter.platform,
        subjects: None,
        removed: &removed,
    };
    let totals = analytics::subject_totals(&app.clickhouse, scope, window).await?;
    let totals: HashMap<_, _> =
        totals.into_iter().map(|totals| (totals.subject_id.cast_signed(), totals)).collect();

    let mut data_as_of = None::<DateTime<Utc>>;
    let mut top: Vec<_> = ranked
        .into_iter()
        .map(|creator| {
            let (mut views, mut engagement) = (0, 0);
            for totals in creator.subjects.iter().filter_map(|subject| totals.get(subject)) {
                views += totals.views;
                engagement += totals.engagement();
                data_as_of = data_as_of.max(Some(totals.as_of));
            }
            TopCreator {
                id: creator.id,
                r#type: "creator",
                name: creator.name,
                views,
                engagement,
                account_count: creator.subjects.len(),
                name_key: creator.name_key,
                subjects: creator.subjects,
            }
        })
        .collect();
    top.sort_unstable_by(|one, other| {
        (other.views, &one.name_key, one.id).cmp(&(one.views, &other.name_key, other.id))
    });
    let linked: Vec<_> = top.iter().flat_map(|creator| creator.subjects.iter().copied()).collect();
    let scope = Scope { subjects: Some(&linked), ..scope };
    let data_as_of = analytics::as_of(&app.clickhouse, scope, window, data_as_of).await?;
    top.truncate(limit);
    Ok(WithMeta { data: top, meta: WindowMeta::new(window, now, data_as_of) })
}

#[derive(Serialize, JsonSchema)]
struct CreatorDay {
    date: NaiveDate,
    views: i64,
    engagement: i64,
}

/// Tells what a creator's accounts gained day by day.
#[endpoint(operation_id = "getCreatorTimeseries")]
pub(super) async fn creator_timeseries(
    app: App,
    caller: Caller,
    args: Args<(Path<CreatorPath>, Query<WindowParams>)>,
) -> Result<WithMeta<Vec<CreatorDay>, WindowMeta>, Problem> {
    let Args((Path(path), Query(window))) = args;
    let now = app.clock.now().await;
    let window = window.at(now);
    let subjects = creators::subjects(&app.pg, caller.organization, path.creator_id)
        .await?
        .ok_or_else(|| Problem::not_found("the organization has no such creator"))?;
    let removed = analytics::removed_subjects(&app.pg, caller.organization).await?;
    let scope = Scope {
        organization: caller.organization,
        platform: None,
        subjects: Some(&subjects),
        removed: &removed,
    };
    let days = analytics::daily(&app.clickhouse, scope, window).await?;
    let latest = days.iter().map(|day| day.as_of).max();
    let data_as_of = analytics::as_of(&app.clickhouse, scope, window, latest).await?;
    let data = filled(window, days, |date, totals| CreatorDay {
        date,
        views: totals.map_or(0, |totals| totals.views),
        engagement: totals.map_or(0, DayTotals::engagement),
    });
    Ok(WithMeta { data, meta: WindowMeta::new(window, now, data_as_of) })
}

/// One row for every day of the window, ascending.
fn filled<T>(
    window: Window,
    days: Vec<DayTotals>,
    row: impl Fn(NaiveDate, Option<&DayTotals>) -> T,
) -> Vec<T> {
    let days: HashMap<_, _> = days.into_iter().map(|day| (day.date, day)).collect();
    window.iter_days().map(|date| row(date, days.get(&date))).collect()
}

#[derive(Serialize, JsonSchema)]
struct Overview {
    totals: Holdings,
    views: Change<i64>,
    plays: Change<i64>,
    likes: Change<i64>,
    comments: Change<i64>,
    shares: Change<i64>,
    engagement: Change<i64>,
    engagement_rate: Change<Option<f64>>,
    new_posts: Change<i64>,
    followers: Change<Option<i64>>,
}

#[derive(Serialize, JsonSchema)]
struct OverviewMeta {
    #[serde(flatten)]
    window: WindowMeta,
    previous_start_date: NaiveDate,
    previous_end_date: NaiveDate,
}

/// Tells the organization's headline figures beside those of the window before.
#[endpoint(operation_id = "getOverview")]
pub(super) async fn overview(
    app: App,
    caller: Caller,
    filter: Query<Filter>,
) -> Result<WithMeta<Overview, OverviewMeta>, Problem> {
    let Query(filter) = filter;
    let now = app.clock.now().await;
    let window = filter.window.at(now);
    let (pg, organization) = (&app.pg, caller.organization);
    let removed = analytics::removed_subjects(pg, organization).await?;
    let scope = Scope { organization, platform: filter.platform, subjects: None, removed: &removed };
    let (totals, (posts, previous_posts), gains, levels) = tokio::try_join!(
        figures::holdings(pg, organization, filter.platform),
        figures::new_posts(pg, organization, filter.platform, window),
        figures::gains(&app.clickhouse, scope, window),
        analytics::levels(&app.clickhouse, scope, window),
    )?;
    let engagement = gains.likes + gains.comments + gains.shares;
    let previous_engagement = gains.previous_likes + gains.previous_comments + gains.previous_shares;
    let data = Overview {
        totals,
        views: change::of_counts(gains.views, gains.previous_views),
        plays: change::of_counts(gains.plays, gains.previous_plays),
        likes: change::of_counts(gains.likes, gains.previous_likes),
        comments: change::of_counts(gains.comments, gains.previous_comments),
        shares: change::of_counts(gains.shares, gains.previous_shares),
        engagement: change::of_counts(engagement, previous_engagement),
        engagement_rate: change::of_rates(
            change::rate(engagement, gains.views),
            change::rate(previous_engagement, gains.previous_views),
        ),
        new_posts: change::of_counts(posts, previous_posts),
        followers: change::of_levels(levels.followers, levels.previous_followers),
    };
    let previous = window.previous();
    let meta = OverviewMeta {
        window: WindowMeta::new(window, now, levels.as_of),
        previous_start_date: previous.start,
        previous_end_date: previous.end,
    };
    Ok(WithMeta { data, meta })
}
