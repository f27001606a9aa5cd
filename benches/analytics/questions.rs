//! The queries: each endpoint with its path, and the same query as plain SQL with its parameters. Ids and windows are random, and
//! no window repeats within a run, so that no cache can answer.

use std::collections::HashMap;

use chrono::{Days, NaiveDate};

use crate::layout::{self, Account, Layout};

/// An endpoint of the table in docs/measurements/analytics.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Question {
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

pub const QUESTIONS: [Question; 9] = [
    Question::Overview,
    Question::Timeseries,
    Question::TopCreators,
    Question::CreatorTimeseries,
    Question::AccountMetrics,
    Question::AccountVideoMetrics,
    Question::VideoMetrics,
    Question::VideoDeltas,
    Question::VideoAnalytics,
];

/// One request, and the same query to ClickHouse.
pub struct Asked {
    pub path: String,
    pub sql: &'static str,
    pub parameters: Vec<(&'static str, String)>,
}

impl Question {
    pub fn name(self) -> &'static str {
        match self {
            Question::Overview => "/overview, 30 days",
            Question::Timeseries => "/analytics/timeseries, 90 days",
            Question::TopCreators => "/creators/top, 90 days",
            Question::CreatorTimeseries => "/creators/{id}/analytics/timeseries, 90 days",
            Question::AccountMetrics => "/accounts/metrics, 50 ids",
            Question::AccountVideoMetrics => "/account-videos/metrics, 100 ids",
            Question::VideoMetrics => "/videos/metrics, 100 ids",
            Question::VideoDeltas => "/videos/deltas, 100 ids × 4 windows",
            Question::VideoAnalytics => "/videos/{id}/analytics, 30 days",
        }
    }

    /// The target for the median, in milliseconds.
    pub fn target(self) -> f64 {
        match self {
            Question::AccountVideoMetrics | Question::VideoMetrics | Question::VideoDeltas => 14.0,
            Question::VideoAnalytics => 6.0,
            _ => 8.0,
        }
    }

    fn sql(self) -> &'static str {
        match self {
            Question::Overview => include_str!("sql/overview.sql"),
            Question::Timeseries => include_str!("sql/timeseries.sql"),
            Question::TopCreators => include_str!("sql/top_creators.sql"),
            Question::CreatorTimeseries => include_str!("sql/creator_timeseries.sql"),
            Question::AccountMetrics => include_str!("sql/account_metrics.sql"),
            Question::AccountVideoMetrics | Question::VideoMetrics => include_str!("sql/video_metrics.sql"),
            Question::VideoDeltas => include_str!("sql/video_deltas.sql"),
            Question::VideoAnalytics => include_str!("sql/video_analytics.sql"),
        }
    }
}

/// Draws queries about one organization.
pub struct Draw<'a> {
    organization: usize,
    accounts: &'a [Account],
    creators: Vec<(uuid::Uuid, Vec<i64>)>,
    last_day: NaiveDate,
    seed: u64,
    windows: HashMap<Question, u64>,
}

impl<'a> Draw<'a> {
    pub fn new(
        layout: &'a Layout,
        organization: usize,
        creators: Vec<(uuid::Uuid, Vec<i64>)>,
        last_day: NaiveDate,
        seed: u64,
    ) -> Self {
        let accounts = layout.of(organization);
        Draw { organization, accounts, creators, last_day, seed, windows: HashMap::new() }
    }

    /// A random number below a bound, from a simple generator.
    fn below(&mut self, limit: u64) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.seed ^ (self.seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit.max(1)
    }

    fn account(&mut self) -> Account {
        let place = self.below(self.accounts.len() as u64) as usize;
        self.accounts[place]
    }

    /// A uniformly random video: its subject and its id.
    fn video(&mut self) -> (i64, i64) {
        let (first, last) = (self.accounts[0], self.accounts[self.accounts.len() - 1]);
        let videos = last.first_video + last.videos - first.first_video;
        let video = first.first_video + self.below(videos as u64) as i64;
        let place = self.accounts.partition_point(|account| account.first_video <= video) - 1;
        (self.accounts[place].subject, video)
    }

