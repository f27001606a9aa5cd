//! The report of a collection for the bearer of a share's token. It reaches nothing else.

use chrono::{DateTime, Utc};
use salvo::http::Method;
use salvo::{Depot, Request, Router, Writer};
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::collections::{
    self, CollectionAccount, CollectionCreator, CollectionMembersMeta, CollectionOverview, CollectionRow,
    CollectionSeriesQuery, MembersQuery, PayoutRow, PayoutsMeta, PayoutsQuery,
};
use super::fields::AnalyticsQuery;
use super::overview::OverviewMeta;
use super::top_content::{self, RankingArgs, TopContent, TopContentMeta};
use crate::app::App;
use crate::http::input::RankingQuery;
use crate::http::output::WindowMeta;
use crate::http::route::get_or_head;
use crate::http::{Analytics, Cached, CachedPage, Data, Problem, Query, Ranking, Result, WithMeta};
use crate::model::gains::GainMetric;
use crate::model::platform::Platform;
use crate::model::share::{SharePart, SharePeriod};
use crate::store::records::collections::shares::{self, ShareGrant};

pub(super) fn router() -> Router {
    Router::with_path("shared")
        .push(get_or_head(get))
        .push(Router::with_path("overview").push(get_or_head(get_overview)))
        .push(Router::with_path("timeseries").push(get_or_head(get_timeseries)))
        .push(Router::with_path("content").push(get_or_head(list_content)))
        .push(Router::with_path("accounts").push(get_or_head(list_accounts)))
        .push(Router::with_path("creators").push(get_or_head(list_creators)))
        .push(Router::with_path("payouts").push(get_or_head(list_payouts)))
}

/// A report.
#[derive(Serialize, JsonSchema)]
struct SharedReport {
    /// Always `shared_report`.
    r#type: SharedReportType,
    /// Name of the share.
    #[schemars(example = &"Summer campaign for Acme")]
    name: String,
    /// Window of the report, unless another one is requested.
    #[schemars(example = SharePeriod::Month)]
    period: SharePeriod,
    /// Parts of the report.
    #[schemars(example = vec![SharePart::Overview, SharePart::Content])]
    show: Vec<SharePart>,
    /// Time at which the link ends.
    expires_at: DateTime<Utc>,
}

/// The constant `type` of a report.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum SharedReportType {
    SharedReport,
}

/// The share of the request, if it shows a part.
fn share(depot: &Depot, part: SharePart) -> Result<ShareGrant> {
    let grant = depot.get_typed::<ShareGrant>().map_err(|_| Problem::internal("no share"))?;
    if grant.show.contains(&part) {
        return Ok(grant.clone());
    }
    Err(Problem::not_found(format!("this report does not show {}", part.as_str())))
}

/// Get a shared report
///
/// What the report is called and which parts it has. Each response counts as a view of the share.
#[endpoint(operation_id = "getSharedReport")]
async fn get(app: App, req: &mut Request, depot: &mut Depot) -> Result<Data<SharedReport>> {
    let grant = depot.get_typed::<ShareGrant>().map_err(|_| Problem::internal("no share"))?;
    if *req.method() == Method::GET {
        count_view(&app, grant).await;
    }
    let ShareGrant { name, period, show, expires_at, .. } = grant.clone();
    Ok(Data { data: SharedReport { r#type: SharedReportType::SharedReport, name, period, show, expires_at } })
}

/// Counts a view. The report is readable while Postgres rejects writes, uncounted.
async fn count_view(app: &App, grant: &ShareGrant) {
    let now = app.clock.now().await;
    let counted = async {
        let _permit = app.writes.acquire(grant.organization_id).await?;
        shares::count_view(&app.pg, grant.organization_id, grant.id, now).await
    };
    if let Err(error) = counted.await {
        tracing::warn!(%error, "cannot count a view of a share");
    }
}

/// Get a report's overview
///
/// As that of the collection.
#[endpoint(operation_id = "getSharedOverview")]
async fn get_overview(
    query: Query<AnalyticsQuery>,
    analytics: Analytics,
    depot: &mut Depot,
) -> Result<Cached<WithMeta<CollectionOverview, OverviewMeta>>> {
    let (share, mut query) = (share(depot, SharePart::Overview)?, query.0);
    query.window = query.window.or_period(share.period.into());
    collections::overview(share.collection_id, query, &analytics).await
}

/// Get a report's time series
///
/// As that of the collection.
#[endpoint(operation_id = "getSharedTimeseries")]
async fn get_timeseries(
    query: Query<CollectionSeriesQuery>,
    analytics: Analytics,
    depot: &mut Depot,
) -> Result<Cached<WithMeta<Vec<CollectionRow>, WindowMeta>>> {
    let (share, mut query) = (share(depot, SharePart::Timeseries)?, query.0);
    query.analytics.window = query.analytics.window.or_period(share.period.into());
    collections::timeseries(share.collection_id, query, &analytics).await
}

/// The ranked posts of a report.
#[derive(Serialize, Deserialize, JsonSchema)]
struct SharedContentRule {
    /// Counter whose gains count; `engagement` is likes, comments and shares.
    #[serde(default)]
    metric: GainMetric,
    /// Filter by platform.
    platform: Option<Platform>,
}

/// List a report's content
///
/// All posts of the collection, by what they gained over the window and then by id.
#[endpoint(operation_id = "listSharedContent")]
async fn list_content(
    query: RankingQuery<SharedContentRule>,
    analytics: Analytics,
    depot: &mut Depot,
) -> Result<CachedPage<Ranking<TopContent, TopContentMeta>>> {
    let share = share(depot, SharePart::Content)?;
    let RankingQuery { window, rule: SharedContentRule { metric, platform }, page } = query;
    let rule = RankingArgs::all_of_collection(share.collection_id, metric, platform);
    top_content::rank(RankingQuery { window, rule, page }, &analytics).await
}

/// List a report's accounts
///
/// As those of the collection.
#[endpoint(operation_id = "listSharedAccounts")]
async fn list_accounts(
    query: MembersQuery,
    analytics: Analytics,
    depot: &mut Depot,
) -> Result<CachedPage<Ranking<CollectionAccount, CollectionMembersMeta>>> {
    let share = share(depot, SharePart::Accounts)?;
    collections::accounts(share.collection_id, query, &analytics).await
}

/// List a report's creators
///
/// As those of the collection.
#[endpoint(operation_id = "listSharedCreators")]
async fn list_creators(
    query: MembersQuery,
    analytics: Analytics,
    depot: &mut Depot,
) -> Result<CachedPage<Ranking<CollectionCreator, CollectionMembersMeta>>> {
    let share = share(depot, SharePart::Creators)?;
    collections::creators(share.collection_id, query, &analytics).await
}

/// Get a report's payouts
///
/// As those of the collection. 409 if it has no payout.
#[endpoint(
    operation_id = "listSharedPayouts",
    responses((status_code = 409, description = "The collection has no payout, or too many posts."))
)]
async fn list_payouts(
    query: Query<PayoutsQuery>,
    analytics: Analytics,
    depot: &mut Depot,
) -> Result<Cached<WithMeta<Vec<PayoutRow>, PayoutsMeta>>> {
    let (share, mut query) = (share(depot, SharePart::Payouts)?, query.0);
    query.window = query.window.or_period(share.period.into());
    collections::rows(share.collection_id, query, &analytics).await
}
