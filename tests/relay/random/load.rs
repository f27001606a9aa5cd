//! What an organization does while processes die: it adds accounts, changes records, loads a file. Every request is
//! made again until it is answered, under one key, so that what was asked for has happened once.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use chrono::{Days, NaiveTime, TimeDelta, Utc};
use reqwest::Method;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::expected::Tenant;
use super::recovered;
use crate::harness::{Organization, SandboxAccount};
use crate::model::{Dice, History, PLATFORMS};

/// More than any list or ranking leaves out.
const CREATORS: usize = 8;

/// One organization's day.
pub(super) struct Load {
    pub(super) seed: u64,
    pub(super) day: usize,
    /// An account to add.
    pub(super) fresh: Option<SandboxAccount>,
    pub(super) imports: bool,
}

impl Load {
    /// Works until told to stop, and does the day's stores part in any case.
    pub(super) async fn run(self, mut tenant: Tenant, dir: PathBuf, stop: CancellationToken) -> Tenant {
        let mut dice = Dice(self.seed);
        let to_track = std::mem::take(&mut tenant.to_track).into_iter().chain(self.fresh.clone());
        for account in to_track {
            track(&mut tenant, &account).await;
        }
        let organization = tenant.organization.clone();
        let patience = Duration::from_millis(200 + dice.below(1_500) as u64);
        let import = async {
            if self.imports { Some(import(&organization, &dir, self.day, patience).await) } else { None }
        };
        let changes = async {
            if self.day % 4 == 3 && tenant.history.accounts.len() > 1 {
                delete_account(&mut tenant).await;
            }
            let mut made = 0;
            while made < 6 || !stop.is_cancelled() {
                change(&mut tenant, &mut dice).await;
                made += 1;
            }
        };
        let (imported, ()) = tokio::join!(import, changes);
        if let Some(imported) = imported {
            add(&mut tenant, imported).await;
        }
        tenant
    }
}

/// Makes a request until it is answered as expected; no answer and 503 are none.
async fn insist(
    organization: &Organization,
    method: Method,
    path: &str,
    body: Option<Value>,
    expected: &[u16],
) -> Value {
    let key = Uuid::now_v7().to_string();
    recovered(&format!("{method} {path} is answered"), async || {
        let mut request = organization.request(method.clone(), path);
        if method == Method::POST {
            request = request.header("Idempotency-Key", &key);
        }
        if let Some(body) = &body {
            request = request.json(body);
        }
        let answer = request.send().await.ok()?;
        let (status, text) = (answer.status().as_u16(), answer.text().await.ok()?);
        // The first request may still be under way in a process that is gone.
        let in_flight = status == 409 && text.contains("in flight");
        if status == 503 || in_flight {
            return None;
        }
        assert!(expected.contains(&status), "{method} {path}: {status} {text}");
        Some(serde_json::from_str(&text).unwrap_or(Value::Null))
    })
    .await
}

fn id_of(answer: &Value) -> Uuid {
    answer["data"]["id"].as_str().expect("it has an id").parse().unwrap()
}

async fn track(tenant: &mut Tenant, account: &SandboxAccount) {
    let body = json!({"platform": account.platform, "username": account.username});
    let made = insist(&tenant.organization, Method::POST, "/accounts", Some(body), &[201]).await;
    let platform = PLATFORMS.into_iter().find(|platform| *platform == account.platform).unwrap();
    let place = tenant.history.account(platform, &account.username, None);
    tenant.history.accounts[place].is_active = true;
    tenant.ids.accounts.push(id_of(&made));
}

/// Deletes the account that was added last; what is tracked on its stores stays.
async fn delete_account(tenant: &mut Tenant) {
    let place = tenant.history.accounts.len() - 1;
    let path = format!("/accounts/{}", tenant.ids.accounts[place]);
    // Made again, it finds that the account is gone.
    insist(&tenant.organization, Method::DELETE, &path, None, &[204, 404]).await;
    tenant.links.remove(&tenant.ids.accounts[place]);
    tenant.history.delete(&mut tenant.ids, place);
}

