//! `payouts.csv` and `payout-videos.csv`

use chrono::{DateTime, Utc};
use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::{CsvQuery, Reader};
use crate::api::collections::PayoutGroupBy;
use crate::app::App;
use crate::http::{Analytics, CsvFile, Query, Result, RowSource};
use crate::model::content::ContentIdentity;
use crate::model::file_row::file_row;
use crate::model::platform::Platform;
use crate::store::analytics::payouts::{self, PaidPost, PaidPosts, PayoutSum};
use crate::store::records::collections::membership;
use crate::store::records::content;

/// Posts of a batch.
const BATCH_POSTS: usize = 1_000;

#[derive(Deserialize, JsonSchema)]
pub(super) struct PayoutsFilter {
    /// Collection.
    collection_id: Uuid,
    /// By what posts are added up.
    #[serde(default)]
    group_by: PayoutGroupBy,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct PaidVideosFilter {
    /// Collection.
    collection_id: Uuid,
}

file_row! {
    pub(super) struct PayoutFileRow {
        creator_id: Option<Uuid>,
        creator_name: Option<String>,
        account_id: Option<Uuid>,
        account_username: Option<String>,
        videos: i64,
        eligible_videos: i64,
        views: i64,
        amount: String,
        currency: String,
    }
}

/// Export payouts
///
/// The rows of `/collections/{collection_id}/payouts`, and the currency.
#[endpoint(
    operation_id = "exportPayouts",
    responses((status_code = 409, description = "The collection has no payout, or too many posts."))
)]
pub(super) async fn get(
    app: App,
    query: Query<CsvQuery<PayoutsFilter>>,
    analytics: Analytics,
) -> Result<CsvFile<PayoutRows>> {
    let CsvQuery { export, raw } = query.0;
    let (reader, filter) = Reader::begin(&app, analytics, export)?;
    let paid = compute(&reader, filter.collection_id).await?;
    let sums = payouts::sum_up(&reader.pg, reader.organization, &paid, filter.group_by.into()).await?;
    let rows = sums.into_iter().map(|sum| PayoutFileRow::new(sum, &paid.currency)).collect();
    CsvFile::begin(raw, PayoutRows { rows: Some(rows), _reader: reader }).await
}

pub(super) struct PayoutRows {
    rows: Option<Vec<PayoutFileRow>>,
    _reader: Reader,
}

impl RowSource for PayoutRows {
    const FILE_NAME: &'static str = "payouts";
    type Row = PayoutFileRow;

    async fn next_rows(&mut self) -> Result<Option<Vec<PayoutFileRow>>> {
        Ok(self.rows.take())
    }
}

impl PayoutFileRow {
    fn new(sum: PayoutSum, currency: &str) -> Self {
        let PayoutSum { creator_id, creator_name, account_id, account_username, .. } = sum;
        PayoutFileRow {
            creator_id,
            creator_name,
            account_id,
            account_username,
            videos: sum.videos,
            eligible_videos: sum.eligible_videos,
            views: sum.views,
            amount: sum.amount.to_string(),
            currency: currency.to_owned(),
        }
    }
}

file_row! {
    pub(super) struct PaidVideoRow {
        id: Uuid,
        platform: Platform,
        external_id: Option<String>,
        url: Option<String>,
        description: Option<String>,
        media_type: Option<String>,
        duration: Option<f64>,
        create_time: Option<DateTime<Utc>>,
        account_id: Option<Uuid>,
        account_username: Option<String>,
        creator_id: Option<Uuid>,
        creator_name: Option<String>,
        view_count: i64,
        views: i64,
        amount: String,
        reason: Option<String>,
        currency: String,
    }
}

/// Export payouts by video
///
/// The rows of `/collections/{collection_id}/payouts/videos`, and the currency.
#[endpoint(
    operation_id = "exportPayoutVideos",
    responses((status_code = 409, description = "The collection has no payout, or too many posts."))
)]
pub(super) async fn get_videos(
    app: App,
    query: Query<CsvQuery<PaidVideosFilter>>,
    analytics: Analytics,
) -> Result<CsvFile<PaidVideoRows>> {
    let CsvQuery { export, raw } = query.0;
    let (reader, filter) = Reader::begin(&app, analytics, export)?;
    let paid = compute(&reader, filter.collection_id).await?;
    let currency = paid.currency.clone();
    let mut posts = paid.in_order();
    posts.reverse();
    CsvFile::begin(raw, PaidVideoRows { reader, posts, currency }).await
}

async fn compute(reader: &Reader, collection: Uuid) -> Result<PaidPosts> {
    let history = reader.current_history().await?;
    let Reader { pg, window, today, organization, .. } = reader;
    let membership = membership::find(*organization, collection).fetch(&*pg.acquire().await?).await?;
    Ok(payouts::compute(pg, &history, &membership, *window, *today).await?)
}

pub(super) struct PaidVideoRows {
    reader: Reader,
    /// Those that are not written yet; the next one is last.
    posts: Vec<PaidPost>,
    currency: String,
}

impl RowSource for PaidVideoRows {
    const FILE_NAME: &'static str = "payout-videos";
    type Row = PaidVideoRow;

    async fn next_rows(&mut self) -> Result<Option<Vec<PaidVideoRow>>> {
        if self.posts.is_empty() {
            return Ok(None);
        }
        let batch = self.posts.split_off(self.posts.len().saturating_sub(BATCH_POSTS));
        let ids: Vec<_> = batch.iter().map(|post| post.member.id).collect();
        let pg = self.reader.pg.acquire().await?;
        let found = content::fetch_identities(&pg, self.reader.organization, &ids).await?;
        let mut found: std::collections::HashMap<_, _> =
            found.into_iter().map(|identity| (identity.id, identity)).collect();
        let row = |post: &PaidPost| {
            let identity = found.remove(&post.member.id)?;
            Some(PaidVideoRow::new(identity, post, self.currency.clone()))
        };
        Ok(Some(batch.iter().rev().filter_map(row).collect()))
    }
}

impl PaidVideoRow {
    fn new(identity: ContentIdentity, post: &PaidPost, currency: String) -> Self {
        PaidVideoRow {
            id: identity.id,
            platform: identity.platform,
            external_id: identity.external_id,
            url: identity.url,
            description: identity.description,
            media_type: identity.media_type,
            duration: identity.duration,
            create_time: identity.create_time,
            account_id: identity.account_id,
            account_username: identity.account_username,
            creator_id: identity.creator_id,
            creator_name: identity.creator_name,
            view_count: identity.view_count,
            views: post.views,
            amount: post.amount.to_string(),
            reason: post.reason.map(|reason| reason.as_str().to_owned()),
            currency,
        }
    }
}