    /// A window of about this many days, never the same twice.
    fn window(&mut self, question: Question, days: u64) -> (NaiveDate, NaiveDate) {
        let start = self.below(1 << 20);
        let drawn = self.windows.entry(question).or_insert(start);
        *drawn += 1;
        let spread = (days / 6).max(10);
        let end = self.last_day - Days::new(*drawn % spread);
        (end - Days::new(days - 1 - *drawn / spread % spread), end)
    }

    pub fn next(&mut self, question: Question) -> Asked {
        let organization = ("org", layout::organization_id(self.organization).to_string());
        let days = match question {
            Question::Timeseries | Question::TopCreators | Question::CreatorTimeseries => 90,
            _ => 30,
        };
        let (start, end) = self.window(question, days);
        let length = (end - start).num_days() as u64 + 1;
        let dates = format!("period=custom&start_date={start}&end_date={end}");
        let mut parameters = vec![organization, ("start", start.to_string()), ("end", end.to_string())];
        let path = match question {
            Question::Overview => {
                parameters.push(("before", (start - Days::new(length)).to_string()));
                format!("/v2/overview?{dates}")
            }
            Question::Timeseries => format!("/v2/analytics/timeseries?{dates}"),
            Question::TopCreators => format!("/v2/creators/top?{dates}"),
            Question::CreatorTimeseries => {
                let place = self.below(self.creators.len() as u64) as usize;
                let (creator, subjects) = &self.creators[place];
                parameters.push(("subjects", list(subjects)));
                format!("/v2/creators/{creator}/analytics/timeseries?{dates}")
            }
            Question::AccountMetrics => {
                let subjects: Vec<_> = (0..50).map(|_| self.account().subject).collect();
                parameters.push(("subjects", list(&subjects)));
                let ids = list_of(subjects.iter().map(|subject| layout::account_id(*subject)));
                format!("/v2/accounts/metrics?account_ids={ids}&{dates}")
            }
            Question::AccountVideoMetrics | Question::VideoMetrics | Question::VideoDeltas => {
                let videos: Vec<_> = (0..100).map(|_| self.video()).collect();
                let pairs = list_of(videos.iter().map(|(subject, video)| format!("({subject},{video})")));
                parameters.push(("videos", format!("[{pairs}]")));
                let (first, end) = match question {
                    Question::VideoDeltas => (self.last_day - Days::new(30), self.last_day),
                    _ => (start, end),
                };
                parameters.push(("since", (first - Days::new(40)).to_string()));
                parameters[2].1 = end.to_string();
                self.batch(question, &videos, &dates)
            }
            Question::VideoAnalytics => {
                let (subject, video) = self.video();
                parameters.push(("subject", subject.to_string()));
                parameters.push(("video", video.to_string()));
                parameters.push(("since", (start - Days::new(40)).to_string()));
                format!("/v2/videos/{}/analytics?{dates}", layout::video_id(video))
            }
        };
        Asked { path, sql: question.sql(), parameters }
    }

    fn batch(&self, question: Question, videos: &[(i64, i64)], dates: &str) -> String {
        let ids = list_of(videos.iter().map(|(_, video)| layout::video_id(*video)));
        let internal = |tiktok| {
            let of_platform = videos.iter().filter(move |(subject, _)| (subject % 2 == 1) == tiktok);
            list_of(of_platform.map(|(_, video)| *video))
        };
        match question {
            Question::VideoMetrics => format!("/v2/videos/metrics?video_ids={ids}&{dates}"),
            Question::VideoDeltas => format!("/v2/videos/deltas?video_ids={ids}&windows=1,7,14,30"),
            _ => format!(
                "/v2/account-videos/metrics?instagram_post_ids={}&tiktok_video_ids={}&{dates}",
                internal(false),
                internal(true)
            ),
        }
    }
}

fn list(ids: &[i64]) -> String {
    format!("[{}]", list_of(ids.iter()))
}

fn list_of(items: impl Iterator<Item = impl ToString>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(",")
}
