//! Tracked accounts.

use std::ops::RangeInclusive;
use std::time::Duration;

use salvo::{Router, Writer};
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::fields::{ON_PLATFORM, TAGS, by_platform};
use super::{account_videos, daily, metrics};
use crate::app::App;
use crate::http::input::{
    ApiEnum, BodyFields, FromBody, FromPath, FromQuery, ListSort, Parts, PathParams, QueryParams, parse_uuid,
};
use crate::http::route::{get_or_head, parameter_except};
use crate::http::{
    Args, Body, Caller, Collection, Created, Data, IdempotencyKey, ListParams, NoContent, Path, Problem,
    Query, WithMeta, in_transaction,
};
use crate::model::account::{Account, AccountStats};
use crate::model::identifier::Username;
use crate::model::limits::{MAX_CATEGORY_CHARS, MAX_RECENT_POSTS, POST_LOOKBACK_DAYS, SCRAPE_INTERVAL_HOURS};
use crate::model::platform::Platform;
use crate::store::Write;
use crate::store::outbox::visibility;
use crate::store::postgres::keyset::SortDirection;
use crate::store::records::accounts::change::{self, AccountChange, NewAccount};
use crate::store::records::accounts::{self, AccountFilter, AccountIdentifier, AccountSort};

/// Segments beside `{account_id}` that are no accounts.
const LITERALS: &[&str] = &["stats", "metrics"];
/// How long a deletion waits for the history of the videos that stay, so that who asks next has it in every total.
const MOVING: Duration = Duration::from_secs(2);
/// Long enough for every profile URL.
const USERNAME: RangeInclusive<usize> = 1..=500;

pub(super) fn router() -> Router {
    Router::with_path("accounts")
        .push(get_or_head(list))
        .push(Router::new().post(create))
        .push(Router::with_path("stats").push(get_or_head(stats)))
        .push(metrics::of_accounts())
        .push(
            parameter_except("{account_id}", LITERALS)
                .push(get_or_head(get))
                .push(Router::new().patch(patch))
                .push(Router::new().delete(delete))
                .push(Router::with_path("videos").push(get_or_head(account_videos::list_of_account)))
                .push(Router::with_path("analytics").push(get_or_head(daily::get_account))),
        )
}

impl ApiEnum for AccountSort {
    const VARIANTS: &'static [(&'static str, Self)] = &[
        ("added_at", AccountSort::AddedAt),
        ("username", AccountSort::Username),
        ("last_scrape_time", AccountSort::LastScrapeTime),
        ("follower_count", AccountSort::FollowerCount),
        ("view_count", AccountSort::ViewCount),
        ("like_count", AccountSort::LikeCount),
        ("play_count", AccountSort::PlayCount),
    ];
}

impl ListSort for AccountSort {
    const DEFAULT: (Self, SortDirection) = (AccountSort::AddedAt, SortDirection::Desc);
}

struct ListQuery {
    filter: AccountFilter,
    params: ListParams<AccountSort>,
}

impl FromQuery for ListQuery {
    fn read(query: &mut QueryParams<'_>, parts: &Parts<'_>) -> Self {
        let filter = AccountFilter {
            platform: query.describe(ON_PLATFORM).variant("platform"),
            is_active: query
                .describe("Only those that are tracked, or only paused ones.")
                .boolean("is_active"),
            q: query.describe("A part of the username, in any case.").search_text("q"),
            category: query.describe("Exactly this category.").text("category", MAX_CATEGORY_CHARS),
            creator_id: query.describe("Only the accounts of this creator.").uuid("creator_id"),
        };
        ListQuery { params: ListParams::read(query, parts, &filter), filter }
    }
}

/// An id, or a username behind an `@`.
const ACCOUNT_NAME: &str = "^(?:@[A-Za-z0-9._]{1,30}|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$";
/// When a username does not tell which account is meant, or which one may have it.
const AMBIGUOUS: &str = "The username is tracked on both platforms: say which by `platform`.";

/// `{account_id}`: an id, or a username behind an `@`.
struct AccountPath {
    name: AccountIdentifier,
}

impl FromPath for AccountPath {
    fn read(path: &mut PathParams<'_>) -> Self {
        path.describe("The id of the account, or its username behind an `@`.");
        let text = path.text("account_id", || json!({"type": "string", "pattern": ACCOUNT_NAME}));
        let name = match text.strip_prefix('@') {
            Some(username) => AccountIdentifier::Username(username.to_lowercase()),
            None => match parse_uuid(text) {
                Ok(id) => AccountIdentifier::Id(id),
                Err(_) => {
                    path.add_violation("account_id", "must be a UUID, or a username with @ before it");
                    AccountIdentifier::Username(String::new())
                }
            },
        };
        AccountPath { name }
    }
}

