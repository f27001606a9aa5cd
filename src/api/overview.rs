//! The overview of an organization: current totals, and gains compared with the previous window.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::Serialize;

use super::fields::AccountsQuery;
use super::mcp::tool::{Answer, Tool};
use crate::http::output::WindowMeta;
use crate::http::{Analytics, Cached, Query, RecordDependency, Result, WindowArgs, WithMeta};
use crate::model::change::{self, Change};
use crate::model::gains::{AccountGains, Gains};
use crate::model::period::Window;
use crate::store::analytics::VersionedHistory;
use crate::store::analytics::overview::{self, OverviewRecords, RecordCounts};
use crate::store::analytics::subjects::{self, DayGains, FollowerLevels};

/// Gains of a window, each compared with that of the previous one.
#[derive(Serialize, JsonSchema)]
pub(super) struct ComparedGains {
    /// Views gained.
    views: Change<i64>,
    /// Plays gained; on TikTok a play is a view.
    plays: Change<i64>,
    /// Likes gained.
    likes: Change<i64>,
    /// Comments gained.
    comments: Change<i64>,
    /// Shares gained.
    shares: Change<i64>,
    /// Likes, comments and shares gained.
    engagement: Change<i64>,
    /// Engagement per view, rounded to six decimals; null without views.
    #[schemars(example = Change::from_rates(Some(81_250), Some(78_125)))]
    engagement_rate: Change<Option<f64>>,
}

impl ComparedGains {
    pub(super) fn new(current: Gains, previous: Gains) -> Self {
        ComparedGains {
            views: Change::from_counts(current.views, previous.views),
            plays: Change::from_counts(current.plays, previous.plays),
            likes: Change::from_counts(current.likes, previous.likes),
            comments: Change::from_counts(current.comments, previous.comments),
            shares: Change::from_counts(current.shares, previous.shares),
            engagement: Change::from_counts(current.engagement, previous.engagement),
            engagement_rate: Change::from_rates(
                change::engagement_rate_ppm(current.engagement, current.views),
                change::engagement_rate_ppm(previous.engagement, previous.views),
            ),
        }
    }
}

/// Current totals, and gains compared with the previous window.
#[derive(Serialize, JsonSchema)]
struct Overview {
    /// Current number of records, whatever the window.
    totals: RecordCounts,
    #[serde(flatten)]
    gains: ComparedGains,
    /// Number of videos posted.
    new_posts: Change<i64>,
    /// Followers of all accounts at the end of the window; null before the first observation.
    followers: Change<Option<i64>>,
    /// Followers that the accounts gained: an account that was added in the window counts with what it gained since, not
    /// with its level.
    followers_gained: Change<i64>,
}

/// The window and the previous one, which has as many days.
#[derive(Serialize, JsonSchema)]
pub(super) struct OverviewMeta {
    #[serde(flatten)]
    window: WindowMeta,
    /// First day of the previous window (UTC, inclusive).
    #[schemars(example = &"2026-01-14")]
    previous_start_date: NaiveDate,
    /// Last day of the previous window (UTC, inclusive), the day before `start_date`.
    #[schemars(example = &"2026-02-12")]
    previous_end_date: NaiveDate,
}

impl OverviewMeta {
    pub(super) fn new(window: Window, meta: WindowMeta) -> Self {
        let previous = window.previous();
        OverviewMeta { window: meta, previous_start_date: previous.start, previous_end_date: previous.end }
    }
}

pub(super) const TOOL: Tool = Tool {
    name: "get_overview",
    description: "Headline figures of the organization, of one account, of one creator, or of all accounts with a tag \
        (category, metadata): numbers of records, and what they gained in a window of UTC days compared with \
        the previous window of the same length (current, previous, change, change_percent in percent). \
        Views, plays, likes, comments, shares and engagement (likes, comments and shares) are gains of the \
        window; engagement_rate is engagement per view as a fraction; followers is the level at the end of \
        the window, followers_gained the gain.",
    answer: Answer::Response("getOverview"),
};

/// Get the organization's overview
///
/// Current totals, the gains of the window compared with those of the previous window of equal length, and the followers
/// at the end of both. With `account_id`, `creator_id`, `category` or `metadata.KEY`, only the accounts that match and their
/// account-discovered videos count.
#[endpoint(
    operation_id = "getOverview",
    responses((status_code = 404, description = "The account or creator does not exist."))
)]
pub(super) async fn get(
    query: Query<AccountsQuery>,
    analytics: Analytics,
) -> Result<Cached<WithMeta<Overview, OverviewMeta>>> {
    let request = analytics.window(query.0, |query| query.window)?;
    let WindowArgs { args: AccountsQuery { filter, .. }, window, .. } = &request;
    let previous = window.previous();
    let compute = async |records: OverviewRecords, history: VersionedHistory| {
        let both = Window { start: previous.start, ..*window };
        let (days, levels) = tokio::try_join!(
            subjects::fetch_daily(&history, &records.scope, both),
            subjects::fetch_levels(&history, &records.scope, *window)
        )?;
        let meta = OverviewMeta::new(*window, request.meta(levels.as_of));
        Ok(WithMeta { data: build_overview(*window, records, &days, &levels), meta })
    };
    let records_query = overview::records(analytics.organization, filter, *window);
    analytics.respond(&request, RecordDependency::Videos, records_query, compute).await
}

/// Compares the days of the window with those of the previous one.
fn build_overview(
    window: Window,
    OverviewRecords { totals, new_posts, previous_posts, .. }: OverviewRecords,
    days: &BTreeMap<NaiveDate, DayGains>,
    levels: &FollowerLevels,
) -> Overview {
    let (mut current, mut previous) = (AccountGains::default(), AccountGains::default());
    for (date, day) in days {
        *(if *date < window.start { &mut previous } else { &mut current }) += day.gains;
    }
    Overview {
        totals,
        gains: ComparedGains::new(current.gains, previous.gains),
        new_posts: Change::from_counts(new_posts, previous_posts),
        followers: Change::from_levels(levels.followers, levels.previous_followers),
        followers_gained: Change::from_counts(current.followers, previous.followers),
    }
}
