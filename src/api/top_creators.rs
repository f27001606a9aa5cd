//! The leaderboard of creators.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::fields::WindowOnPlatform;
use crate::app::App;
use crate::http::input::fields::Params;
use crate::http::input::window::WindowMeta;
use crate::http::input::{FromQuery, Parts};
use crate::http::{Caller, Kept, Problem, Query, WithMeta, kept};
use crate::model::gains::Gains;
use crate::model::limits::{DEFAULT_SHORT_LIST_SIZE, SHORT_LIST_SIZE};
use crate::model::period::Window;
use crate::model::platform::Platform;
use crate::store::analytics::SubjectScope;
use crate::store::analytics::creators::{self, CreatorSubjects};
use crate::store::analytics::subjects::{self, GainColumns};
use crate::store::outbox::data_version::CacheDependencies;

/// What a leaderboard is of, and how long it is.
pub(super) struct TopQuery {
    of: WindowOnPlatform,
    limit: usize,
}

impl FromQuery for TopQuery {
    fn read(query: &mut Params<'_>, parts: &Parts<'_>) -> Self {
        TopQuery {
            of: WindowOnPlatform::read(query, parts),
            limit: query.about("How many creators the ranking has.").integer_or(
                "limit",
                &SHORT_LIST_SIZE,
                DEFAULT_SHORT_LIST_SIZE,
            ) as usize,
        }
    }
}

/// An entry of the leaderboard.
#[derive(Serialize, JsonSchema)]
pub(super) struct TopCreator {
    /// Id of the creator.
    id: Uuid,
    /// Always `creator`.
    r#type: &'static str,
    /// Name of the creator.
    name: String,
    /// Gain in views of all its accounts.
    views: i64,
    /// Gain in likes, comments and shares of all its accounts.
    engagement: i64,
    /// Number of its accounts, of the platform asked for.
    account_count: usize,
}

/// Ranks the creators by the views that their accounts gained.
///
/// Every creator is ranked, those without views too.
#[endpoint(operation_id = "listTopCreators")]
pub(super) async fn list(
    app: App,
    caller: Caller,
    query: Query<TopQuery>,
) -> Result<Kept<WithMeta<Vec<TopCreator>, WindowMeta>>, Problem> {
    let Query(TopQuery { of: WindowOnPlatform { window, platform }, limit }) = query;
    let now = app.clock.now().await;
    let window = window.at(now)?;
    let basis = CacheDependencies { until: window.end, videos: false };
    let about = (window, window.complete_through(now), platform, limit);
    let work = top(&app, caller.organization, platform, limit, window, now);
    kept(&app, &caller, "listTopCreators", &about, basis, work).await
}

async fn top(
    app: &App,
    organization: Uuid,
    platform: Option<Platform>,
    limit: usize,
    window: Window,
    now: DateTime<Utc>,
) -> Result<WithMeta<Vec<TopCreator>, WindowMeta>, Problem> {
    let totals = async {
        let scope = SubjectScope::for_organization(&app.pg, organization, platform).await?;
        subjects::fetch_totals(&app.history, &scope, window, GainColumns::Engagement).await
    };
    let (creators, totals) =
        tokio::try_join!(creators::list_with_subjects(&app.pg, organization, platform), totals)?;
    let totals: HashMap<_, _> = totals.iter().map(|totals| (totals.subject_id(), totals)).collect();

    let mut latest = None::<DateTime<Utc>>;
    let mut ranked: Vec<(Gains, CreatorSubjects)> = Vec::with_capacity(creators.len());
    for creator in creators {
        let mut gains = Gains::default();
        for totals in creator.subjects.iter().filter_map(|subject| totals.get(subject)) {
            gains += totals.gains();
            latest = latest.max(Some(totals.as_of));
        }
        ranked.push((gains, creator));
    }
    ranked.sort_unstable_by(|(gains, creator), (others, other)| {
        (others.views, &creator.name_key, creator.id).cmp(&(gains.views, &other.name_key, other.id))
    });
    let linked = ranked.iter().flat_map(|(_, creator)| creator.subjects.iter().copied()).collect();
    let scope = SubjectScope::for_subjects(organization, platform, linked);
    let data_as_of = subjects::resolve_as_of(&app.history, &scope, window, latest).await?;
    let data = ranked.into_iter().take(limit).map(|(gains, creator)| TopCreator {
        id: creator.id,
        r#type: "creator",
        name: creator.name,
        views: gains.views,
        engagement: gains.engagement,
        account_count: creator.subjects.len(),
    });
    Ok(WithMeta { data: data.collect(), meta: WindowMeta::new(window, now, data_as_of) })
}
