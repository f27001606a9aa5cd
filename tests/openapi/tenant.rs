//! Organizations with every kind of record that an operation may name: accounts, creators, links, and videos of both
//! kinds with history. They are imported, so they are paused and do not change during a test.

use std::fmt::Write;

use chrono::Days;
use harness::{Organization, Stack};
use serde_json::{Value, json};
use tidemark::import;
use tidemark::store::records::keys::NewKey;
use tidemark::store::records::organizations::OrganizationChange;

pub struct Tenant {
    pub organization: Organization,
    /// Accounts without a creator.
    pub accounts: Vec<String>,
    /// Usernames of `accounts`, in the same order.
    pub usernames: Vec<String>,
    /// Creators without accounts.
    pub creators: Vec<String>,
    /// Creators with their account.
    pub links: Vec<(String, String)>,
    /// Videos that are both discovered and tracked individually, so that every path accepts them.
    pub videos: Vec<String>,
    pub internal_ids: Vec<i64>,
    /// Collections of all posts with a payout, a mark of the first video and a share: each with its share.
    pub collections: Vec<(String, String)>,
    /// The token of the first collection's share.
    pub share_token: String,
    /// Webhooks whose receiver is down, each with an attempt to deliver a test.
    pub webhooks: Vec<(String, String)>,
    /// Imports that have ended, and imports that wait, which a delete cancels.
    pub imports: (Vec<String>, Vec<String>),
}

impl Tenant {
    /// Creates an organization with `size` records of each kind.
    pub async fn create(stack: &Stack, size: usize) -> Self {
        let unlimited =
            OrganizationChange { rate_limit: Some(Some(i32::MAX)), ..OrganizationChange::default() };
        let organization = stack.organization_with(unlimited, NewKey::named("test")).await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.csv");
        std::fs::write(&file, history_csv(stack, size).await).unwrap();
        let imported =
            import::load(&stack.databases, organization.id, vec![file], &import::ImportOptions::default())
                .await;
        assert_eq!(imported.unwrap().refused, 0);
        for n in 0..size {
            organization.post("/creators", json!({"name": format!("Unlinked {n}")})).await.ok(201);
        }
        let accounts = organization.get("/accounts?limit=200").await.ok(200);
        let (unlinked, linked): (Vec<_>, Vec<_>) =
            accounts.list("/data").iter().partition(|account| account["creator_id"].is_null());
        let creators = organization.get("/creators?limit=200").await.ok(200);
        let creators =
            creators.list("/data").iter().filter(|creator| creator["accounts_summary"]["total"] == 0);
        let videos = organization.get("/account-videos?limit=200").await.ok(200);
        let videos = videos.list("/data");
        assert!(videos.iter().all(|video| video["is_tracked"] == true), "{videos:?}");
        let first_video = text(&videos[0], "id");
        let (mut collections, mut tokens) = (Vec::new(), Vec::new());
        for n in 0..2 * size {
            let (collection, share, token) = create_collection(&organization, n, &first_video).await;
            collections.push((collection, share));
            tokens.push(token);
        }
        let mut webhooks = Vec::new();
        for _ in 0..MAX_WEBHOOKS.min(2 * size) {
            webhooks.push(create_webhook(&organization).await);
        }
        let waiting = size.min(MAX_WAITING_IMPORTS);
        let imports = (
            insert_imports(&organization, "succeeded", size).await,
            insert_imports(&organization, "queued", waiting).await,
        );
        Tenant {
            imports,
            webhooks,
            accounts: unlinked.iter().map(|account| text(account, "id")).collect(),
            usernames: unlinked.iter().map(|account| text(account, "username")).collect(),
            creators: creators.map(|creator| text(creator, "id")).collect(),
            links: linked.iter().map(|account| (text(account, "creator_id"), text(account, "id"))).collect(),
            videos: videos.iter().map(|video| text(video, "id")).collect(),
            internal_ids: videos.iter().map(|video| video["internal_id"].as_i64().unwrap()).collect(),
            collections,
            share_token: tokens.swap_remove(0),
            organization,
        }
    }
}

