//! The load of an organization while processes are killed: it adds accounts, changes records and imports files. Each request
//! is retried under one idempotency key until it gets a response, so that it has its effect once.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use chrono::{Days, NaiveTime, TimeDelta};
use harness::{Organization, SandboxAccount};
use reqwest::Method;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::expected::ExpectedOrganization;
use crate::model::{History, Random};
use crate::recovery::{RECOVERY_TIMEOUT, wait_recovered};

/// Few enough for every list and ranking.
const MAX_CREATORS: usize = 8;

/// The load of one organization on one day.
pub(super) struct Load {
    pub(super) seed: u64,
    pub(super) day: usize,
    /// An account to track.
    pub(super) new_account: Option<SandboxAccount>,
    pub(super) imports: bool,
}

impl Load {
    /// Runs until it is stopped, but completes the day's additions, imports and deletions.
    pub(super) async fn run(
        self,
        mut tenant: ExpectedOrganization,
        dir: PathBuf,
        stop: CancellationToken,
    ) -> ExpectedOrganization {
        let mut random = Random(self.seed);
        let to_track = std::mem::take(&mut tenant.to_track).into_iter().chain(self.new_account.clone());
        for account in to_track {
            track(&mut tenant, &account).await;
        }
        let organization = tenant.organization.clone();
        let kill_after = Duration::from_millis(200 + random.below(1_500) as u64);
        let import = async {
            if self.imports { Some(import(&organization, &dir, self.day, kill_after).await) } else { None }
        };
        let changes = async {
            if self.day % 4 == 3 && tenant.history.accounts.len() > 1 {
                delete_account(&mut tenant).await;
            }
            let mut changes = 0;
            while changes < 6 || !stop.is_cancelled() {
                change(&mut tenant, &mut random).await;
                changes += 1;
            }
        };
        let (imported, ()) = tokio::join!(import, changes);
        if let Some(imported) = imported {
            add_imported(&mut tenant, imported).await;
        }
        tenant
    }
}

/// Retries a request until it gets an expected response instead of none or 503.
async fn request_until_ok(
    organization: &Organization,
    method: Method,
    path: &str,
    body: Option<Value>,
    expected: &[u16],
) -> Value {
    let key = Uuid::now_v7().to_string();
    wait_recovered(&format!("{method} {path} gets a response"), async || {
        let mut request = organization.request(method.clone(), path);
        if method == Method::POST {
            request = request.header("Idempotency-Key", &key);
        }
        if let Some(body) = &body {
            request = request.json(body);
        }
        let response = request.send().await.ok()?;
        let (status, text) = (response.status().as_u16(), response.text().await.ok()?);
        // The first request may still be running in Postgres.
        let in_flight = status == 409 && text.contains("in flight");
        if status == 503 || in_flight {
            return None;
        }
        assert!(expected.contains(&status), "{method} {path}: {status} {text}");
        Some(serde_json::from_str(&text).unwrap_or(Value::Null))
    })
    .await
}

fn parse_id(record: &Value) -> Uuid {
    record["id"].as_str().expect("the record has an id").parse().unwrap()
}

async fn track(tenant: &mut ExpectedOrganization, account: &SandboxAccount) {
    let body = json!({"platform": account.platform, "username": account.username});
    let created = request_until_ok(&tenant.organization, Method::POST, "/accounts", Some(body), &[201]).await;
    tenant.add_account(account, parse_id(&created["data"]));
}

/// Deletes the account that was added last. Its individually tracked videos stay.
async fn delete_account(tenant: &mut ExpectedOrganization) {
    let index = tenant.history.accounts.len() - 1;
    let path = format!("/accounts/{}", tenant.ids.accounts[index]);
    // A retry gets 404.
    request_until_ok(&tenant.organization, Method::DELETE, &path, None, &[204, 404]).await;
    tenant.delete_account(index);
}

