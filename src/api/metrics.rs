//! Batches of windowed totals, keyed by the ids that were asked for.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::app::App;
use crate::http::extract::FromBody;
use crate::http::fields::Object;
use crate::http::window::{WindowMeta, WindowParams};
use crate::http::{Body, Caller, Problem, WithMeta};
use crate::model::limits::BATCH_IDS;
use crate::model::platform::Platform;
use crate::store::analytics::videos::{self, VideoRef, VideoTotals};

/// The ids of `POST /account-videos/metrics`, and the window they are asked for.
struct AccountVideosBody {
    instagram: Vec<i64>,
    tiktok: Vec<i64>,
    window: WindowParams,
}

impl FromBody for AccountVideosBody {
    fn example() -> Value {
        json!({"instagram_post_ids": [1201, 1202], "tiktok_video_ids": [1301], "period": "30d"})
    }

    fn read(body: &mut Object<'_>) -> Self {
        let mut ids = |field| {
            body.about("Internal ids of videos, as `internal_id` tells them.");
            body.list(field, BATCH_IDS, || json!({"type": "integer", "format": "int64"}), integer)
                .unwrap_or_default()
        };
        let (instagram, tiktok) = (ids("instagram_post_ids"), ids("tiktok_video_ids"));
        if instagram.len() + tiktok.len() > BATCH_IDS {
            body.violations
                .add("tiktok_video_ids", format!("both lists together must have at most {BATCH_IDS} ids"));
        }
        AccountVideosBody { instagram, tiktok, window: WindowParams::read_body(body) }
    }
}

fn integer(value: &Value) -> Result<i64, String> {
    match value {
        Value::Number(number) if !number.is_f64() => {
            number.as_i64().ok_or_else(|| "must be an integer of at most 64 bits".to_owned())
        }
        _ => Err("must be an integer".to_owned()),
    }
}

#[derive(Serialize, JsonSchema)]
struct Totals {
    views: i64,
    plays: i64,
    likes: i64,
    comments: i64,
    shares: i64,
    engagement: i64,
}

impl Totals {
    const ZERO: Totals = Totals { views: 0, plays: 0, likes: 0, comments: 0, shares: 0, engagement: 0 };

    fn of(totals: &VideoTotals) -> Self {
        Totals {
            views: totals.views(),
            plays: totals.plays(),
            likes: totals.likes(),
            comments: totals.comments(),
            shares: totals.shares(),
            engagement: totals.engagement(),
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct BatchMeta<Id> {
    #[serde(flatten)]
    window: WindowMeta,
    not_found: Vec<Id>,
}

/// Totals what account-discovered videos gained over a window.
///
/// Reads only; still a `POST`, and needs the `write` scope.
#[endpoint(operation_id = "getAccountVideoMetrics")]
pub(super) async fn account_videos(
    app: App,
    caller: Caller,
    body: Body<AccountVideosBody>,
) -> Result<WithMeta<BTreeMap<i64, Totals>, BatchMeta<i64>>, Problem> {
    let Body(body) = body;
    let now = app.clock.now().await;
    let window = body.window.at(now);
    let mut found: Vec<VideoRef> = Vec::new();
    for (platform, ids) in [(Platform::Instagram, &body.instagram), (Platform::Tiktok, &body.tiktok)] {
        found.extend(videos::discovered(&app.pg, caller.organization, platform, ids).await?);
    }
    let totals = videos::totals(&app.clickhouse, caller.organization, &found, window).await?;
    let data_as_of = totals.iter().map(|totals| totals.as_of).max();
    let gained: HashMap<_, _> = totals.iter().map(|totals| (totals.video_id.cast_signed(), totals)).collect();
    let data: BTreeMap<_, _> = found
        .iter()
        .map(|video| {
            (
                video.internal_id,
                gained.get(&video.internal_id).map_or(Totals::ZERO, |totals| Totals::of(totals)),
            )
        })
        .collect();
    let asked: BTreeSet<_> = body.instagram.iter().chain(&body.tiktok).copied().collect();
    let not_found = asked.into_iter().filter(|id| !data.contains_key(id)).collect();
    Ok(WithMeta { data, meta: BatchMeta { window: WindowMeta::new(window, now, data_as_of), not_found } })
}
