//! For tests of the relay: isolated stores, a relay in this process, and scrapes without a platform.

use chrono::{DateTime, Days, Utc};
use sqlx::PgPool;
use tidemark::model::counters::{Counters, ProfileCounters};
use tidemark::model::observed::{AccountFields, AccountLatest, VideoFields, VideoLatest};
use tidemark::model::period::{Period, Window};
use tidemark::model::platform::Platform;
use tidemark::store::Write;
use tidemark::store::analytics::rollup_cache::RollupCache;
use tidemark::store::analytics::subjects;
use tidemark::store::analytics::{HistoryReader, SubjectFilter, SubjectScope};
use tidemark::store::clickhouse::diagnosis::WRITTEN_TABLES;
use tidemark::store::clickhouse::history_writer;
use tidemark::store::observations::{
    AccountRef, ObservedAccount, ObservedVideo, VideoOrigin, save_accounts, save_videos,
};
use tidemark::store::outbox::visibility;
use tidemark::store::records::accounts;
use tidemark::store::records::imports;
use tidemark::store::records::organizations::OrganizationChange;
use tidemark::worker::relay;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{IsolatedStores, WAIT_TIMEOUT, create_organization, now, wait_until};

impl IsolatedStores {
    /// Creates an organization with accounts.
    pub async fn create_tenant(&self, account_count: usize) -> Tenant {
        let (id, _) = create_organization(self.pg(), OrganizationChange::default()).await;
        let names: Vec<_> = (0..account_count)
            .map(|n| (Platform::Tiktok, format!("{}.{n}", &id.simple().to_string()[20..])))
            .collect();
        let mut write = Write::begin(self.pg(), id).await.unwrap();
        let made = imports::find_or_create_accounts(&mut write, &names, &Default::default(), false, now())
            .await
            .unwrap();
        write.commit().await.unwrap();
        let mut accounts: Vec<_> = made.into_values().collect();
        accounts.sort_unstable();
        Tenant { id, accounts }
    }

    /// Starts a relay, which waits for the relay lock.
    pub fn start_relay(&self) -> Relay {
        let stop = CancellationToken::new();
        let task = tokio::spawn(relay::run(self.databases.clone(), stop.clone()));
        Relay { stop, task }
    }

    /// The last delivery in ClickHouse.
    pub async fn last_delivery(&self) -> i64 {
        history_writer::last_delivery(&self.databases.clickhouse).await.unwrap().number
    }

    /// Copies all tables of ClickHouse.
    pub async fn back_up_clickhouse(&self, name: &str) {
        for table in WRITTEN_TABLES {
            self.execute_clickhouse(&format!("create table {name}_{table} as {table}")).await;
            self.execute_clickhouse(&format!("insert into {name}_{table} select * from {table}")).await;
        }
    }

    /// Replaces all tables of ClickHouse by a copy.
    pub async fn restore_clickhouse(&self, name: &str) {
        self.clear_clickhouse().await;
        for table in WRITTEN_TABLES {
            self.execute_clickhouse(&format!("insert into {table} select * from {name}_{table}")).await;
        }
    }

    /// Restores a copy, and starts a relay that replays later deliveries.
    pub async fn restore_clickhouse_and_relay(&self, name: &str) -> Relay {
        let last = self.last_delivery().await;
        self.restore_clickhouse(name).await;
        let relay = self.start_relay();
        let replayed = || async { (self.last_delivery().await > last).then_some(()) };
        wait_until("lost deliveries are replayed", replayed).await;
        relay
    }

    pub async fn clear_clickhouse(&self) {
        for table in WRITTEN_TABLES {
            self.execute_clickhouse(&format!("truncate table {table}")).await;
        }
    }

    async fn execute_clickhouse(&self, statement: &str) {
        self.databases.clickhouse.query_raw(statement).execute().await.unwrap();
    }

    /// All totals of an organization, as text.
    pub async fn totals(&self, organization: Uuid) -> String {
        let scope =
            SubjectScope::find(organization, &SubjectFilter::default()).fetch(self.pg()).await.unwrap();
        let today = now().date_naive();
        let window = Window { period: Period::Custom, start: today - Days::new(30), end: today };
        let history = HistoryReader::new(&self.databases.clickhouse, 2, RollupCache::new(0));
        let history = history.current(self.pg(), organization).await.unwrap();
        let daily = subjects::fetch_daily(&history, &scope, window).await.unwrap();
        let levels = subjects::fetch_levels(&history, &scope, window).await.unwrap();
        format!("{daily:?}\n{levels:?}")
    }

