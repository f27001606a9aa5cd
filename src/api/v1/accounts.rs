//! Accounts in v1.

use salvo::{Router, Writer, handler};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::format::{PageQuery, Success};
use crate::api::new_records::{check_username, parse_username};
use crate::app::App;
use crate::http::input::FromBody;
use crate::http::input::violations::Violations;
use crate::http::route::get_records;
use crate::http::{Body, Caller, Query, Result, in_transaction};
use crate::model::account::Account;
use crate::model::limits::MAX_USERNAME_CHARS;
use crate::model::platform::Platform;
use crate::store::Write;
use crate::store::records::accounts::change::{self, AccountChange};
use crate::store::records::accounts::create::{self, NewAccount};
use crate::store::records::accounts::{self, AccountFilter};

pub(super) fn router() -> Router {
    Router::new()
        .push(Router::with_path("getAccounts").push(get_records(list)))
        .push(Router::with_path("addAccount").post(add))
        .push(Router::with_path("activateAccount").post(SetActive(true)))
        .push(Router::with_path("deactivateAccount").post(SetActive(false)))
}

#[derive(Deserialize, JsonSchema)]
struct AddBody {
    platform: Platform,
    #[schemars(length(min = 1, max = MAX_USERNAME_CHARS))]
    username: String,
}

impl FromBody for AddBody {
    fn example() -> Value {
        json!({"platform": "tiktok", "username": "salt.and.tide"})
    }

    fn check(fields: &Map<String, Value>, violations: &mut Violations) {
        check_username(fields, violations);
    }
}

#[derive(Deserialize, JsonSchema)]
struct AccountIdBody {
    account_id: Uuid,
}

impl FromBody for AccountIdBody {
    fn example() -> Value {
        json!({"account_id": "0198f3c2-7a10-7cc0-9d5e-3f1b8a6e2d41"})
    }
}

#[handler]
async fn list(app: App, caller: Caller, query: Query<PageQuery>) -> Result<Success<Vec<Account>>> {
    let (filter, page) = (AccountFilter::default(), query.0.page());
    let found = accounts::list(&app.pg, caller.organization, &app.readable, &filter, &page).await?;
    Ok(Success { name: "accounts", value: found.items })
}

#[handler]
async fn add(app: App, caller: Caller, body: Body<AddBody>) -> Result<Success<Account>> {
    let AddBody { platform, username } = body.0;
    let username = parse_username(platform, &username)?;
    let new = NewAccount { platform, username, change: AccountChange::default() };
    let now = app.clock.now().await;
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        let id = create::create(&mut write, &new, now).await?;
        commit(&app, write, id).await
    })
    .await
}

/// Resumes or pauses the tracking of an account.
struct SetActive(bool);

#[handler]
impl SetActive {
    async fn handle(&self, app: App, caller: Caller, body: Body<AccountIdBody>) -> Result<Success<Account>> {
        let AccountIdBody { account_id } = body.0;
        let change = AccountChange { is_active: Some(self.0), ..AccountChange::default() };
        in_transaction(&app, || async {
            let mut write = app.begin_write(caller.organization).await?;
            change::update(&mut write, account_id, &change).await?;
            commit(&app, write, account_id).await
        })
        .await
    }
}

/// Commits, and returns the account.
async fn commit(app: &App, mut write: Write, id: Uuid) -> Result<Success<Account>> {
    let organization = write.organization();
    let value = accounts::get(write.connection(), organization, &app.readable, id).await?;
    write.commit().await?;
    Ok(Success { name: "account", value })
}
