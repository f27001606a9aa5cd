//! Hit rate of the response cache under writes: dashboards of every organization repeat the same queries, while scrapes of all
//! accounts are committed as by the tracker and delivered to ClickHouse by a relay.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use tidemark::app::Databases;
use tidemark::model::counters::{Counters, ProfileCounters};
use tidemark::model::observed::{AccountFields, AccountLatest, VideoFields, VideoLatest};
use tidemark::model::platform::Platform;
use tidemark::response_cache::ResponseCache;
use tidemark::store::Write;
use tidemark::store::observations::{
    AccountRef, ObservedAccount, ObservedVideo, VideoOrigin, save_accounts, save_videos,
};
use tidemark::worker::relay;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::layout::{self, Account, Layout};
use crate::targets::{Targets, Times};

/// Per scrape interval and kind of window.
const MEASUREMENT_DURATION: Duration = Duration::from_secs(40);
/// How often a dashboard refreshes.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum posts per scrape.
const MAX_POSTS_PER_SCRAPE: i64 = 50;

/// A dashboard of one organization.
pub struct Dashboard {
    pub targets: Targets,
    pub creator: uuid::Uuid,
    pub accounts: Vec<i64>,
}

/// The windows of dashboards.
#[derive(Clone, Copy)]
enum Windows {
    UntilToday,
    Past,
}

impl Windows {
    const fn name(self) -> &'static str {
        match self {
            Windows::UntilToday => "until today",
            Windows::Past => "ended before today",
        }
    }

    /// A window of this many days, as a query string.
    fn query_string(self, days: i64) -> String {
        let end =
            Utc::now().date_naive() - chrono::Days::new(if matches!(self, Windows::Past) { 1 } else { 0 });
        let start = end - chrono::TimeDelta::days(days - 1);
        format!("period=custom&start_date={start}&end_date={end}")
    }
}

impl Dashboard {
    /// Its requests: the organization in three windows, top creators, one creator, and accounts.
    fn paths(&self, windows: Windows) -> Vec<String> {
        let ids = self.accounts.iter().take(50).map(|subject| layout::account_id(*subject).to_string());
        let ids = ids.collect::<Vec<_>>().join(",");
        let mut paths = Vec::new();
        for days in [7, 30, 90] {
            let dates = windows.query_string(days);
            paths.push(format!("/v2/overview?{dates}"));
            paths.push(format!("/v2/analytics/timeseries?{dates}"));
            paths.push(format!("/v2/creators/top?{dates}"));
        }
        let dates = windows.query_string(30);
        paths.push(format!("/v2/creators/{}/analytics/timeseries?{dates}", self.creator));
        paths.push(format!("/v2/accounts/metrics?account_ids={ids}&{dates}"));
        paths
    }
}

/// Prints cache hit rate and latency by scrape interval.
pub async fn measure(
    databases: &Databases,
    layout: &Layout,
    dashboards: Vec<Dashboard>,
    [cache, querying_cache]: &[ResponseCache; 2],
) {
    let stop = CancellationToken::new();
    let relay = tokio::spawn(relay::run(databases.clone(), stop.clone()));
    let querying = |dashboard: &Dashboard| Dashboard {
        targets: dashboard.targets.without_rollups(),
        creator: dashboard.creator,
        accounts: dashboard.accounts.clone(),
    };
    let without = (Arc::new(dashboards.iter().map(querying).collect::<Vec<_>>()), querying_cache, "query");
    let with = (Arc::new(dashboards), cache, "rollups in memory");
    println!(
        "\n| Scrape interval | scrapes | windows | figures by | requests | cached | p50 | p99 |\n|---|---|---|---|---|---|---|---|"
    );
    for (name, interval) in [("24 h", 86_400), ("1 h", 3_600), ("5 min", 300)] {
        for windows in [Windows::UntilToday, Windows::Past] {
            for (dashboards, cache, source) in [&with, &without] {
                refresh_dashboards(dashboards, windows, Duration::ZERO).await;
                let before = cache.stats().await;
                let tracker = CancellationToken::new();
                let pause = Duration::from_secs(interval) / layout.tracked().len() as u32;
                let tracking =
                    tokio::spawn(track(databases.clone(), layout.tracked().to_vec(), pause, tracker.clone()));
                let times = refresh_dashboards(dashboards, windows, MEASUREMENT_DURATION).await;
                tracker.cancel();
                let scrapes = tracking.await.unwrap();
                let after = cache.stats().await;
                let cached = (after.hits + after.shared) - (before.hits + before.shared);
                println!(
                    "| {name} | {scrapes} | {} | {source} | {} | {:.1} % | {:.2} | {:.1} |",
                    windows.name(),
                    times.len(),
                    100.0 * cached as f64 / times.len() as f64,
                    times.percentile(50),
                    times.percentile(99)
                );
            }
        }
    }
    stop.cancel();
    relay.await.unwrap();
}

