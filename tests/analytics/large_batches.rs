//! Batches of 1,000 videos with years of snapshots: exact, and within little memory of the API process.

use std::pin::pin;
use std::time::{Duration, Instant};

use chrono::{Days, NaiveDate};
use futures_util::future::join_all;
use harness::{IsolatedStores, Process, Response, Stack, create_organization, http_client, send};
use serde_json::{Value, json};
use tidemark::store::records::organizations::OrganizationChange;
use uuid::Uuid;

/// As many as a batch may name.
const VIDEOS: i64 = 1_000;
/// A snapshot on each but the 40 days before the latest 30.
const DAYS: i64 = 2_100;
const RECENT_DAYS: i64 = 30;
const GAP_DAYS: i64 = 50;
/// The longest window of a request.
const WINDOW_DAYS: u64 = 731;
const CONCURRENT_REQUESTS: usize = 16;
/// In an unoptimized build, more would not end in time.
const FEW_CONCURRENT_REQUESTS: usize = 4;

/// An API process, and an organization whose videos were observed for years.
struct LargeHistory {
    process: Process,
    url: String,
    key: String,
    /// Ids, with the numbers of the videos.
    videos: Vec<(Uuid, i64)>,
    today: NaiveDate,
}

impl LargeHistory {
    async fn create() -> Self {
        let stores = IsolatedStores::create().await;
        let (id, key) = create_organization(stores.pg(), OrganizationChange::default()).await;
        // The clock of the process.
        let today = Stack::shared().databases.clock.now().await.date_naive();
        let insert = "insert into videos (id, subject_id, organization_id, platform, external_id, is_tracked, added_at,
                          updated_at, tracked_since)
                      select gen_random_uuid(), n, $1, 'tiktok', n::text, true, now(), now(), $3
                      from generate_series(1, $2) n returning id, subject_id, internal_id";
        let first = today - Days::new(DAYS.unsigned_abs() - 1);
        let videos: Vec<(Uuid, i64, i64)> =
            sqlx::query_as(insert).bind(id).bind(VIDEOS).bind(first).fetch_all(stores.pg()).await.unwrap();
        let offset = videos[0].2 - videos[0].1;
        assert!(videos.iter().all(|(_, number, internal_id)| internal_id - number == offset));
        let insert = format!(
            "insert into video_snapshots
                 (org_id, subject_id, video_id, date, observed_at, view_count, play_count, like_count)
             select '{id}', video, video + {offset}, toDate('{today}') - age as day, day,
                 video + ({DAYS} - age) * (1 + video % 7), null, video
             from (select 1 + intDiv(number, {DAYS}) as video, number % {DAYS} as age from numbers({VIDEOS} * {DAYS}))
             where age < {RECENT_DAYS} or age >= {RECENT_DAYS} + {GAP_DAYS}"
        );
        stores.clickhouse().query_raw(&insert).execute().await.unwrap();
        let (process, url) = stores.serve(&[]);
        let videos = videos.into_iter().map(|(id, number, _)| (id, number)).collect();
        LargeHistory { process, url, key, videos, today }
    }

    async fn post(&self, path: &str, body: &Value) -> Response {
        send(http_client().post(format!("{}{path}", self.url)).bearer_auth(&self.key).json(body)).await
    }

    /// Requests the gains of the first videos over a window that ends today.
    async fn fetch_metrics(&self, videos: usize, days: u64) -> Response {
        let ids: Vec<_> = self.videos[..videos].iter().map(|(id, _)| id).collect();
        let start = self.today + Days::new(1) - Days::new(days);
        let body = json!({"video_ids": ids, "period": "custom", "start_date": start, "end_date": self.today});
        self.post("/videos/metrics", &body).await
    }

    /// Checks the views that the first videos gained in so many days.
    fn assert_views(&self, response: Response, videos: usize, days: i64) {
        let response = response.ok(200);
        let data = response.at("/data").as_object().unwrap();
        assert_eq!(data.len(), videos);
        for (id, number) in &self.videos[..videos] {
            let gains = &data[&id.to_string()];
            assert_eq!((&gains["views"], &gains["likes"]), (&json!(days * (1 + number % 7)), &json!(0)));
        }
    }

    /// Checks the views that all videos gained over windows that begin in the gap, whether or not a day begins meanwhile.
    async fn check_deltas(&self) {
        let ids: Vec<_> = self.videos.iter().map(|(id, _)| id).collect();
        let body = json!({"video_ids": ids, "windows": [75, 35, 60]});
        let response = self.post("/videos/deltas", &body).await.ok(200);
        let data = response.at("/data").as_object().unwrap();
        for (id, number) in &self.videos {
            let views = (RECENT_DAYS + GAP_DAYS) * (1 + number % 7);
            assert_eq!(data[&id.to_string()], json!({"75d": views, "35d": views, "60d": views}));
        }
    }

    /// Sends the largest request several times at once. Returns the responses, and the most memory that the process used.
    async fn fetch_concurrently(&self, requests: usize) -> (Vec<Response>, u64) {
        let requests = (0..requests).map(|_| self.fetch_metrics(VIDEOS as usize, WINDOW_DAYS));
        let mut responses = pin!(join_all(requests));
        let mut peak = 0;
        loop {
            peak = anonymous_megabytes(&self.process).max(peak);
            let sample_interval = Duration::from_millis(5);
            if let Ok(responses) = tokio::time::timeout(sample_interval, &mut responses).await {
                return (responses, peak);
            }
        }
    }
}

