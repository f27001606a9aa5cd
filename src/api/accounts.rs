//! Accounts.

use std::time::Duration;

use salvo::{Router, Writer};
use salvo_oapi::{Operation, ParameterIn, endpoint};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::mcp::tool::{Answer, Tool};
use super::new_records::NewAccountBody;
use super::{
    account_list, account_videos, ages, batches, daily, metrics, refreshes, sparklines, top_accounts,
};
use crate::app::App;
use crate::http::input::reader::InputSchema;
use crate::http::input::violations::Violations;
use crate::http::input::{FromBody, RequestContext, RequestPart, field, parse_uuid};
use crate::http::openapi::operation::add_parameters;
use crate::http::route::{get_or_head, get_records, parameter_except, post_without_body};
use crate::http::{
    Args, Body, Caller, Created, Data, IdempotencyKey, NoContent, Query, Result, in_transaction,
};
use crate::model::account::Account;
use crate::model::identifier::Username;
use crate::model::limits::MAX_USERNAME_CHARS;
use crate::model::platform::Platform;
use crate::store::outbox::visibility;
use crate::store::records::accounts::change::{self, AccountChange};
use crate::store::records::accounts::create as creation;
use crate::store::records::accounts::{self, AccountIdentifier};

/// How long a deletion waits until totals include the history of videos that remain tracked individually.
const HISTORY_MOVE_TIMEOUT: Duration = Duration::from_secs(2);
/// Segments in the place of an id.
const LITERALS: [&str; 7] = ["batch", "categories", "stats", "top", "metrics", "refresh", "timeseries"];

pub(super) fn router() -> Router {
    Router::with_path("accounts")
        .push(get_records(account_list::list))
        .post(create)
        .push(Router::with_path("batch").post(batches::create_accounts).patch(batches::update_accounts))
        .push(Router::with_path("categories").push(get_records(account_list::list_categories)))
        .push(Router::with_path("stats").push(get_records(account_list::list_stats)))
        .push(Router::with_path("top").push(get_or_head(top_accounts::list)))
        .push(
            Router::with_path("metrics")
                .push(get_or_head(metrics::get_accounts))
                .post(metrics::post_accounts),
        )
        .push(Router::with_path("refresh").post(refreshes::refresh_accounts))
        .push(Router::with_path("timeseries").push(get_or_head(sparklines::get_accounts)))
        .push(
            parameter_except("{account_id}", &LITERALS)
                .push(get_records(get))
                .patch(patch)
                .delete(delete)
                .push(Router::with_path("videos").push(get_records(account_videos::list_by_account)))
                .push(Router::with_path("analytics").push(get_or_head(daily::get_account)))
                .push(Router::with_path("benchmarks").push(get_or_head(ages::get_benchmarks)))
                .push(Router::with_path("refresh").push(post_without_body(refreshes::refresh_account))),
        )
}

const ACCOUNT_PATTERN: &str =
    "^(?:@[A-Za-z0-9._]{1,30}|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$";
const AMBIGUOUS_USERNAME: &str = "The username is tracked on both platforms: send `platform`.";

/// `{account_id}`: an id, or a username with a leading `@`.
struct AccountPath {
    account: AccountIdentifier,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct AccountPathFields {
    /// Account id, or username with a leading `@`.
    #[schemars(extend("pattern" = ACCOUNT_PATTERN))]
    account_id: String,
}

impl RequestPart for AccountPath {
    fn read(context: &RequestContext<'_>, violations: &mut Violations) -> Option<Self> {
        let text = context.request.params().get("account_id").map_or("", String::as_str);
        let account = match text.strip_prefix('@') {
            Some(username) => Some(AccountIdentifier::Username(username.to_lowercase())),
            None => parse_uuid(text).ok().map(AccountIdentifier::Id),
        };
        if account.is_none() {
            violations.add("account_id", "must be a UUID, or a username with a leading @");
        }
        Some(AccountPath { account: account? })
    }

    fn describe(operation: &mut Operation) {
        add_parameters(operation, ParameterIn::Path, &InputSchema::of::<AccountPathFields>().fields);
    }
}

#[derive(Deserialize, JsonSchema)]
struct PlatformQuery {
    /// Platform of the username, if it is tracked on both.
    platform: Option<Platform>,
}

#[derive(Deserialize, JsonSchema)]
struct PatchBody {
    #[serde(flatten)]
    change: AccountChange,
    /// New username or profile URL, if the account was renamed on its platform or could never be scraped under the current
    /// one.
    #[schemars(length(min = 1, max = MAX_USERNAME_CHARS))]
    #[schemars(extend("pattern" = Platform::ALL.map(Username::pattern).join("|")))]
    username: Option<String>,
}

impl FromBody for PatchBody {
    fn example() -> Value {
        json!({"is_active": false, "scrape_interval_hours": 12, "creator_id": null})
    }

