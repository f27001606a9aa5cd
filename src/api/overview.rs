//! The headline figures of an organization beside those of the window before.

use chrono::{DateTime, NaiveDate, Utc};
use salvo::{Router, Writer};
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::fields::WindowOnPlatform;
use crate::app::App;
use crate::http::input::window::WindowMeta;
use crate::http::route::read;
use crate::http::{Caller, Kept, Problem, Query, WithMeta, kept};
use crate::model::change::{self, Change};
use crate::model::gains::Gains;
use crate::model::period::Window;
use crate::model::platform::Platform;
use crate::store::analytics::SubjectScope;
use crate::store::analytics::overview::{self, RecordCounts};
use crate::store::analytics::subjects::{self, GainColumns};
use crate::store::outbox::data_version::CacheDependencies;

pub(super) fn router() -> Router {
    Router::with_path("overview").push(read(get))
}

/// What the organization has, and what it gained beside the window before.
#[derive(Serialize, JsonSchema)]
struct Overview {
    /// What there is now, whatever the window.
    totals: RecordCounts,
    /// Gain in views.
    views: Change<i64>,
    /// Gain in plays; on TikTok a play is a view.
    plays: Change<i64>,
    /// Gain in likes.
    likes: Change<i64>,
    /// Gain in comments.
    comments: Change<i64>,
    /// Gain in shares.
    shares: Change<i64>,
    /// Gain in likes, comments and shares together.
    engagement: Change<i64>,
    /// Engagement per view, to six decimals; null without views.
    #[schemars(example = Change::from_rates(Some(81_250), Some(78_125)))]
    engagement_rate: Change<Option<f64>>,
    /// Number of videos that were posted.
    new_posts: Change<i64>,
    /// Followers of all accounts at the windows' ends; null before the first observation.
    followers: Change<Option<i64>>,
}

/// What is told of the figures beside them.
#[derive(Serialize, JsonSchema)]
struct OverviewMeta {
    #[serde(flatten)]
    window: WindowMeta,
    /// First UTC day of the window before, which has as many days.
    #[schemars(example = &"2026-01-14")]
    previous_start_date: NaiveDate,
    /// Last UTC day of the window before, the eve of `start_date`.
    #[schemars(example = &"2026-02-12")]
    previous_end_date: NaiveDate,
}

/// Reads the organization's headline figures beside those of the window before.
///
/// Gains of both windows are compared, and followers as they were at the ends of both.
#[endpoint(operation_id = "getOverview")]
async fn get(
    app: App,
    caller: Caller,
    query: Query<WindowOnPlatform>,
) -> Result<Kept<WithMeta<Overview, OverviewMeta>>, Problem> {
    let Query(WindowOnPlatform { window, platform }) = query;
    let now = app.clock.now().await;
    let window = window.at(now)?;
    let basis = CacheDependencies { until: window.end, videos: true };
    let about = (window, window.complete_through(now), platform);
    let work = overview(&app, caller.organization, platform, window, now);
    kept(&app, &caller, "getOverview", &about, basis, work).await
}

async fn overview(
    app: &App,
    organization: Uuid,
    platform: Option<Platform>,
    window: Window,
    now: DateTime<Utc>,
) -> Result<WithMeta<Overview, OverviewMeta>, Problem> {
    let pg = &app.pg;
    let previous = window.previous();
    let both = Window { start: previous.start, ..window };
    let history = async {
        let scope = SubjectScope::for_organization(pg, organization, platform).await?;
        tokio::try_join!(
            subjects::fetch_daily(&app.history, &scope, both, GainColumns::All),
            subjects::fetch_levels(&app.history, &scope, window)
        )
    };
    let (totals, (posts, previous_posts), (days, levels)) = tokio::try_join!(
        overview::count_records(pg, organization, platform),
        overview::count_new_posts(pg, organization, platform, window),
        history,
    )?;
    let (mut current, mut before) = (Gains::default(), Gains::default());
    for (date, day) in days {
        *(if date < window.start { &mut before } else { &mut current }) += day.gains;
    }
    let data = Overview {
        totals,
        views: Change::from_counts(current.views, before.views),
        plays: Change::from_counts(current.plays, before.plays),
        likes: Change::from_counts(current.likes, before.likes),
        comments: Change::from_counts(current.comments, before.comments),
        shares: Change::from_counts(current.shares, before.shares),
        engagement: Change::from_counts(current.engagement, before.engagement),
        engagement_rate: Change::from_rates(
            change::engagement_rate_ppm(current.engagement, current.views),
            change::engagement_rate_ppm(before.engagement, before.views),
        ),
        new_posts: Change::from_counts(posts, previous_posts),
        followers: Change::from_levels(levels.followers, levels.previous_followers),
    };
    let meta = OverviewMeta {
        window: WindowMeta::new(window, now, levels.as_of),
        previous_start_date: previous.start,
        previous_end_date: previous.end,
    };
    Ok(WithMeta { data, meta })
}
