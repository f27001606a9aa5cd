//! Daily rows of a video, an account or a creator: what was gained on each day, or what the counters were at the end
//! of it.

use chrono::NaiveDate;
use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::fields::{AccountIdPath, CreatorPath, VideoPath};
use crate::app::App;
use crate::http::input::fields::{Params, Word};
use crate::http::input::window::{WindowMeta, WindowParams};
use crate::http::input::{FromQuery, Parts};
use crate::http::{Args, Caller, Kept, Path, Problem, Query, WithMeta, kept};
use crate::model::counters::Counters;
use crate::model::period::{DateRules, Window};
use crate::store::analytics::days::{self, DailyHistory, HistoryDay};
use crate::store::analytics::{SubjectScope, accounts, videos};
use crate::store::outbox::data_version::CacheDependencies;

const VALUES: &str =
    "Whether rows say what was gained on each day, or what the counters were at the end of it.";

/// What the counters of a row say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "lowercase")]
enum Values {
    /// What was gained on the day.
    Gains,
    /// What was known at the end of the day.
    Cumulative,
}

impl Word for Values {
    const WORDS: &'static [(&'static str, Self)] =
        &[("gains", Values::Gains), ("cumulative", Values::Cumulative)];
}

/// Which days are asked for, and what their rows say.
pub(super) struct DailyQuery {
    window: WindowParams,
    values: Values,
}

impl FromQuery for DailyQuery {
    fn read(query: &mut Params<'_>, _parts: &Parts<'_>) -> Self {
        DailyQuery {
            window: WindowParams::read_query(query, DateRules::Daily),
            values: query.about(VALUES).word_or("values", Values::Gains),
        }
    }
}

/// One UTC day of a video or a creator.
#[derive(Serialize, JsonSchema)]
pub(super) struct VideoDay {
    /// UTC day.
    date: NaiveDate,
    /// Gains of the day, 0 where nothing was observed; or counters at its end, null where never known by then.
    #[serde(flatten)]
    counters: Counters,
}

/// One UTC day of an account.
#[derive(Serialize, JsonSchema)]
pub(super) struct AccountDay {
    #[serde(flatten)]
    counters: VideoDay,
    /// Followers at the end of the day, never a gain; null before the first observation.
    follower_count: Option<i64>,
}

/// What is told of daily rows beside them.
#[derive(Serialize, JsonSchema)]
pub(super) struct DailyMeta {
    /// Id of the video, account or creator.
    id: Uuid,
    #[serde(flatten)]
    window: WindowMeta,
    /// What the rows say: `gains` of each day, or `cumulative` counters at the end of it.
    values: Values,
    /// Gains over the whole window, whatever the rows say.
    totals: Counters,
}

type Answer<Row> = WithMeta<Vec<Row>, DailyMeta>;

/// Reads the daily gains, or end-of-day counters, of a video.
///
/// The video may be discovered, individually tracked, or both.
#[endpoint(operation_id = "getVideoAnalytics")]
pub(super) async fn of_video(
    app: App,
    caller: Caller,
    args: Args<(Path<VideoPath>, Query<DailyQuery>)>,
) -> Result<Kept<Answer<VideoDay>>, Problem> {
    let Args((Path(VideoPath { video_id }), Query(DailyQuery { window, values }))) = args;
    let now = app.clock.now().await;
    let window = window.at(now)?;
    let basis = CacheDependencies { until: window.end, videos: true };
    let about = (video_id, window, window.complete_through(now), values);
    kept(&app, &caller, "getVideoAnalytics", &about, basis, async {
        let video = videos::get(&app.pg, caller.organization, video_id).await?;
        let days = days::fetch_video(&app.history, caller.organization, video, window).await?;
        Ok(answer(video_id, WindowMeta::new(window, now, days.as_of), values, &days, video_day))
    })
    .await
}

/// Reads the daily gains, or end-of-day counters, of an account's videos together, and its followers.
///
/// Its discovered videos, that is; those that are tracked on their own alone are none of an account's.
#[endpoint(operation_id = "getAccountAnalytics")]
pub(super) async fn of_account(
    app: App,
    caller: Caller,
    args: Args<(Path<AccountIdPath>, Query<DailyQuery>)>,
) -> Result<Kept<Answer<AccountDay>>, Problem> {
    let Args((Path(AccountIdPath { account_id }), Query(DailyQuery { window, values }))) = args;
    let now = app.clock.now().await;
    let window = window.at(now)?;
    let basis = CacheDependencies { until: window.end, videos: false };
    let about = (account_id, window, window.complete_through(now), values);
    kept(&app, &caller, "getAccountAnalytics", &about, basis, async {
        let days = days_of(&app, &caller, Some(account_id), None, window).await?;
        let day = |day: &HistoryDay, values| AccountDay {
            counters: video_day(day, values),
            follower_count: day.followers,
        };
        Ok(answer(account_id, WindowMeta::new(window, now, days.as_of), values, &days, day))
    })
    .await
}

/// Reads the daily gains, or end-of-day counters, of the videos of all of a creator's accounts together.
///
/// The accounts are those that are linked now, with all their history.
#[endpoint(operation_id = "getCreatorAnalytics")]
pub(super) async fn of_creator(
    app: App,
    caller: Caller,
    args: Args<(Path<CreatorPath>, Query<DailyQuery>)>,
) -> Result<Kept<Answer<VideoDay>>, Problem> {
    let Args((Path(CreatorPath { creator_id }), Query(DailyQuery { window, values }))) = args;
    let now = app.clock.now().await;
    let window = window.at(now)?;
    let basis = CacheDependencies { until: window.end, videos: false };
    let about = (creator_id, window, window.complete_through(now), values);
    kept(&app, &caller, "getCreatorAnalytics", &about, basis, async {
        let days = days_of(&app, &caller, None, Some(creator_id), window).await?;
        Ok(answer(creator_id, WindowMeta::new(window, now, days.as_of), values, &days, video_day))
    })
    .await
}

async fn days_of(
    app: &App,
    caller: &Caller,
    account: Option<Uuid>,
    creator: Option<Uuid>,
    window: Window,
) -> Result<DailyHistory, Problem> {
    let subjects = accounts::fetch_subject_ids(&app.pg, caller.organization, account, creator).await?;
    let scope = SubjectScope::for_subjects(caller.organization, None, subjects);
    Ok(days::fetch_subjects(&app.history, &scope, window).await?)
}

fn answer<Row>(
    id: Uuid,
    window: WindowMeta,
    values: Values,
    days: &DailyHistory,
    row: impl Fn(&HistoryDay, Values) -> Row,
) -> Answer<Row> {
    let data = days.days.iter().map(|day| row(day, values)).collect();
    let totals = Counters::from_array(days.totals().map(Some));
    WithMeta { data, meta: DailyMeta { id, window, values, totals } }
}

fn video_day(day: &HistoryDay, values: Values) -> VideoDay {
    let counters = match values {
        Values::Gains => Counters::from_array(day.gains.map(Some)),
        Values::Cumulative => day.counts,
    };
    VideoDay { date: day.date, counters }
}
