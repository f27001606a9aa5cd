//! Breakouts: videos that do far better than earlier posts of their account.

use chrono::Days;
use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::mcp::tool::{Answer, Tool};
use crate::http::input::PlainRankingQuery;
use crate::http::{Analytics, CachedPage, Ranking, RecordDependency, Result};
use crate::model::account::Metadata;
use crate::model::ages::STORED_AGES;
use crate::model::content::ContentIdentity;
use crate::model::date_or_time::DateOrTime;
use crate::model::hashtag::hashtags_schema;
use crate::model::limits::{DEFAULT_AGE, DEFAULT_BREAKOUT_DAYS, DEFAULT_MIN_MULTIPLE};
use crate::model::platform::Platform;
use crate::model::unknown_counters::UnknownCounters;
use crate::store::analytics::breakouts::{self, Breakout, BreakoutQuery};
use crate::store::analytics::{SubjectFilter, SubjectScope, VersionedHistory};
use crate::store::records::content::{ContentFilter, IdentifiedContent};

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct BreakoutsRule {
    /// Age at which videos are compared, in days after the day on which they were posted.
    #[schemars(extend("enum" = STORED_AGES, "default" = DEFAULT_AGE))]
    age_days: u16,
    /// Lowest `multiple`.
    #[schemars(range(min = 1.0, max = 1000.0), extend("default" = DEFAULT_MIN_MULTIPLE))]
    min_multiple: f64,
    /// Earliest `create_time`: a date, which includes its whole UTC day, or a time. Default: 90 days ago.
    posted_after: Option<DateOrTime>,
    #[serde(flatten)]
    accounts: SubjectFilter,
    /// Filter by collection.
    collection_id: Option<Uuid>,
    /// Filter by hashtags of the caption, of which the video has any. Case and a leading `#` do not matter.
    #[serde(default)]
    #[schemars(schema_with = "hashtags_schema")]
    hashtag: Option<Vec<String>>,
}

/// A video that had many times the views of earlier posts at the same age.
#[derive(Serialize, JsonSchema)]
pub(super) struct BreakoutVideo {
    #[serde(flatten)]
    identity: ContentIdentity,
    /// Views at the age.
    #[schemars(example = 184_000)]
    actual: i64,
    /// Mean of the views that earlier posts had at the age, without a quarter of the posts at each end, to one decimal.
    #[schemars(example = 21_480.5)]
    baseline: f64,
    /// `actual` divided by the baseline, to two decimals.
    #[schemars(example = 8.57)]
    multiple: f64,
    /// Number of earlier posts behind the baseline, 10 to 100.
    #[schemars(example = 100)]
    sample: usize,
    /// Whether `actual` is interpolated between days with a snapshot.
    interpolated: bool,
    /// Counters that the platform has and that were never known, for example hidden likes.
    #[schemars(example = ["share_count", "saved_count"])]
    unknown_counters: UnknownCounters,
}

impl BreakoutVideo {
    fn new((video, breakout): &(IdentifiedContent, Breakout)) -> Self {
        BreakoutVideo {
            identity: video.identity.clone(),
            actual: breakout.views,
            baseline: breakout.baseline_in_tenths as f64 / 10.0,
            multiple: breakout.multiple_in_hundredths as f64 / 100.0,
            sample: breakout.sample,
            interpolated: breakout.is_interpolated,
            unknown_counters: video.unknown_counters.clone(),
        }
    }
}

/// The parameters in effect, and how many videos cannot be compared.
#[derive(Serialize, JsonSchema)]
pub(super) struct BreakoutsMeta {
    /// Age in days.
    #[schemars(example = 7)]
    age_days: u16,
    /// Lowest multiple.
    #[schemars(example = 3.0)]
    min_multiple: f64,
    /// Earliest `create_time`, a date or a time.
    #[schemars(with = "String", example = &"2026-01-14")]
    posted_after: DateOrTime,
    /// Platform; null for all.
    platform: Option<Platform>,
    /// Account; null for all.
    account_id: Option<Uuid>,
    /// Creator; null for all.
    creator_id: Option<Uuid>,
    /// Category of the account; null for all.
    #[schemars(example = &"surf")]
    category: Option<String>,
    /// Tags of the account.
    #[schemars(example = Metadata::from([("team".to_owned(), "north".to_owned())]))]
    metadata: Metadata,
    /// Collection; null for all.
    collection_id: Option<Uuid>,
    /// Hashtags; null for all.
    #[schemars(example = vec!["surf"])]
    hashtag: Option<Vec<String>>,
    /// Page size.
    #[schemars(example = 10)]
    limit: i64,
    /// Number of matching videos with known views that have fewer than 10 earlier posts to compare with.
    #[schemars(example = 4)]
    without_baseline: usize,
}

pub(super) const TOOL: Tool = Tool {
    name: "find_breakouts",
    description: "Find posts that did much better than usual for their account: views at an age of 1, 3, 7, 14 or 30 \
        days that are several times (multiple) the baseline, the mean of earlier posts of the same account \
        and media type at the same age. actual is the views at that age, multiple is actual divided by \
        baseline. By default posts of the last 90 days with at least 3 times the baseline after 7 days.",
    answer: Answer::Response("listBreakouts"),
};

/// Find breakout videos
///
/// Account-discovered videos whose views at an age are many times those that earlier posts of the same account and media type
/// had at the same age, by `multiple` and then by id. The baseline is the mean of the last 100 posts with known views, without
/// a quarter of them at each end.
#[endpoint(
    operation_id = "listBreakouts",
    responses((status_code = 404, description = "The account, creator or collection does not exist."))
)]
pub(super) async fn list(
    query: PlainRankingQuery<BreakoutsRule>,
    analytics: Analytics,
) -> Result<CachedPage<Ranking<BreakoutVideo, BreakoutsMeta>>> {
    let request = analytics.last_days(query, 1);
    let PlainRankingQuery { rule: args, page } = &request.args;
    let default = || DateOrTime::Date(request.window.end - Days::new(DEFAULT_BREAKOUT_DAYS));
    let posted_after = args.posted_after.unwrap_or_else(default);
    let (collection_id, hashtag) = (args.collection_id, args.hashtag.clone());
    let content = ContentFilter { collection_id, hashtag, ..ContentFilter::default() };
    let compute = async |scope: SubjectScope, history: VersionedHistory| {
        let content = content.with_membership(&analytics.pg, analytics.organization).await?;
        let breakout_query = BreakoutQuery {
            age: args.age_days,
            min_multiple: args.min_multiple,
            posted_after: posted_after.first(),
            filter: &content,
            complete_through: request.complete_through,
            after: page.after(),
            limit: page.entry_count(),
        };
        let found = breakouts::find(&analytics.pg, &history, &scope, &breakout_query).await?;
        let SubjectFilter { platform, account, creator, labels } = args.accounts.clone();
        let meta = BreakoutsMeta {
            age_days: args.age_days,
            min_multiple: args.min_multiple,
            posted_after,
            platform,
            account_id: account,
            creator_id: creator,
            category: labels.category,
            metadata: labels.metadata,
            collection_id: args.collection_id,
            hashtag: args.hashtag.clone(),
            limit: page.limit(),
            without_baseline: found.without_baseline,
        };
        let shown =
            page.page(found.videos, |(_, breakout)| (breakout.multiple_in_hundredths, breakout.id))?;
        let data = shown.entries.iter().map(BreakoutVideo::new).collect();
        Ok(shown.into_response(data, meta))
    };
    let scope_query = SubjectScope::find(analytics.organization, &args.accounts);
    analytics.respond_page(&request, RecordDependency::Profiles, scope_query, compute).await
}
