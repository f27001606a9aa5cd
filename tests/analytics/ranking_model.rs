//! The model of rankings: metrics of both windows, changes, and orders.

use chrono::{Days, NaiveDate};
use harness::{Organization, Response, Stack, rebuild_derived_tables};
use serde_json::{Value, json};
use uuid::Uuid;

use super::agree::indices;
use super::model::{self, History, Ids, Random, days, figures};

pub type Window = (NaiveDate, NaiveDate);

/// Which entries a ranking lists, and which come first.
#[derive(Debug, Clone, Copy)]
pub struct Order {
    pub ascending: bool,
    pub include_all: bool,
    /// Views below which an account has no rate to rank by.
    pub min_views: i64,
}

impl Order {
    pub const GAINED: Self = Order { ascending: false, include_all: false, min_views: 1_000 };
    pub const ALL: Self = Order { include_all: true, ..Order::GAINED };
    pub const ASCENDING: Self = Order { ascending: true, ..Order::GAINED };

    pub fn query(self) -> String {
        let direction = if self.ascending { "asc" } else { "desc" };
        format!("order_direction={direction}&include_all={}", self.include_all)
    }

    pub const fn lists_all(self) -> bool {
        self.include_all || self.ascending
    }

    /// Where a value comes: unknown ones last.
    pub fn place(self, value: Option<i64>) -> (bool, Option<i64>) {
        (value.is_none(), value.map(|value| if self.ascending { value } else { -value }))
    }
}

/// A random history, some of whose accounts have a category and a tracking status of their own.
pub struct Ranked {
    pub organization: Organization,
    pub history: History,
    pub ids: Ids,
    pub today: NaiveDate,
    /// The accounts as `GET /accounts` shows them, in the order of the history.
    pub accounts: Vec<Value>,
}

impl Ranked {
    pub async fn load(seed: u64) -> Self {
        let stack = Stack::shared();
        let organization = stack.unlimited_organization().await;
        let today = stack.databases.clock.now().await.date_naive();
        let history = model::random_history(seed, 12, 10, today);
        let ids = history.load(&organization).await;
        // Directly, so that no tracker scrapes them.
        for (number, id) in ids.accounts.iter().enumerate() {
            sqlx::query(
                "update accounts set category = case when $2 % 3 > 0 then 'c' || $2 % 3 end, is_unavailable = $2 % 5 = 1,
                     metadata = case when $2 % 4 < 2 then jsonb_build_object('team', 't' || $2 % 2, 'x y', 'ö') else '{}' end,
                     is_active = $2 % 5 > 2, last_scrape_time = case when $2 % 5 = 4 then now() end
                 where id = $1",
            )
            .bind(id)
            .bind(number as i32)
            .execute(organization.pg())
            .await
            .unwrap();
        }
        rebuild_derived_tables(organization.pg(), organization.id).await;
        let listed = organization.get("/accounts?limit=200").await.ok(200);
        let by_id =
            |id: &Uuid| listed.list("/data").iter().find(|account| account["id"] == json!(id)).unwrap();
        let accounts = ids.accounts.iter().map(|id| by_id(id).clone()).collect();
        Ranked { organization, history, ids, today, accounts }
    }

    pub fn windows(&self, seed: u64) -> Vec<Window> {
        let (mut random, today) = (Random(seed), self.today);
        let mut windows = vec![(today - Days::new(6), today), (today - Days::new(29), today + Days::new(3))];
        windows.extend((0..2).map(|_| {
            let start = today - Days::new(random.below(40) as u64);
            (start, start + Days::new(random.below(20) as u64))
        }));
        windows
    }

    /// The metrics of accounts together.
    pub fn metrics(&self, accounts: &[usize], (start, end): Window) -> Value {
        let h = &self.history;
        let videos: Vec<_> = accounts.iter().flat_map(|account| h.videos_of(*account)).collect();
        let mut metrics = figures(h.gains(&videos, start, end));
        metrics["engagement_rate"] = rate(&metrics).map_or(Value::Null, |millionths| json!(millionths / 1e6));
        let followers = accounts.iter().map(|account| h.follower_gain(*account, start, end));
        metrics["followers"] = json!(followers.sum::<i64>());
        metrics["new_posts"] = json!(h.new_posts(&videos, start, end));
        metrics
    }

    /// `metrics`, `previous` and `change_percent`.
    pub fn compared(&self, accounts: &[usize], window: Window, metric: &str) -> Value {
        let [metrics, previous] = [window, previous(window)].map(|window| self.metrics(accounts, window));
        let change_percent = change_percent(&metrics, &previous, metric);
        json!({"metrics": metrics, "previous": previous, "change_percent": change_percent})
    }

    /// The ranked accounts that `filter` accepts.
    pub fn top_accounts(
        &self,
        window: Window,
        metric: &str,
        order: Order,
        filter: impl Fn(&Value) -> bool,
    ) -> Vec<Value> {
        let accounts =
            indices(&self.ids.accounts).into_iter().filter(|number| filter(&self.accounts[*number]));
        let by_rate = metric == "engagement_rate";
        let mut entries: Vec<_> = accounts
            .filter_map(|number| {
                let mut entry = self.compared(&[number], window, metric);
                let has_views = entry["metrics"]["views"].as_i64() >= Some(order.min_views);
                let value = value(&entry["metrics"], metric).filter(|_| !by_rate || has_views);
                for field in [
                    "id",
                    "type",
                    "platform",
                    "username",
                    "name",
                    "profile_pic_url",
                    "follower_count",
                    "creator_id",
                    "creator_name",
                    "is_active",
                    "tracking",
                ] {
                    entry[field] = self.accounts[number][field].clone();
                }
                let is_listed = order.lists_all() || value > if by_rate { None } else { Some(0) };
                is_listed.then_some((order.place(value), self.ids.accounts[number], entry))
            })
            .collect();
        entries.sort_by_key(|(place, id, _)| (*place, *id));
        entries.into_iter().map(|(_, _, entry)| entry).collect()
    }

    pub fn as_of(&self, filter: impl Fn(&Value) -> bool, until: NaiveDate) -> Value {
        let accounts: Vec<_> =
            indices(&self.accounts).into_iter().filter(|number| filter(&self.accounts[*number])).collect();
        let videos: Vec<_> = accounts.iter().flat_map(|account| self.history.videos_of(*account)).collect();
        self.history.as_of(&accounts, &videos, until)
    }

    pub async fn get(&self, path: &str) -> Response {
        self.organization.get(path).await.ok(200)
    }
}

pub fn previous((start, end): Window) -> Window {
    (start - Days::new(days(start, end).len() as u64), start - Days::new(1))
}

/// The engagement rate in millionths.
fn rate(metrics: &Value) -> Option<f64> {
    let [engagement, views] = ["engagement", "views"].map(|name| metrics[name].as_i64().unwrap() as f64);
    (views > 0.0).then(|| (engagement * 1e6 / views).round())
}

pub fn value(metrics: &Value, metric: &str) -> Option<i64> {
    match metric {
        "engagement_rate" => rate(metrics).map(|millionths| millionths as i64),
        _ => Some(metrics[metric].as_i64().unwrap()),
    }
}

fn change_percent(current: &Value, previous: &Value, metric: &str) -> Value {
    let [current, previous] = [current, previous].map(|metrics| value(metrics, metric));
    match current.zip(previous) {
        Some((current, previous)) if previous != 0 => {
            let change = (current - previous) as f64 * 1_000.0 / previous.abs() as f64;
            json!(change.round() / 10.0)
        }
        _ => Value::Null,
    }
}
