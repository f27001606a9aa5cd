//! The overview and the time series of a collection.

use std::collections::BTreeMap;

use chrono::{Days, NaiveDate};
use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::CollectionPath;
use crate::api::fields::AnalyticsQuery;
use crate::api::overview::{ComparedGains, OverviewMeta};
use crate::api::timeseries::{Compare, GroupBy};
use crate::http::output::WindowMeta;
use crate::http::{Analytics, Args, Cached, Path, Query, RecordDependency, Result, WindowArgs, WithMeta};
use crate::model::change::Change;
use crate::model::gains::{Gains, Metrics};
use crate::model::period::{Granularity, Window};
use crate::model::platform::Platform;
use crate::store::analytics::VersionedHistory;
use crate::store::analytics::collections::{self, Lifetime, Member};
use crate::store::analytics::post_gains::PlatformDay;
use crate::store::records::collections::membership::{self, Membership};

/// The posts that are in a collection now.
#[derive(Serialize, JsonSchema)]
pub(in crate::api) struct CollectionTotals {
    /// Number of posts.
    #[schemars(example = 412)]
    videos: usize,
    /// Number of accounts that posted them.
    #[schemars(example = 38)]
    accounts: usize,
    /// Number of creators of these accounts.
    #[schemars(example = 31)]
    creators: usize,
    /// Latest views.
    #[schemars(example = 3_410_000)]
    views: i64,
    /// Latest likes.
    #[schemars(example = 251_000)]
    likes: i64,
    /// Latest comments.
    #[schemars(example = 11_300)]
    comments: i64,
    /// Latest shares.
    #[schemars(example = 8_240)]
    shares: i64,
    /// Latest saves; null if no platform reports them.
    #[schemars(example = 15_070)]
    saves: Option<i64>,
    /// Latest plays; on TikTok a play is a view.
    #[schemars(example = 3_622_000)]
    plays: i64,
}

/// Current totals, and gains compared with the previous window.
#[derive(Serialize, JsonSchema)]
pub(in crate::api) struct CollectionOverview {
    /// The posts that are in the collection now, whatever the window.
    totals: CollectionTotals,
    #[serde(flatten)]
    gains: ComparedGains,
    /// Number of posts of the collection that were posted.
    new_posts: Change<i64>,
}

/// Get a collection's overview
///
/// The posts that are in the collection now, and their gains in the window compared with those of the previous window of
/// equal length. `data_as_of` is the latest observation of their accounts, and of posts without an account. If the
/// collection has more than 300,000 posts, the response is 409 and `detail` says what to narrow.
#[endpoint(
    operation_id = "getCollectionOverview",
    responses((status_code = 409, description = "The collection has too many posts."))
)]
pub(super) async fn get_overview(
    args: Args<(Path<CollectionPath>, Query<AnalyticsQuery>)>,
    analytics: Analytics,
) -> Result<Cached<WithMeta<CollectionOverview, OverviewMeta>>> {
    let Args((Path(path), Query(query))) = args;
    overview(path.collection_id, query, &analytics).await
}

pub(in crate::api) async fn overview(
    collection: Uuid,
    args: AnalyticsQuery,
    analytics: &Analytics,
) -> Result<Cached<WithMeta<CollectionOverview, OverviewMeta>>> {
    let request = analytics.window((collection, args), |(_, query)| query.window)?;
    let WindowArgs { args: (_, query), window, .. } = &request;
    let both = Window { start: window.previous().start, ..*window };
    let compute = async |_: Membership, history: VersionedHistory| {
        let members = analytics.collection_members(collection, query.platform).await?;
        let (days, as_of) = collections::fetch_daily(&history, &members, both, *window).await?;
        let meta = OverviewMeta::new(*window, request.meta(as_of));
        Ok(WithMeta { data: build_overview(*window, &members, &days), meta })
    };
    let definition = membership::find(analytics.organization, collection);
    analytics.respond(&request, RecordDependency::Profiles, definition, compute).await
}

fn build_overview(window: Window, members: &[Member], days: &[PlatformDay]) -> CollectionOverview {
    let (mut current, mut previous) = (Gains::default(), Gains::default());
    for PlatformDay { day, gains, .. } in days {
        *(if *day < window.start { &mut previous } else { &mut current }) += *gains;
    }
    let posts = |days_of: Window| {
        let posted = members.iter().filter_map(Member::posted);
        posted.filter(|day| (days_of.start..=days_of.end).contains(day)).count() as i64
    };
    CollectionOverview {
        totals: CollectionTotals::new(members),
        gains: ComparedGains::new(current, previous),
        new_posts: Change::from_counts(posts(window), posts(window.previous())),
    }
}