/// Makes some change.
async fn change(tenant: &mut Tenant, dice: &mut Dice) {
    let organization = tenant.organization.clone();
    let mut pick = |length: usize| dice.below(length.max(1) as i64) as usize;
    match pick(6) {
        0 | 1 if tenant.creators.len() < CREATORS => {
            let name = format!("Mara {}", Uuid::now_v7().simple());
            let made =
                insist(&organization, Method::POST, "/creators", Some(json!({"name": name})), &[201]).await;
            tenant.creators.push((id_of(&made), name));
        }
        0 | 1 => {
            let (id, name) = tenant.creators.remove(pick(CREATORS));
            insist(&organization, Method::DELETE, &format!("/creators/{id}"), None, &[204, 404]).await;
            tenant.links.retain(|_, creator| *creator != id);
            tenant.gone.push(name);
        }
        2 if !tenant.creators.is_empty() => {
            let place = pick(tenant.creators.len());
            let (id, before) = tenant.creators[place].clone();
            let name = format!("Nora {}", Uuid::now_v7().simple());
            let body = Some(json!({"name": name}));
            insist(&organization, Method::PATCH, &format!("/creators/{id}"), body, &[200]).await;
            tenant.creators[place].1 = name;
            tenant.gone.push(before);
        }
        3 => {
            let account = tenant.ids.accounts[pick(tenant.ids.accounts.len())];
            let creator = tenant.creators.get(pick(tenant.creators.len() + 1)).map(|(id, _)| *id);
            let body = Some(json!({"creator_id": creator}));
            insist(&organization, Method::PATCH, &format!("/accounts/{account}"), body, &[200]).await;
            match creator {
                Some(creator) => tenant.links.insert(account, creator),
                None => tenant.links.remove(&account),
            };
        }
        4 => {
            let found = tenant.history.videos.iter().zip(&tenant.ids.videos).filter(|(video, _)| {
                // Of accounts that are scraped: an imported post is not on any platform.
                video.platform == "tiktok"
                    && video.account.is_some_and(|account| tenant.history.accounts[account].is_active)
            });
            let found: Vec<_> = found.map(|(video, (id, _))| (video.external_id.clone(), *id)).collect();
            let Some((post, id)) = found.get(pick(found.len())) else { return };
            if tenant.tracked.remove(post) {
                insist(&organization, Method::DELETE, &format!("/videos/{id}"), None, &[204, 404]).await;
            } else {
                let body = Some(json!({"platform": "tiktok", "identifier": post}));
                insist(&organization, Method::POST, "/videos", body, &[201]).await;
                tenant.tracked.insert(post.clone());
            }
        }
        _ => {
            let account = tenant.ids.accounts[pick(tenant.ids.accounts.len())];
            let body = Some(json!({"metadata": {"team": Uuid::now_v7()}}));
            insist(&organization, Method::PATCH, &format!("/accounts/{account}"), body, &[200]).await;
        }
    }
}

/// Loads ten days of an account that nobody tracks; the first attempt is killed unless it is faster.
async fn import(organization: &Organization, dir: &Path, day: usize, patience: Duration) -> History {
    let mut history = History::default();
    let account = history.account("tiktok", &format!("imported.{day}"), None);
    let until = Utc::now().date_naive() - Days::new(2);
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
    // Its ids are those of no other load.
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
    let mut patience = Some(patience);
    recovered("the file is loaded", async || {
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
        let patience = patience.take().unwrap_or(super::PATIENCE);
        let ended = tokio::time::timeout(patience, child.wait()).await.ok()?;
        ended.unwrap().success().then_some(())
    })
    .await;
    history
}

/// Takes over what was loaded.
async fn add(tenant: &mut Tenant, imported: History) {
    let (pg, organization) = (tenant.organization.pg(), tenant.organization.id);
    let first = tenant.history.accounts.len();
    for account in imported.accounts {
        let id = recovered("postgres answers", async || {
            sqlx::query_scalar("select id from accounts where organization_id = $1 and username = $2")
                .bind(organization)
                .bind(&account.username)
                .fetch_one(pg)
                .await
                .ok()
        })
        .await;
        tenant.history.accounts.push(account);
        tenant.ids.accounts.push(id);
    }
    for mut video in imported.videos {
        let ids = recovered("postgres answers", async || {
            sqlx::query_as(
                "select id, internal_id from videos where organization_id = $1 and external_id = $2",
            )
            .bind(organization)
            .bind(&video.external_id)
            .fetch_one(pg)
            .await
            .ok()
        })
        .await;
        video.account = video.account.map(|account| account + first);
        tenant.history.videos.push(video);
        tenant.ids.videos.push(ids);
    }
}