    /// All totals and rows of an organization, as text.
    pub async fn clickhouse_state(&self, organization: Uuid) -> ClickhouseState {
        let rows: Vec<String> = self
            .databases
            .clickhouse
            .query_raw(
                "select row from (
                 select toString(tuple(* except (version))) as row from accounts final where org_id = {org:UUID}
                 union all select toString(tuple(* except (version))) from videos final where org_id = {org:UUID}
                 union all select toString(tuple(* except (version))) from collections final where org_id = {org:UUID}
                 union all select toString(tuple(*)) from video_snapshots final where org_id = {org:UUID}
                 union all select toString(tuple(* except (version))) from account_daily final where org_id = {org:UUID}
                 union all select toString(tuple(* except (version))) from video_daily final where org_id = {org:UUID}
                 union all select toString(tuple(* except (version))) from video_ages final where org_id = {org:UUID}
                 ) order by row",
            )
            .param("org", organization)
            .fetch_all()
            .await
            .unwrap();
        ClickhouseState { totals: self.totals(organization).await, rows }
    }

    /// Waits until an organization's committed changes are visible.
    pub async fn wait_applied(&self, organization: Uuid) {
        tokio::time::timeout(WAIT_TIMEOUT * 10, visibility::wait_for_all(self.pg(), organization))
            .await
            .unwrap()
            .unwrap();
    }
}

/// The data of an organization in ClickHouse.
#[derive(Debug, PartialEq, Eq)]
pub struct ClickhouseState {
    pub totals: String,
    pub rows: Vec<String>,
}

pub struct Tenant {
    pub id: Uuid,
    pub accounts: Vec<AccountRef>,
}

/// A relay that runs until it is stopped.
pub struct Relay {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Relay {
    pub async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

/// A post as a source returns it.
pub fn observed_post(
    origin: VideoOrigin,
    external_id: String,
    views: i64,
    at: DateTime<Utc>,
) -> ObservedVideo {
    let counters = Counters { view_count: Some(views), like_count: Some(views / 10), ..Counters::default() };
    let mut latest = VideoLatest::default();
    latest.record(VideoFields::default(), counters, at);
    ObservedVideo {
        platform: Platform::Tiktok,
        external_id: Some(external_id),
        shortcode: None,
        origin,
        latest,
        observations: vec![(at, counters)],
        scraped_at: Some(at),
    }
}

/// Commits a scrape of an account: a number of posts with a number of views each.
pub async fn scrape(pg: &PgPool, organization: Uuid, account: AccountRef, posts: usize, views: i64) {
    scrape_at(pg, organization, account, posts, views, now()).await;
}

/// Like [`scrape`], at a time.
pub async fn scrape_at(
    pg: &PgPool,
    organization: Uuid,
    account: AccountRef,
    posts: usize,
    views: i64,
    at: DateTime<Utc>,
) {
    scrape_posted(pg, organization, account, (posts, views), at, None).await;
}

/// Like [`scrape_at`], of posts whose time of posting is known.
pub async fn scrape_posted(
    pg: &PgPool,
    organization: Uuid,
    account: AccountRef,
    (posts, views): (usize, i64),
    at: DateTime<Utc>,
    posted: Option<DateTime<Utc>>,
) {
    let mut write = Write::begin(pg, organization).await.unwrap();
    let observe = |n| {
        let external_id = format!("{}{n:06}", account.subject_id);
        let mut post = observed_post(VideoOrigin::Account(account), external_id, views, at);
        post.latest.create_time.record(posted, at);
        post.latest.media_type.record(posted.map(|_| "VIDEO".to_owned()), at);
        post
    };
    save_videos(&mut write, at, (0..posts).map(observe).collect()).await.unwrap();
    write.commit().await.unwrap();
}

/// Commits a scrape of an account's profile at a time.
pub async fn scrape_profile_at(
    pg: &PgPool,
    organization: Uuid,
    account: AccountRef,
    name: &str,
    at: DateTime<Utc>,
) {
    let mut latest = AccountLatest::default();
    let fields = AccountFields { name: Some(name.to_owned()), ..AccountFields::default() };
    let counters = ProfileCounters { follower_count: Some(100), ..ProfileCounters::default() };
    latest.record(fields, counters, at);
    let observed =
        ObservedAccount { account, latest, observations: vec![(at, counters)], scraped_at: Some(at) };
    let mut write = Write::begin(pg, organization).await.unwrap();
    save_accounts(&mut write, vec![observed]).await.unwrap();
    write.commit().await.unwrap();
}

/// Tracks individually a post that was found on an account.
pub async fn track_individually(pg: &PgPool, organization: Uuid, external_id: &str, at: DateTime<Utc>) {
    let mut write = Write::begin(pg, organization).await.unwrap();
    track_individually_in(&mut write, external_id, at).await;
    write.commit().await.unwrap();
}

/// Like [`track_individually`], in an open unit of work.
pub async fn track_individually_in(write: &mut Write, external_id: &str, at: DateTime<Utc>) {
    let mut video =
        observed_post(VideoOrigin::Individual { is_active: false }, external_id.to_owned(), 0, at);
    video.latest = VideoLatest::default();
    video.observations.clear();
    video.scraped_at = None;
    save_videos(write, at, vec![video]).await.unwrap();
}

pub async fn delete_account(pg: &PgPool, organization: Uuid, account: AccountRef) {
    let mut write = Write::begin(pg, organization).await.unwrap();
    accounts::change::delete(&mut write, account.id).await.unwrap();
    write.commit().await.unwrap();
}