    fn check(fields: &Map<String, Value>, violations: &mut Violations) {
        let is_username =
            |text: String| Platform::ALL.iter().any(|platform| Username::parse(*platform, &text).is_ok());
        if field(fields, "username").is_some_and(|text| !is_username(text)) {
            violations.add("username", "is not a username of any platform");
        }
    }
}

/// Track an account
///
/// Returns at once; the first scrape follows within seconds. If the account is already tracked, the response is 409 and
/// `detail` names it.
#[endpoint(operation_id = "createAccount")]
async fn create(
    app: App,
    caller: Caller,
    args: Args<(Body<NewAccountBody>, IdempotencyKey)>,
) -> Result<Created<Account>> {
    let Args((Body(body), idempotency)) = args;
    let new = body.into_account()?;
    let now = app.clock.now().await;
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        if let Some(first) = idempotency.claim(&mut write).await? {
            return Ok(first);
        }
        let id = creation::create(&mut write, &new, now).await?;
        let account = accounts::get(write.connection(), caller.organization, &app.readable, id).await?;
        let created = Created::at(format!("/v2/accounts/{id}"), &account)?;
        idempotency.store(&mut write, &created).await?;
        write.commit().await?;
        Ok(created)
    })
    .await
}

pub(super) const TOOL: Tool = Tool {
    name: "get_account",
    description: "One account by its id, or by its username with a leading @: profile, creator, tags (category, \
        metadata), the latest counters (follower_count, and view_count, like_count and others summed over \
        its posts, since posting), tracking status and times of scrapes (UTC). For gains of a period use \
        get_overview with account_id.",
    answer: Answer::Response("getAccount"),
};

/// Get an account
///
/// By id, or by username with a leading `@`.
#[endpoint(operation_id = "getAccount", responses((status_code = 409, description = AMBIGUOUS_USERNAME)))]
async fn get(
    app: App,
    caller: Caller,
    args: Args<(AccountPath, Query<PlatformQuery>)>,
) -> Result<Data<Account>> {
    let Args((path, Query(query))) = args;
    let id = accounts::find(&app.pg, caller.organization, &path.account, query.platform).await?;
    let data = accounts::get(&app.pg, caller.organization, &app.readable, id).await?;
    Ok(Data { data })
}

/// Update an account
///
/// Changes only the fields that are sent. The account is named by id, or by username with a leading `@`.
#[endpoint(
    operation_id = "updateAccount",
    responses((
        status_code = 409,
        description = "The username in the path is tracked on both platforms, or the new one is rejected: another account \
                       has it, or the account is still available under its current one.",
    ))
)]
async fn patch(
    app: App,
    caller: Caller,
    args: Args<(AccountPath, Query<PlatformQuery>, Body<PatchBody>)>,
) -> Result<Data<Account>> {
    let Args((path, Query(query), Body(body))) = args;
    let now = app.clock.now().await;
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        let id =
            accounts::find(write.connection(), caller.organization, &path.account, query.platform).await?;
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

/// Delete an account
///
/// Also deletes its discovered videos and their history. Videos that are also tracked individually remain.
#[endpoint(operation_id = "deleteAccount", responses((status_code = 409, description = AMBIGUOUS_USERNAME)))]
async fn delete(
    app: App,
    caller: Caller,
    args: Args<(AccountPath, Query<PlatformQuery>)>,
) -> Result<NoContent> {
    let Args((path, Query(query))) = args;
    let deletion = in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        let id =
            accounts::find(write.connection(), caller.organization, &path.account, query.platform).await?;
        let some_remain = change::delete(&mut write, id).await?;
        let committed = write.commit().await?;
        Ok(committed.outbox_position.filter(|_| some_remain))
    });
    if let Some(position) = deletion.await? {
        let history_moved = visibility::wait_for_position(&app.pg, caller.organization, position);
        // The account is deleted, whether or not this times out.
        let _ = tokio::time::timeout(HISTORY_MOVE_TIMEOUT, history_moved).await;
    }
    Ok(NoContent)
}