/// Memory of a process without the files that it maps.
fn anonymous_megabytes(process: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid())).unwrap();
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    kilobytes.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1_024
}

#[tokio::test]
async fn concurrent_batches_need_little_memory() {
    let history = LargeHistory::create().await;
    // No snapshot is within 40 days before the window, so the whole history decides.
    let response = history.fetch_metrics(VIDEOS as usize, RECENT_DAYS.unsigned_abs()).await;
    history.assert_views(response, VIDEOS as usize, RECENT_DAYS + GAP_DAYS);
    let before = anonymous_megabytes(&history.process);
    let (responses, peak) = history.fetch_concurrently(FEW_CONCURRENT_REQUESTS).await;
    for response in responses {
        history.assert_views(response, VIDEOS as usize, WINDOW_DAYS.cast_signed());
    }
    eprintln!("{before} MB before, {peak} MB with {FEW_CONCURRENT_REQUESTS} requests");
    assert!(peak < before + 50, "{before} MB before, {peak} MB with {FEW_CONCURRENT_REQUESTS} requests");
    history.check_deltas().await;
}

/// Prints times and memory: `make test-deep ARGS='--release --no-capture largest_batches'`.
#[tokio::test]
#[ignore = "16 of the largest requests at once"]
async fn concurrent_largest_batches_need_less_than_250_mb() {
    let history = LargeHistory::create().await;
    let videos = VIDEOS as usize;
    for days in [30, WINDOW_DAYS, WINDOW_DAYS] {
        let started = Instant::now();
        history.fetch_metrics(videos, days).await.ok(200);
        eprintln!("{videos} videos, {days} days: {:?}", started.elapsed());
    }
    eprintln!("{} MB before", anonymous_megabytes(&history.process));
    let started = Instant::now();
    let (responses, peak) = history.fetch_concurrently(CONCURRENT_REQUESTS).await;
    eprintln!("{CONCURRENT_REQUESTS} at once: {:?}, {peak} MB", started.elapsed());
    for response in responses {
        history.assert_views(response, videos, WINDOW_DAYS.cast_signed());
    }
    let ids: Vec<_> = history.videos.iter().map(|(id, _)| id).collect();
    let body = json!({"video_ids": ids, "windows": [1, 7, 14, 30, 60, 90, 120, 180, 270, 365]});
    let started = Instant::now();
    let responses = (0..CONCURRENT_REQUESTS).map(|_| history.post("/videos/deltas", &body));
    join_all(responses).await.into_iter().for_each(|response| drop(response.ok(200)));
    let after = anonymous_megabytes(&history.process);
    eprintln!("deltas, {CONCURRENT_REQUESTS} at once: {:?}, {after} MB after", started.elapsed());
    assert!(peak < 250, "{peak} MB");
}