impl CollectionTotals {
    fn new(members: &[Member]) -> Self {
        let count = |id: fn(&Member) -> Option<Uuid>| {
            let mut ids: Vec<_> = members.iter().filter_map(id).collect();
            ids.sort_unstable();
            ids.dedup();
            ids.len()
        };
        let mut lifetime = Lifetime::default();
        members.iter().for_each(|member| lifetime.add(member));
        let Lifetime { views, likes, comments, shares, saves, plays } = lifetime;
        let (accounts, creators) = (count(|member| member.account_id), count(|member| member.creator_id));
        CollectionTotals {
            videos: members.len(),
            accounts,
            creators,
            views,
            likes,
            comments,
            shares,
            saves,
            plays,
        }
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(in crate::api) struct CollectionSeriesQuery {
    #[serde(flatten)]
    pub(in crate::api) analytics: AnalyticsQuery,
    /// Adds the figures of each platform.
    group_by: Option<GroupBy>,
    /// Adds the row of the same position in the previous window, which has as many days.
    compare: Option<Compare>,
    /// One row for each day, week (from Monday) or month of the window, with its `end_date`. The window may cut the first
    /// and the last. Default: days, without `end_date`.
    granularity: Option<Granularity>,
}

/// Figures of one or more UTC days.
#[derive(Clone, Copy, Serialize, JsonSchema)]
struct CollectionFigures {
    #[serde(flatten)]
    metrics: Metrics,
    /// Number of posts of the collection that were posted.
    #[schemars(example = 12)]
    new_posts: i64,
}

/// Figures by platform.
#[derive(Serialize, JsonSchema)]
struct CollectionPlatforms {
    /// Figures on Instagram.
    instagram: CollectionFigures,
    /// Figures on TikTok.
    tiktok: CollectionFigures,
}

/// One or more UTC days.
#[derive(Serialize, JsonSchema)]
struct CollectionBucket {
    /// UTC day, the first of several.
    date: NaiveDate,
    /// Last UTC day; only with `granularity`.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_date: Option<NaiveDate>,
    #[serde(flatten)]
    figures: CollectionFigures,
    /// Figures by platform; only with `group_by=platform`.
    #[serde(skip_serializing_if = "Option::is_none")]
    platforms: Option<CollectionPlatforms>,
}

/// One or more UTC days of the window.
#[derive(Serialize, JsonSchema)]
pub(in crate::api) struct CollectionRow {
    #[serde(flatten)]
    current: CollectionBucket,
    /// The days of the same position in the previous window; only with `compare=previous`.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<CollectionBucket>,
}

/// Get a collection's time series
///
/// Gains of the posts that are in the collection now, and how many of them were posted, on each day, week or month of the
/// window.
#[endpoint(
    operation_id = "getCollectionTimeseries",
    responses((status_code = 409, description = "The collection has too many posts."))
)]
pub(super) async fn get_timeseries(
    args: Args<(Path<CollectionPath>, Query<CollectionSeriesQuery>)>,
    analytics: Analytics,
) -> Result<Cached<WithMeta<Vec<CollectionRow>, WindowMeta>>> {
    let Args((Path(path), Query(query))) = args;
    timeseries(path.collection_id, query, &analytics).await
}

pub(in crate::api) async fn timeseries(
    collection: Uuid,
    args: CollectionSeriesQuery,
    analytics: &Analytics,
) -> Result<Cached<WithMeta<Vec<CollectionRow>, WindowMeta>>> {
    let request = analytics.window((collection, args), |(_, query)| query.analytics.window)?;
    let WindowArgs { args: (_, query), window, .. } = &request;
    let first = query.compare.map_or(*window, |Compare::Previous| window.previous());
    let shown = Window { start: first.start, ..*window };
    let compute = async |_: Membership, history: VersionedHistory| {
        let platform = query.analytics.platform;
        let members = analytics.collection_members(collection, platform).await?;
        let (days, as_of) = collections::fetch_daily(&history, &members, shown, *window).await?;
        let series = Series { query, days: &days, members: &members };
        Ok(WithMeta { data: series.rows(*window), meta: request.meta(as_of) })
    };
    let definition = membership::find(analytics.organization, collection);
    analytics.respond(&request, RecordDependency::Profiles, definition, compute).await
}

struct Series<'a> {
    query: &'a CollectionSeriesQuery,
    days: &'a [PlatformDay],
    members: &'a [Member],
}

impl Series<'_> {
    fn rows(&self, window: Window) -> Vec<CollectionRow> {
        let by_day = self.by_day();
        // A bucket of the previous window has as many days as that of the same position.
        let offset = Days::new(window.days());
        let row = |(start, end): (NaiveDate, NaiveDate)| CollectionRow {
            current: self.bucket(&by_day, start, end),
            previous: self
                .query
                .compare
                .map(|Compare::Previous| self.bucket(&by_day, start - offset, end - offset)),
        };
        let buckets = window.buckets(self.query.granularity.unwrap_or(Granularity::Day));
        buckets.into_iter().map(row).collect()
    }

    /// Gains and posts of each day, in the order of [`Platform::ALL`].
    fn by_day(&self) -> BTreeMap<NaiveDate, [(Gains, i64); 2]> {
        let mut by_day: BTreeMap<NaiveDate, [(Gains, i64); 2]> = BTreeMap::new();
        let position = |platform| usize::from(platform == Platform::Tiktok);
        for PlatformDay { day, platform, gains } in self.days {
            by_day.entry(*day).or_default()[position(*platform)].0 += *gains;
        }
        for member in self.members {
            if let Some(day) = member.posted() {
                by_day.entry(day).or_default()[position(member.platform)].1 += 1;
            }
        }
        by_day
    }

    fn bucket(
        &self,
        by_day: &BTreeMap<NaiveDate, [(Gains, i64); 2]>,
        start: NaiveDate,
        end: NaiveDate,
    ) -> CollectionBucket {
        let mut sums = [(Gains::default(), 0); 2];
        for platforms in by_day.range(start..=end).map(|(_, platforms)| platforms) {
            for (sum, (gains, posts)) in sums.iter_mut().zip(platforms) {
                sum.0 += *gains;
                sum.1 += posts;
            }
        }
        let [(mut total, posts), (more_gains, more_posts)] = sums;
        total += more_gains;
        let figures =
            |(gains, new_posts): (Gains, i64)| CollectionFigures { metrics: gains.into(), new_posts };
        let [instagram, tiktok] = sums.map(figures);
        CollectionBucket {
            date: start,
            end_date: self.query.granularity.map(|_| end),
            figures: figures((total, posts + more_posts)),
            platforms: self.query.group_by.map(|GroupBy::Platform| CollectionPlatforms { instagram, tiktok }),
        }
    }
}