/// Which platform's account of that name.
struct OnPlatform {
    platform: Option<Platform>,
}

impl FromQuery for OnPlatform {
    fn read(query: &mut QueryParams<'_>, _parts: &Parts<'_>) -> Self {
        query.describe("Which account of that username, where it is tracked on both platforms.");
        OnPlatform { platform: query.variant("platform") }
    }
}

/// The fields that a create and a change share.
fn read_change(body: &mut BodyFields<'_>) -> AccountChange {
    AccountChange {
        is_active: body.describe("False pauses tracking, true resumes it.").boolean("is_active"),
        category: body
            .describe("A label of your own; null removes it.")
            .nullable("category", |body, name| body.text(name, &(0..=MAX_CATEGORY_CHARS))),
        metadata: body.describe(TAGS).metadata("metadata"),
        scrape_interval_hours: body
            .describe("Hours from one scrape to the next.")
            .integer("scrape_interval_hours", &SCRAPE_INTERVAL_HOURS),
        creator_id: body
            .describe("The creator that the account belongs to; null unlinks it.")
            .nullable("creator_id", BodyFields::uuid),
        max_recent_posts_per_account: body
            .describe("How many posts the first scrape reads; null takes the organization's default.")
            .nullable("max_recent_posts_per_account", |body, name| body.integer(name, &MAX_RECENT_POSTS)),
        post_lookback_days: body
            .describe("How many days back the first scrape reads; null takes the organization's default.")
            .nullable("post_lookback_days", |body, name| body.integer(name, &POST_LOOKBACK_DAYS)),
    }
}

struct CreateBody {
    /// Absent only from bodies that are refused.
    new: Option<NewAccount>,
}

impl FromBody for CreateBody {
    fn example() -> Value {
        json!({"platform": "tiktok", "username": "@salt.and.tide", "category": "surf", "metadata": {"team": "north"}})
    }

    fn read(body: &mut BodyFields<'_>) -> Self {
        let named = read_named(body);
        let change = read_change(body);
        CreateBody { new: named.map(|(platform, username)| NewAccount { platform, username, change }) }
    }
}

/// Reads which account of which platform is meant.
pub(super) fn read_named(body: &mut BodyFields<'_>) -> Option<(Platform, Username)> {
    body.require("platform");
    body.require("username");
    let platform = body.describe("Where the account is.").variant::<Platform>("platform");
    let text =
        body.describe("The username, with or without `@`, or the profile's URL.").text("username", &USERNAME);
    body.one_of_schemas(|| by_platform("username", Username::pattern));
    let (platform, text) = platform.zip(text)?;
    match Username::parse(platform, &text) {
        Ok(username) => Some((platform, username)),
        Err(error) => {
            body.violations.add("username", error.to_string());
            None
        }
    }
}

/// Matches the usernames of all platforms.
fn any_username() -> String {
    Platform::ALL.map(Username::pattern).join("|")
}

struct PatchBody {
    change: AccountChange,
    username: Option<String>,
}

impl FromBody for PatchBody {
    fn example() -> Value {
        json!({"is_active": false, "scrape_interval_hours": 12, "creator_id": null})
    }

    fn read(body: &mut BodyFields<'_>) -> Self {
        let change = read_change(body);
        body.describe("The new username of an account that was renamed on its platform, or the right one of an account that could \
             never be read; or its profile's URL.");
        let username = body.text_parsed("username", &USERNAME, any_username, |text| {
            let read = Platform::ALL.map(|platform| Username::parse(platform, &text));
            if read.iter().any(Result::is_ok) {
                Ok(text)
            } else {
                Err("is no username of any platform".to_owned())
            }
        });
        PatchBody { change, username }
    }
}

/// Lists the tracked accounts.
///
/// Those that were added last come first, unless asked otherwise.
#[endpoint(operation_id = "listAccounts")]
async fn list(app: App, caller: Caller, query: Query<ListQuery>) -> Result<Collection<Account>, Problem> {
    let ListQuery { filter, params } = query.0;
    let found = accounts::list(&app.pg, caller.organization, &app.readable, &filter, &params.page).await?;
    params.into_response(found)
}