/// Makes a random change.
async fn change(tenant: &mut ExpectedOrganization, random: &mut Random) {
    let organization = tenant.organization.clone();
    let mut pick = |length: usize| random.below(length.max(1) as i64) as usize;
    match pick(6) {
        0 | 1 if tenant.creators.len() < MAX_CREATORS => {
            let name = format!("Mara {}", Uuid::now_v7().simple());
            let created = request_until_ok(
                &organization,
                Method::POST,
                "/creators",
                Some(json!({"name": name})),
                &[201],
            )
            .await;
            tenant.creators.push((parse_id(&created["data"]), name));
        }
        0 | 1 => {
            let (id, name) = tenant.creators.remove(pick(MAX_CREATORS));
            request_until_ok(&organization, Method::DELETE, &format!("/creators/{id}"), None, &[204, 404])
                .await;
            tenant.links.retain(|_, creator| *creator != id);
            tenant.unused_names.push(name);
        }
        2 if !tenant.creators.is_empty() => {
            let index = pick(tenant.creators.len());
            let (id, old_name) = tenant.creators[index].clone();
            let name = format!("Nora {}", Uuid::now_v7().simple());
            let body = Some(json!({"name": name}));
            request_until_ok(&organization, Method::PATCH, &format!("/creators/{id}"), body, &[200]).await;
            tenant.creators[index].1 = name;
            tenant.unused_names.push(old_name);
        }
        3 => {
            let account = tenant.ids.accounts[pick(tenant.ids.accounts.len())];
            let creator = tenant.creators.get(pick(tenant.creators.len() + 1)).map(|(id, _)| *id);
            let body = Some(json!({"creator_id": creator}));
            request_until_ok(&organization, Method::PATCH, &format!("/accounts/{account}"), body, &[200])
                .await;
            match creator {
                Some(creator) => tenant.links.insert(account, creator),
                None => tenant.links.remove(&account),
            };
        }
        4 => {
            let found = tenant.history.videos.iter().zip(&tenant.ids.videos).filter(|(video, _)| {
                // Only of scraped accounts: imported posts are not on a platform.
                video.platform == "tiktok"
                    && video.account.is_some_and(|account| tenant.history.accounts[account].is_active)
            });
            let found: Vec<_> = found.map(|(video, (id, _))| (video.external_id.clone(), *id)).collect();
            let Some((post, id)) = found.get(pick(found.len())) else { return };
            if tenant.tracked.remove(post) {
                request_until_ok(&organization, Method::DELETE, &format!("/videos/{id}"), None, &[204, 404])
                    .await;
            } else {
                let body = Some(json!({"platform": "tiktok", "identifier": post}));
                request_until_ok(&organization, Method::POST, "/videos", body, &[201]).await;
                tenant.tracked.insert(post.clone());
            }
        }
        _ => {
            let account = tenant.ids.accounts[pick(tenant.ids.accounts.len())];
            let body = Some(json!({"metadata": {"team": Uuid::now_v7()}}));
            request_until_ok(&organization, Method::PATCH, &format!("/accounts/{account}"), body, &[200])
                .await;
        }
    }
}

/// Imports ten days of an untracked account. The first attempt is killed after a time.
async fn import(organization: &Organization, dir: &Path, day: usize, kill_after: Duration) -> History {
    let mut history = History::default();
    let account = history.account("tiktok", &format!("imported.{day}"), None);
    let until = organization.stack.databases.clock.now().await.date_naive() - Days::new(2);
    for number in 0..4 {
        let posted = (number > 0).then(|| until - Days::new(number * 4));
        let video = history.video("tiktok", Some(account), false, posted);
        for ago in 0..10 {
            let at = (until - Days::new(ago)).and_time(NaiveTime::MIN).and_utc() + TimeDelta::hours(3);
            let views = 1_000 * (10 - ago as i64) + 7 * number as i64;
            history.observe(
                video,
                at,
                [Some(views), Some(views / 9), None, Some(3), None, None, None, None, None],
            );
            if number == 0 {
                history.follow(account, at, Some(500 + views));
            }
        }
    }
    // Ids differ from those of other imports.
    for video in &mut history.videos {
        video.external_id = format!("{day}{}", video.external_id);
    }
    for row in &mut history.rows {
        if let Some(id) = row["external_id"].as_str() {
            row["external_id"] = json!(format!("{day}{id}"));
        }
    }
    let file = dir.join(format!("import.{day}.jsonl"));
    let lines: Vec<_> = history.rows.iter().map(Value::to_string).collect();
    std::fs::write(&file, lines.join("\n")).unwrap();
    let mut kill_after = Some(kill_after);
    wait_recovered("the file is imported", async || {
        let connection = &organization.stack.connection;
        let mut child = tokio::process::Command::from(connection.command())
            .args(["import", "--json", "--org", &organization.id.to_string()])
            .arg(&file)
            .env("TIDEMARK_CLOCK_URL", format!("{}/_clock", connection.sandbox_url))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let timeout = kill_after.take().unwrap_or(RECOVERY_TIMEOUT);
        let ended = tokio::time::timeout(timeout, child.wait()).await.ok()?;
        ended.unwrap().success().then_some(())
    })
    .await;
    history
}

/// Adds the imported records to the expected ones.
async fn add_imported(tenant: &mut ExpectedOrganization, imported: History) {
    let first = tenant.history.accounts.len();
    let find = |listed: &[Value], field: &str, value: &str| {
        listed.iter().find(|record| record[field] == value).expect("the record was imported").clone()
    };
    let listed = tenant.fetch_list("/accounts").await;
    for account in imported.accounts {
        tenant.ids.accounts.push(parse_id(&find(&listed, "username", &account.username)));
        tenant.history.accounts.push(account);
    }
    let listed = tenant.fetch_list("/account-videos").await;
    for mut video in imported.videos {
        let record = find(&listed, "external_id", &video.external_id);
        tenant.ids.videos.push((parse_id(&record), record["internal_id"].as_i64().unwrap()));
        video.account = video.account.map(|account| account + first);
        tenant.history.videos.push(video);
    }
}