/// Refreshes all dashboards for some time, at least once, with different offsets.
async fn refresh_dashboards(dashboards: &Arc<Vec<Dashboard>>, windows: Windows, duration: Duration) -> Times {
    let times = Arc::new(Mutex::new(Times::default()));
    let (mut all, began) = (JoinSet::new(), Instant::now());
    for index in 0..dashboards.len() {
        let (dashboards, times) = (dashboards.clone(), times.clone());
        all.spawn(async move {
            let dashboard = &dashboards[index];
            let mut next = began + REFRESH_INTERVAL * index as u32 / dashboards.len() as u32;
            loop {
                tokio::time::sleep_until(next.into()).await;
                for path in dashboard.paths(windows) {
                    let (took, _) = dashboard.targets.api(&path, None).await.unwrap();
                    times.lock().unwrap().add(took);
                }
                next += REFRESH_INTERVAL;
                if next >= began + duration {
                    return;
                }
            }
        });
    }
    all.join_all().await;
    Arc::try_unwrap(times).expect("all dashboards have finished").into_inner().unwrap()
}

/// Commits scrapes of the accounts in turn; returns their number.
async fn track(
    databases: Databases,
    accounts: Vec<Account>,
    pause: Duration,
    stop: CancellationToken,
) -> usize {
    let began = Instant::now();
    let mut scrapes = 0;
    // The first scrape is always within the measurement.
    let first = (pause / 2).min(MEASUREMENT_DURATION / 4);
    loop {
        let due = began + first + pause * scrapes as u32;
        if stop.run_until_cancelled(tokio::time::sleep_until(due.into())).await.is_none() {
            break;
        }
        // A step coprime to the number of accounts, so that organizations alternate.
        let index = (Utc::now().timestamp() as usize + scrapes * 1_009) % accounts.len();
        scrape(&databases, accounts[index]).await;
        scrapes += 1;
    }
    scrapes
}

async fn scrape(databases: &Databases, account: Account) {
    let organization = layout::organization_id(account.organization);
    let account_ref = AccountRef { id: layout::account_id(account.subject), subject_id: account.subject };
    let now = Utc::now();
    let mut write = Write::begin(&databases.pg, organization).await.unwrap();
    let counters = ProfileCounters {
        follower_count: Some(10_000 + account.subject + now.timestamp() % 1_000),
        following_count: Some(300),
        profile_post_count: Some(account.videos),
    };
    let mut latest = AccountLatest::default();
    latest.record(AccountFields::default(), counters, now);
    let observations = vec![(now, counters)];
    let profile = ObservedAccount { account: account_ref, latest, observations, scraped_at: Some(now) };
    save_accounts(&mut write, vec![profile]).await.unwrap();
    let posts =
        account.newest_videos(MAX_POSTS_PER_SCRAPE).map(|video| post(account_ref, video, now)).collect();
    save_videos(&mut write, now, posts).await.unwrap();
    write.commit().await.unwrap();
}

fn post(account: AccountRef, video: i64, at: DateTime<Utc>) -> ObservedVideo {
    let views = 1_000_000 + at.timestamp() % 1_000_000;
    let counters = Counters { view_count: Some(views), like_count: Some(views / 10), ..Counters::default() };
    let mut latest = VideoLatest::default();
    latest.record(VideoFields::default(), counters, at);
    ObservedVideo {
        platform: if account.subject_id % 2 == 0 { Platform::Instagram } else { Platform::Tiktok },
        external_id: Some(video.to_string()),
        shortcode: None,
        origin: VideoOrigin::Account(account),
        latest,
        observations: vec![(at, counters)],
        scraped_at: Some(at),
    }
}