/// Creates a collection and returns its id, that of its share, and the token.
async fn create_collection(organization: &Organization, n: usize, video: &str) -> (String, String, String) {
    let payout =
        json!({"currency": "EUR", "per_thousand_views": "2", "bonuses": [{"views": 100, "amount": "1"}]});
    let body = json!({"name": format!("Collection {n}"), "rule": {"min_views": 0}, "payout": payout});
    let collection = organization.create("/collections", body).await;
    let marks = json!({"video_ids": [video], "state": "included"});
    organization.post(&format!("/collections/{collection}/videos"), marks).await.ok(200);
    let show = ["overview", "timeseries", "content", "accounts", "creators", "payouts"];
    let path = format!("/collections/{collection}/shares");
    let share = organization.post(&path, json!({"name": "Client", "show": show})).await.ok(201);
    (collection, share.text("/data/id").to_owned(), share.text("/data/token").to_owned())
}

/// Creates a webhook and returns its id, and that of an attempt.
async fn create_webhook(organization: &Organization) -> (String, String) {
    let body = json!({"url": "https://127.0.0.1:1/", "types": ["video.breakout"]});
    let webhook = organization.create("/webhooks", body).await;
    let attempt = sqlx::query_scalar(
        "with message as (
            insert into webhook_messages (organization_id, webhook_id, id, type, body, attempts, created_at)
            values ($1, $2::uuid, gen_random_uuid(), 'webhook.test', '{}', 1, now()) returning id
         )
         insert into webhook_attempts
             (id, organization_id, webhook_id, message_id, attempt, status, duration_ms, error, attempted_at)
         select gen_random_uuid(), $1, $2::uuid, id, 1, 'failed', 3, 'cannot connect', now() from message
         returning id::text",
    )
    .bind(organization.id)
    .bind(&webhook)
    .fetch_one(organization.pg())
    .await;
    (webhook, attempt.unwrap())
}

/// Fewer than an organization may have, so that it can create some.
const MAX_WEBHOOKS: usize = 8;
/// Fewer than an organization may have, so that it can import files.
const MAX_WAITING_IMPORTS: usize = 10;

/// Inserts imports of a process that never loads them, and returns their ids.
async fn insert_imports(organization: &Organization, status: &str, count: usize) -> Vec<String> {
    sqlx::query_scalar(
        "insert into uploads (id, organization_id, process_id, lease_until, status, options, received_at, created_at, finished_at)
         select gen_random_uuid(), $1, gen_random_uuid(), now() + interval '1 day', $2, '{\"dry_run\": false}', now(), now(),
            case $2 when 'succeeded' then now() end
         from generate_series(1, $3)
         returning id::text",
    )
    .bind(organization.id)
    .bind(status)
    .bind(count as i32)
    .fetch_all(organization.pg())
    .await
    .unwrap()
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("no {field}: {value}")).to_owned()
}

/// Returns a file with `size` accounts of creators and `size` accounts without, each with a video and a week of history.
async fn history_csv(stack: &Stack, size: usize) -> String {
    let today = stack.databases.clock.now().await.date_naive();
    let mut rows = String::from(
        "platform,username,external_id,observed_at,create_time,description,view_count,like_count,follower_count,\
         creator\n",
    );
    for n in 0..2 * size {
        let platform = ["instagram", "tiktok"][n / 2 % 2];
        let creator = if n % 2 == 0 { format!("Creator {n}") } else { String::new() };
        for days in [6, 3, 0] {
            let day = today - Days::new(days);
            let views = 1000 + 10 * n as u64 - days;
            writeln!(rows, "{platform},tide.{n},,{day},,,,,{views},{creator}").unwrap();
            // Discovered on the account, and tracked individually.
            for username in [format!("tide.{n}"), String::new()] {
                let posted = today - Days::new(5);
                writeln!(
                    rows,
                    "{platform},{username},73{n:05},{day},{posted}T10:00:00Z,Tide {n},{views},7,,"
                )
                .unwrap();
            }
        }
    }
    rows
}
