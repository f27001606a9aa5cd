//! The measured queries: a path of each endpoint, and the same query as plain SQL with its parameters. Ids and windows are
//! random, and no window repeats within a run, so that no cache is hit.

use std::collections::HashMap;

use chrono::{Days, NaiveDate};

use crate::layout::{self, Account, Layout};

/// An endpoint of the table in docs/measurements/analytics.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Endpoint {
    Overview,
    Timeseries,
    TopCreators,
    CreatorTimeseries,
    AccountMetrics,
    AccountVideoMetrics,
    VideoMetrics,
    VideoDeltas,
    VideoAnalytics,
}

pub const ENDPOINTS: [Endpoint; 9] = [
    Endpoint::Overview,
    Endpoint::Timeseries,
    Endpoint::TopCreators,
    Endpoint::CreatorTimeseries,
    Endpoint::AccountMetrics,
    Endpoint::AccountVideoMetrics,
    Endpoint::VideoMetrics,
    Endpoint::VideoDeltas,
    Endpoint::VideoAnalytics,
];

/// A request, and the same query as SQL.
pub struct Query {
    pub path: String,
    pub sql: &'static str,
    pub parameters: Vec<(&'static str, String)>,
}

impl Endpoint {
    pub fn name(self) -> &'static str {
        match self {
            Endpoint::Overview => "/overview, 30 days",
            Endpoint::Timeseries => "/analytics/timeseries, 90 days",
            Endpoint::TopCreators => "/creators/top, 90 days",
            Endpoint::CreatorTimeseries => "/creators/{id}/analytics/timeseries, 90 days",
            Endpoint::AccountMetrics => "/accounts/metrics, 50 ids",
            Endpoint::AccountVideoMetrics => "/account-videos/metrics, 100 ids",
            Endpoint::VideoMetrics => "/videos/metrics, 100 ids",
            Endpoint::VideoDeltas => "/videos/deltas, 100 ids × 4 windows",
            Endpoint::VideoAnalytics => "/videos/{id}/analytics, 30 days",
        }
    }

    /// The target for the median latency, in milliseconds.
    pub fn target_ms(self) -> f64 {
        match self {
            Endpoint::AccountVideoMetrics | Endpoint::VideoMetrics | Endpoint::VideoDeltas => 14.0,
            Endpoint::VideoAnalytics => 6.0,
            _ => 8.0,
        }
    }

    fn sql(self) -> &'static str {
        match self {
            Endpoint::Overview => include_str!("sql/overview.sql"),
            Endpoint::Timeseries => include_str!("sql/timeseries.sql"),
            Endpoint::TopCreators => include_str!("sql/top_creators.sql"),
            Endpoint::CreatorTimeseries => include_str!("sql/creator_timeseries.sql"),
            Endpoint::AccountMetrics => include_str!("sql/account_metrics.sql"),
            Endpoint::AccountVideoMetrics | Endpoint::VideoMetrics => include_str!("sql/video_metrics.sql"),
            Endpoint::VideoDeltas => include_str!("sql/video_deltas.sql"),
            Endpoint::VideoAnalytics => include_str!("sql/video_analytics.sql"),
        }
    }
}

/// Generates random queries of one organization.
pub struct QueryGenerator<'a> {
    organization: usize,
    accounts: &'a [Account],
    creators: Vec<(uuid::Uuid, Vec<i64>)>,
    last_day: NaiveDate,
    seed: u64,
    windows: HashMap<Endpoint, u64>,
}

impl<'a> QueryGenerator<'a> {
    pub fn new(
        layout: &'a Layout,
        organization: usize,
        creators: Vec<(uuid::Uuid, Vec<i64>)>,
        last_day: NaiveDate,
        seed: u64,
    ) -> Self {
        let accounts = layout.accounts_of(organization);
        QueryGenerator { organization, accounts, creators, last_day, seed, windows: HashMap::new() }
    }

    /// A random number below a bound, from a simple generator.
    fn below(&mut self, bound: u64) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.seed ^ (self.seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }

    fn account(&mut self) -> Account {
        let index = self.below(self.accounts.len() as u64) as usize;
        self.accounts[index]
    }

    /// A uniformly random video: its subject and its id.
    fn video(&mut self) -> (i64, i64) {
        let (first, last) = (self.accounts[0], self.accounts[self.accounts.len() - 1]);
        let videos = last.first_video + last.videos - first.first_video;
        let video = first.first_video + self.below(videos as u64) as i64;
        let index = self.accounts.partition_point(|account| account.first_video <= video) - 1;
        (self.accounts[index].subject, video)
    }

