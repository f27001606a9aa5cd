//! The ranking of creators.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::fields::AnalyticsQuery;
use crate::http::input::{FromQuery, QueryParams, Windowed};
use crate::http::output::WindowMeta;
use crate::http::{Cached, Query, Records, Result, WindowedRequest, WithMeta};
use crate::model::gains::Gains;
use crate::model::limits::{DEFAULT_SHORT_LIST_SIZE, SHORT_LIST_SIZE};
use crate::model::period::Window;
use crate::store::analytics::creators::{self, CreatorSubjects};
use crate::store::analytics::subjects::{self, SubjectEngagement};
use crate::store::analytics::{OrganizationScope, SubjectScope};

#[derive(Serialize)]
pub(super) struct TopQuery {
    analytics: AnalyticsQuery,
    limit: usize,
}

impl FromQuery for TopQuery {
    fn read(query: &mut QueryParams<'_>) -> Self {
        TopQuery {
            analytics: AnalyticsQuery::read(query),
            limit: query.describe("Maximum number of creators.").integer_or(
                "limit",
                &SHORT_LIST_SIZE,
                DEFAULT_SHORT_LIST_SIZE,
            ) as usize,
        }
    }
}

impl Windowed for TopQuery {
    fn window(&self, now: DateTime<Utc>) -> Result<Window> {
        self.analytics.window(now)
    }
}

/// A creator in the ranking.
#[derive(Serialize, JsonSchema)]
pub(super) struct TopCreator {
    /// Creator id.
    id: Uuid,
    /// Always `creator`.
    r#type: &'static str,
    /// Name of the creator.
    name: String,
    /// Views that its accounts gained.
    views: i64,
    /// Likes, comments and shares that its accounts gained.
    engagement: i64,
    /// Number of its accounts; with `platform`, on that platform.
    account_count: usize,
}

/// Rank creators by views
///
/// Ranks all creators by the views that their accounts gained over the window, those without views included.
#[endpoint(operation_id = "listTopCreators")]
pub(super) async fn list(
    request: WindowedRequest<Query<TopQuery>>,
) -> Result<Cached<WithMeta<Vec<TopCreator>, WindowMeta>>> {
    let WindowedRequest { pg, history, organization, window, .. } = &request;
    let Query(TopQuery { analytics: AnalyticsQuery { platform, .. }, limit }) = request.args;
    let response = async {
        let totals = async {
            let scope = OrganizationScope::fetch(pg, *organization, platform).await?;
            subjects::fetch_engagement(history, &scope, *window).await
        };
        let creators = creators::list_with_subjects(pg, *organization, platform);
        let (creators, totals) = tokio::try_join!(creators, totals)?;
        let (ranking, latest) = rank(creators, &totals);
        let subjects = ranking.iter().flat_map(|(_, creator)| creator.subjects.iter().copied()).collect();
        let scope = SubjectScope::for_subjects(*organization, subjects);
        let data_as_of = subjects::resolve_as_of(history, &scope, *window, latest).await?;
        let data = ranking.into_iter().take(limit).map(|(gains, creator)| TopCreator {
            id: creator.id,
            r#type: "creator",
            name: creator.name,
            views: gains.views,
            engagement: gains.engagement,
            account_count: creator.subjects.len(),
        });
        Ok(WithMeta { data: data.collect(), meta: request.meta(data_as_of) })
    };
    request.cached(Records::Accounts, response).await
}

/// Sorts creators by views, then name and id, and returns their latest observation.
fn rank(
    creators: Vec<CreatorSubjects>,
    totals: &[SubjectEngagement],
) -> (Vec<(Gains, CreatorSubjects)>, Option<DateTime<Utc>>) {
    let totals: HashMap<_, _> = totals.iter().map(|totals| (totals.subject_id(), totals)).collect();
    let mut latest = None;
    let mut ranking: Vec<_> = creators
        .into_iter()
        .map(|creator| {
            let mut gains = Gains::default();
            for totals in creator.subjects.iter().filter_map(|subject| totals.get(subject)) {
                gains += totals.gains();
                latest = latest.max(Some(totals.as_of));
            }
            (gains, creator)
        })
        .collect();
    ranking.sort_unstable_by(|(gains, creator), (other_gains, other)| {
        (other_gains.views, &creator.name_key, creator.id).cmp(&(gains.views, &other.name_key, other.id))
    });
    (ranking, latest)
}
