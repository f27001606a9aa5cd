//! Counters of videos at an age: of one video, of many, and of the last posts of an account.

use std::collections::{BTreeMap, HashSet};

use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::fields::{AccountIdPath, VideoPath};
use crate::http::{Analytics, Args, Cached, Path, Query, RecordDependency, Result, WindowArgs, WithMeta};
use crate::model::ages::LevelOnDay;
use crate::model::limits::{
    DEFAULT_AGE, DEFAULT_AGES, MAX_AGE_DAYS, MAX_AGES, MAX_MEDIA_TYPE_CHARS, MAX_QUERY_IDS,
};
use crate::store::analytics::ages::{self, Post};
use crate::store::analytics::benchmarks::{self, Benchmark, BenchmarkQuery};
use crate::store::analytics::{SubjectFilter, VersionedHistory, find_subjects};

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct AgesQuery {
    /// Ages in days. Default: 1, 3, 7, 14 and 30.
    #[schemars(length(max = MAX_AGES), inner(range(min = 1, max = MAX_AGE_DAYS)), extend("default" = DEFAULT_AGES))]
    ages: Vec<u16>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct ContentAgesQuery {
    /// Ids of account-discovered or individually tracked videos.
    #[schemars(length(max = MAX_QUERY_IDS))]
    ids: Vec<Uuid>,
    #[serde(flatten)]
    ages: AgesQuery,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct BenchmarksQuery {
    /// Media type of the posts, as the platform reports it; empty for all.
    #[schemars(length(max = MAX_MEDIA_TYPE_CHARS))]
    media_type: Option<String>,
    /// Ages in days. Default: 7.
    #[schemars(length(max = MAX_AGES), inner(range(min = 1, max = MAX_AGE_DAYS)), extend("default" = [DEFAULT_AGE]))]
    ages: Vec<u16>,
}

/// Ages are reached until today.
const TODAY: u16 = 1;

/// The views of a video at an age.
#[derive(Serialize, JsonSchema)]
pub(super) struct AgeViews {
    /// Days after the UTC day on which it was posted.
    #[schemars(example = 7)]
    age_days: u16,
    /// Views at the end of that day; null if unknown.
    #[schemars(example = 18_240)]
    views: Option<i64>,
    /// Whether the views are interpolated between days with a snapshot.
    interpolated: bool,
}

impl AgeViews {
    fn list(ages: &[u16], views: &[Option<LevelOnDay>]) -> Vec<Self> {
        let entry = |(age, level): (&u16, &Option<LevelOnDay>)| AgeViews {
            age_days: *age,
            views: level.map(|level| level.value),
            interpolated: level.is_some_and(|level| level.is_interpolated),
        };
        ages.iter().zip(views).map(entry).collect()
    }
}

/// The video.
#[derive(Serialize, JsonSchema)]
pub(super) struct VideoAgesMeta {
    /// Video id.
    id: Uuid,
}

/// The ages, and the ids that were not found.
#[derive(Serialize, JsonSchema)]
pub(super) struct ContentAgesMeta {
    /// Ages in days.
    #[schemars(example = [1, 3, 7])]
    ages: Vec<u16>,
    /// Requested ids that do not exist, in request order.
    not_found: Vec<Uuid>,
}

/// The posts that are compared.
#[derive(Serialize, JsonSchema)]
pub(super) struct BenchmarksMeta {
    /// Ages in days.
    #[schemars(example = [7])]
    ages: Vec<u16>,
    /// Media type of the posts; null for all.
    #[schemars(example = &"VIDEO")]
    media_type: Option<String>,
}

/// Get video views by age
///
/// Views at the end of the UTC day that many days after the day on which the video was posted. Unknown if the video was first
/// observed more than two days after that day, if the day is not over, or without a snapshot on or before it and one on or
/// after it. Between snapshots they are interpolated linearly.
#[endpoint(operation_id = "getContentAges")]
pub(super) async fn get_video(
    args: Args<(Path<VideoPath>, Query<AgesQuery>)>,
    analytics: Analytics,
) -> Result<Cached<WithMeta<Vec<AgeViews>, VideoAgesMeta>>> {
    let request = analytics.last_days(args, TODAY);
    let Args((Path(VideoPath { video_id: id }), Query(AgesQuery { ages }))) = &request.args;
    let compute = async |post: Post, history: VersionedHistory| {
        let views = ages::fetch_views(&history, &[post], ages, request.complete_through).await?;
        let data = views.iter().flat_map(|views| AgeViews::list(ages, views)).collect();
        Ok(WithMeta { data, meta: VideoAgesMeta { id: *id } })
    };
    let query = ages::get(analytics.organization, *id);
    // Snapshots of any day may decide.
    analytics.respond(&request, RecordDependency::Profiles, query, compute).await
}

/// List video views by age
///
/// Like `/content/{video_id}/ages`, of up to 100 account-discovered or individually tracked videos.
#[endpoint(operation_id = "listContentAges")]
pub(super) async fn get_many(
    query: Query<ContentAgesQuery>,
    analytics: Analytics,
) -> Result<Cached<WithMeta<BTreeMap<Uuid, Vec<AgeViews>>, ContentAgesMeta>>> {
    let request = analytics.last_days(query.0, TODAY);
    let WindowArgs { args: ContentAgesQuery { ids, ages: AgesQuery { ages } }, complete_through, .. } =
        &request;
    let compute = async |posts: Vec<Post>, history: VersionedHistory| {
        let views = ages::fetch_views(&history, &posts, ages, *complete_through).await?;
        let found: HashSet<_> = posts.iter().map(|post| post.id).collect();
        let data = posts.iter().zip(&views).map(|(post, views)| (post.id, AgeViews::list(ages, views)));
        let not_found = ids.iter().filter(|id| !found.contains(id)).copied().collect();
        Ok(WithMeta { data: data.collect(), meta: ContentAgesMeta { ages: ages.clone(), not_found } })
    };
    let posts_query = ages::find(analytics.organization, ids);
    analytics.respond(&request, RecordDependency::Profiles, posts_query, compute).await
}

/// Get benchmarks of an account
///
/// Percentiles of the last 100 account-discovered videos with known views at an age, to compare a post of that age with.
/// Percentiles interpolate linearly between the closest ranks.
#[endpoint(operation_id = "getAccountBenchmarks")]
pub(super) async fn get_benchmarks(
    args: Args<(Path<AccountIdPath>, Query<BenchmarksQuery>)>,
    analytics: Analytics,
) -> Result<Cached<WithMeta<Vec<Benchmark>, BenchmarksMeta>>> {
    let request = analytics.last_days(args, TODAY);
    let Args((Path(AccountIdPath { account_id }), Query(BenchmarksQuery { ages, media_type }))) =
        &request.args;
    let media_type = media_type.as_deref().filter(|text| !text.is_empty());
    let compute = async |_subject: Vec<i64>, history: VersionedHistory| {
        let query = BenchmarkQuery {
            organization: analytics.organization,
            account: *account_id,
            media_type,
            ages,
            complete_through: request.complete_through,
        };
        let data = benchmarks::fetch(&analytics.pg, &history, &query).await?;
        let media_type = media_type.map(str::to_owned);
        Ok(WithMeta { data, meta: BenchmarksMeta { ages: ages.clone(), media_type } })
    };
    let query = find_subjects(analytics.organization, &SubjectFilter::account(*account_id));
    analytics.respond(&request, RecordDependency::Profiles, query, compute).await
}