    /// A window of about this many days, different in each call for an endpoint.
    fn window(&mut self, endpoint: Endpoint, days: u64) -> (NaiveDate, NaiveDate) {
        let start = self.below(1 << 20);
        let count = self.windows.entry(endpoint).or_insert(start);
        *count += 1;
        let spread = (days / 6).max(10);
        let end = self.last_day - Days::new(*count % spread);
        (end - Days::new(days - 1 - *count / spread % spread), end)
    }

    pub fn next(&mut self, endpoint: Endpoint) -> Query {
        let organization = ("org", layout::organization_id(self.organization).to_string());
        let days = match endpoint {
            Endpoint::Timeseries | Endpoint::TopCreators | Endpoint::CreatorTimeseries => 90,
            _ => 30,
        };
        let (start, end) = self.window(endpoint, days);
        let length = (end - start).num_days() as u64 + 1;
        let dates = format!("period=custom&start_date={start}&end_date={end}");
        let mut parameters = vec![organization, ("start", start.to_string()), ("end", end.to_string())];
        let path = match endpoint {
            Endpoint::Overview => {
                parameters.push(("before", (start - Days::new(length)).to_string()));
                format!("/v2/overview?{dates}")
            }
            Endpoint::Timeseries => format!("/v2/analytics/timeseries?{dates}"),
            Endpoint::TopCreators => format!("/v2/creators/top?{dates}"),
            Endpoint::CreatorTimeseries => {
                let index = self.below(self.creators.len() as u64) as usize;
                let (creator, subjects) = &self.creators[index];
                parameters.push(("subjects", array(subjects)));
                format!("/v2/creators/{creator}/analytics/timeseries?{dates}")
            }
            Endpoint::AccountMetrics => {
                let subjects: Vec<_> = (0..50).map(|_| self.account().subject).collect();
                parameters.push(("subjects", array(&subjects)));
                let ids = join(subjects.iter().map(|subject| layout::account_id(*subject)));
                format!("/v2/accounts/metrics?account_ids={ids}&{dates}")
            }
            Endpoint::AccountVideoMetrics | Endpoint::VideoMetrics | Endpoint::VideoDeltas => {
                let videos: Vec<_> = (0..100).map(|_| self.video()).collect();
                let pairs = join(videos.iter().map(|(subject, video)| format!("({subject},{video})")));
                parameters.push(("videos", format!("[{pairs}]")));
                let (first, end) = match endpoint {
                    Endpoint::VideoDeltas => (self.last_day - Days::new(30), self.last_day),
                    _ => (start, end),
                };
                parameters.push(("since", (first - Days::new(40)).to_string()));
                parameters[2].1 = end.to_string();
                self.batch_path(endpoint, &videos, &dates)
            }
            Endpoint::VideoAnalytics => {
                let (subject, video) = self.video();
                parameters.push(("subject", subject.to_string()));
                parameters.push(("video", video.to_string()));
                parameters.push(("since", (start - Days::new(40)).to_string()));
                format!("/v2/videos/{}/analytics?{dates}", layout::video_id(video))
            }
        };
        Query { path, sql: endpoint.sql(), parameters }
    }

    fn batch_path(&self, endpoint: Endpoint, videos: &[(i64, i64)], dates: &str) -> String {
        let ids = join(videos.iter().map(|(_, video)| layout::video_id(*video)));
        let internal = |tiktok| {
            let of_platform = videos.iter().filter(move |(subject, _)| (subject % 2 == 1) == tiktok);
            join(of_platform.map(|(_, video)| *video))
        };
        match endpoint {
            Endpoint::VideoMetrics => format!("/v2/videos/metrics?video_ids={ids}&{dates}"),
            Endpoint::VideoDeltas => format!("/v2/videos/deltas?video_ids={ids}&windows=1,7,14,30"),
            _ => format!(
                "/v2/account-videos/metrics?instagram_post_ids={}&tiktok_video_ids={}&{dates}",
                internal(false),
                internal(true)
            ),
        }
    }
}

fn array(ids: &[i64]) -> String {
    format!("[{}]", join(ids.iter()))
}

fn join(items: impl Iterator<Item = impl ToString>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(",")
}