/// Tracks an account.
///
/// It is there at once; its first scrape follows within seconds. `409` names the account when the organization
/// tracks it already.
#[endpoint(operation_id = "createAccount")]
async fn create(
    app: App,
    caller: Caller,
    args: Args<(Body<CreateBody>, IdempotencyKey)>,
) -> Result<Created<Account>, Problem> {
    let Args((Body(CreateBody { new }), idempotency)) = args;
    let new = new.ok_or_else(|| Problem::internal("a body without an account was taken for valid"))?;
    let now = app.clock.now().await;
    in_transaction(|| async {
        let mut write = Write::begin(&app.pg, caller.organization).await?;
        if let Some(first) = idempotency.claim(&mut write).await? {
            return Ok(first);
        }
        let id = change::create(&mut write, &new, now).await?;
        let account = accounts::get(write.connection(), caller.organization, &app.readable, id).await?;
        let created = Created::at(format!("/v2/accounts/{id}"), &account)?;
        idempotency.store(&mut write, &created).await?;
        write.commit().await?;
        Ok(created)
    })
    .await
}

/// Reads one account.
///
/// `account_id` is an id, or a username behind an `@`.
#[endpoint(operation_id = "getAccount", responses((status_code = 409, description = AMBIGUOUS)))]
async fn get(
    app: App,
    caller: Caller,
    args: Args<(Path<AccountPath>, Query<OnPlatform>)>,
) -> Result<Data<Account>, Problem> {
    let Args((Path(path), Query(query))) = args;
    let id = accounts::find(&app.pg, caller.organization, &path.name, query.platform).await?;
    let data = accounts::get(&app.pg, caller.organization, &app.readable, id).await?;
    Ok(Data { data })
}

/// Changes an account: only the fields that are sent.
///
/// `account_id` is an id, or a username behind an `@`.
#[endpoint(
    operation_id = "updateAccount",
    responses((
        status_code = 409,
        description = "The username in the path is tracked on both platforms, or the account cannot take the new one: \
                       it is another account's, or this account is read under its own and not known to be gone.",
    ))
)]
async fn patch(
    app: App,
    caller: Caller,
    args: Args<(Path<AccountPath>, Query<OnPlatform>, Body<PatchBody>)>,
) -> Result<Data<Account>, Problem> {
    let Args((Path(path), Query(query), Body(body))) = args;
    let now = app.clock.now().await;
    in_transaction(|| async {
        let mut write = Write::begin(&app.pg, caller.organization).await?;
        let id = accounts::find(write.connection(), caller.organization, &path.name, query.platform).await?;
        change::update(&mut write, id, &body.change).await?;
        if let Some(username) = &body.username {
            change::rename(&mut write, id, username, now).await?;
        }
        let data = accounts::get(write.connection(), caller.organization, &app.readable, id).await?;
        write.commit().await?;
        Ok(Data { data })
    })
    .await
}

/// Stops tracking an account and deletes it.
///
/// Its discovered videos and their history go with it; those that are also tracked individually stay.
#[endpoint(operation_id = "deleteAccount", responses((status_code = 409, description = AMBIGUOUS)))]
async fn delete(
    app: App,
    caller: Caller,
    args: Args<(Path<AccountPath>, Query<OnPlatform>)>,
) -> Result<NoContent, Problem> {
    let Args((Path(path), Query(query))) = args;
    let moves = in_transaction(|| async {
        let mut write = Write::begin(&app.pg, caller.organization).await?;
        let id = accounts::find(write.connection(), caller.organization, &path.name, query.platform).await?;
        let some_stay = change::delete(&mut write, id).await?;
        let committed = write.commit().await?;
        Ok(committed.outbox_position.filter(|_| some_stay))
    });
    if let Some(position) = moves.await? {
        let moved = visibility::wait_for_position(&app.pg, caller.organization, position);
        // The deletion is done however long that takes.
        let _ = tokio::time::timeout(MOVING, moved).await;
    }
    Ok(NoContent)
}

/// Which days the numbers of posts are of.
#[derive(Debug, Serialize, JsonSchema)]
struct StatsMeta {
    /// Oldest day first; the last one is today, in UTC.
    days: [chrono::NaiveDate; 7],
}

/// Tells how much every account posted in the last seven days.
///
/// Every account is told, paused ones too, in the order of their ids.
#[endpoint(operation_id = "listAccountStats")]
async fn stats(app: App, caller: Caller) -> Result<WithMeta<Vec<AccountStats>, StatsMeta>, Problem> {
    let today = app.clock.now().await.date_naive();
    let data = accounts::fetch_stats(&app.pg, caller.organization, today).await?;
    Ok(WithMeta { data, meta: StatsMeta { days: AccountStats::days(today) } })
}
