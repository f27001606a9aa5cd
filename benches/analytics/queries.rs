//! Random requests of each endpoint, and the same as plain SQL with its parameters. No window repeats within a run, so that no
//! cache is hit.

use std::collections::{BTreeSet, HashMap};

use chrono::{Days, NaiveDate};
use uuid::Uuid;

use crate::endpoints::{Endpoint, Filter};
use crate::layout::{self, Account, Layout};

/// A request, and the same query as SQL.
pub struct Query {
    pub path: String,
    pub sql: &'static str,
    pub parameters: Vec<(&'static str, String)>,
}

/// A creator and its accounts.
pub type Creator = (Uuid, Vec<i64>);

/// Generates random queries of one organization.
pub struct QueryGenerator<'a> {
    organization: usize,
    accounts: &'a [Account],
    creators: Vec<Creator>,
    last_day: NaiveDate,
    seed: u64,
    windows: HashMap<Endpoint, u64>,
    /// Paths of pages that follow many others.
    pub deep_pages: Vec<String>,
}

/// A window, and what the API and SQL call it.
pub struct Window {
    organization: usize,
    start: NaiveDate,
    end: NaiveDate,
    /// Its part of a query string.
    pub dates: String,
}

impl Window {
    fn new(organization: usize, start: NaiveDate, end: NaiveDate) -> Self {
        Window { organization, start, end, dates: format!("period=custom&start_date={start}&end_date={end}") }
    }

    /// Parameters of the SQL: the organization and the window.
    fn parameters(&self) -> Vec<(&'static str, String)> {
        vec![
            ("org", layout::organization_id(self.organization).to_string()),
            ("start", self.start.to_string()),
            ("end", self.end.to_string()),
        ]
    }

    /// SQL over the posts of a collection in this window.
    pub fn query(&self, sql: &'static str, collection: &str) -> Query {
        let mut parameters = self.parameters();
        parameters.extend([("before", self.before()), ("collection", collection.to_owned())]);
        Query { path: String::new(), sql, parameters }
    }

    fn days(&self) -> u64 {
        (self.end - self.start).num_days() as u64 + 1
    }

    /// The first day of the window before.
    fn before(&self) -> String {
        (self.start - Days::new(self.days())).to_string()
    }

    /// A day before which the last snapshots need not be looked for.
    fn since(&self) -> String {
        (self.start - Days::new(40)).to_string()
    }
}

/// A request's path, and parameters of the SQL beside organization and window.
type Request = (String, Vec<(&'static str, String)>);

impl<'a> QueryGenerator<'a> {
    pub fn new(
        layout: &'a Layout,
        organization: usize,
        creators: Vec<Creator>,
        last_day: NaiveDate,
        seed: u64,
    ) -> Self {
        let (accounts, windows) = (layout.accounts_of(organization), HashMap::new());
        QueryGenerator { organization, accounts, creators, last_day, seed, windows, deep_pages: Vec::new() }
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

    fn creator(&mut self) -> Creator {
        let index = self.below(self.creators.len() as u64) as usize;
        self.creators[index].clone()
    }

    /// A uniformly random video: its subject and its id.
    fn video(&mut self) -> (i64, i64) {
        let (first, last) = (self.accounts[0], self.accounts[self.accounts.len() - 1]);
        let videos = last.first_video + last.videos - first.first_video;
        let video = first.first_video + self.below(videos as u64) as i64;
        let index = self.accounts.partition_point(|account| account.first_video <= video) - 1;
        (self.accounts[index].subject, video)
    }

    /// A window of about as many days as the endpoint's, different in each of a hundred calls. Deltas always end today.
    fn window(&mut self, endpoint: Endpoint) -> Window {
        let days = endpoint.days();
        if endpoint == Endpoint::VideoDeltas {
            return Window::new(self.organization, self.last_day - Days::new(days), self.last_day);
        }
        let start = self.below(1 << 20);
        let count = self.windows.entry(endpoint).or_insert(start);
        *count += 1;
        let lengths = (days / 6).max(3);
        let ends = (100 / lengths + 1).max(10);
        let end = self.last_day - Days::new(*count % ends);
        let start = end - Days::new(days - 1 - *count / ends % lengths);
        Window::new(self.organization, start, end)
    }

    /// A window of about 30 days, different in each of a hundred calls.
    pub fn collection_window(&mut self) -> Window {
        self.window(Endpoint::Overview)
    }

    /// Accounts that have at least so many videos together, none of them more.
    pub fn accounts_with(&self, videos: usize) -> Vec<Account> {
        let mut count = 0;
        let small = self.accounts.iter().filter(|account| account.videos as usize <= videos);
        let needed = small.take_while(|account| {
            let is_needed = count < videos;
            count += account.videos as usize;
            is_needed
        });
        needed.copied().collect()
    }

    /// So many videos, each once; at most half of all.
    pub fn distinct_videos(&mut self, count: usize) -> Vec<(i64, i64)> {
        let all: i64 = self.accounts.iter().map(|account| account.videos).sum();
        let count = count.min(all as usize / 2);
        let mut videos = BTreeSet::new();
        while videos.len() < count {
            videos.insert(self.video());
        }
        videos.into_iter().collect()
    }

    /// The first page of all videos by views, of the last 30 days.
    pub fn first_page(&self) -> String {
        let window = Window::new(self.organization, self.last_day - Days::new(29), self.last_day);
        format!("/v2/content/top?{}&metric=views&include_all=true&limit=100", window.dates)
    }

    pub fn next(&mut self, endpoint: Endpoint) -> Query {
        let window = self.window(endpoint);
        let (path, more) = match endpoint {
            Endpoint::AccountsTop { metric, .. } => (
                format!("/v2/accounts/top?{}&metric={metric}", window.dates),
                vec![("before", window.before()), ("metric", metric.to_owned())],
            ),
            Endpoint::CreatorsTop { metric, .. } => (
                format!("/v2/creators/top?{}&metric={metric}", window.dates),
                vec![("before", window.before())],
            ),
            Endpoint::ContentTop { metric, filter, .. } => self.content_top(metric, filter, &window),
            Endpoint::AccountsSeries { .. }
            | Endpoint::CreatorsSeries { .. }
            | Endpoint::ContentSeries { .. } => self.series(endpoint, &window),
            Endpoint::Breakouts | Endpoint::ContentAges | Endpoint::Benchmarks => self.ages(endpoint),
            _ => self.figure(endpoint, &window),
        };
        let mut parameters = window.parameters();
        parameters.extend(more);
        Query { path, sql: endpoint.sql(), parameters }
    }

    fn figure(&mut self, endpoint: Endpoint, window: &Window) -> Request {
        let dates = &window.dates;
        match endpoint {
            Endpoint::Overview => (format!("/v2/overview?{dates}"), vec![("before", window.before())]),
            Endpoint::YearByWeek => {
                let options = "granularity=week&group_by=platform&compare=previous";
                (format!("/v2/analytics/timeseries?{dates}&{options}"), Vec::new())
            }
            Endpoint::CreatorTimeseries => {
                let (creator, subjects) = self.creator();
                let path = format!("/v2/creators/{creator}/analytics/timeseries?{dates}");
                (path, vec![("subjects", array(&subjects))])
            }
            Endpoint::AccountMetrics => {
                let subjects: Vec<_> = (0..50).map(|_| self.account().subject).collect();
                let path = format!("/v2/accounts/metrics?account_ids={}&{dates}", account_ids(&subjects));
                (path, vec![("subjects", array(&subjects))])
            }
            Endpoint::AccountVideoMetrics | Endpoint::VideoMetrics | Endpoint::VideoDeltas => {
                let videos: Vec<_> = (0..100).map(|_| self.video()).collect();
                let path = batch_path(endpoint, &videos, dates);
                (path, vec![("videos", pairs(&videos)), ("since", window.since())])
            }
            Endpoint::VideoAnalytics => {
                let (subject, video) = self.video();
                let path = format!("/v2/videos/{}/analytics?{dates}", layout::video_id(video));
                let ids = [("subject", subject.to_string()), ("video", video.to_string())];
                (path, [ids.as_slice(), &[("since", window.since())]].concat())
            }
            _ => (format!("/v2/analytics/timeseries?{dates}"), Vec::new()),
        }
    }

    fn content_top(&mut self, metric: &str, filter: Filter, window: &Window) -> Request {
        let mut parameters = vec![("metric", metric.to_owned())];
        let mut of_accounts = |subjects: &[i64]| parameters.push(("subjects", array(subjects)));
        let filter = match filter {
            Filter::None => String::new(),
            Filter::Account => {
                let account = self.account().subject;
                of_accounts(&[account]);
                format!("&account_id={}", layout::account_id(account))
            }
            Filter::Creator => {
                let (creator, subjects) = self.creator();
                of_accounts(&subjects);
                format!("&creator_id={creator}")
            }
            Filter::Category => {
                let category = layout::category(self.account().subject);
                let subjects = self.accounts.iter().map(|account| account.subject);
                let subjects = subjects.filter(|subject| layout::category(*subject) == category);
                of_accounts(&subjects.collect::<Vec<_>>());
                format!("&category=category%20{category}")
            }
            Filter::MediaType => "&media_type=reel,image".to_owned(),
            Filter::Text => format!("&q=video%20{}", 100 + self.below(900)),
            Filter::PostedInWindow => "&posted=in_window".to_owned(),
            Filter::DeepPage => {
                let page = self.below(self.deep_pages.len() as u64) as usize;
                return (self.deep_pages[page].clone(), parameters);
            }
        };
        (format!("/v2/content/top?{}&metric={metric}{filter}", window.dates), parameters)
    }

    fn ages(&mut self, endpoint: Endpoint) -> Request {
        match endpoint {
            Endpoint::Breakouts => {
                let age = [1, 3, 7, 14, 30][self.below(5) as usize];
                let least = format!("{}.{:03}", 2 + self.below(4), self.below(1_000));
                let after = self.last_day - Days::new(89);
                let path = format!("/v2/content/breakouts?age_days={age}&min_multiple={least}");
                let views = ("views", format!("views_{age}"));
                (path, vec![views, ("least", least), ("after", after.to_string())])
            }
            Endpoint::ContentAges => {
                let (subject, video) = self.video();
                let ids = vec![("subject", subject.to_string()), ("video", video.to_string())];
                (format!("/v2/content/{}/ages", layout::video_id(video)), ids)
            }
            _ => {
                let account = self.account().subject;
                let path = format!("/v2/accounts/{}/benchmarks", layout::account_id(account));
                (path, vec![("subject", account.to_string())])
            }
        }
    }

    fn series(&mut self, endpoint: Endpoint, window: &Window) -> Request {
        let dates = &window.dates;
        match endpoint {
            Endpoint::CreatorsSeries { metric } => {
                let creators: HashMap<_, _> = (0..50).map(|_| self.creator()).collect();
                let ids = join(creators.keys());
                let numbered = creators.values().enumerate();
                let numbered =
                    numbered.flat_map(|(number, subjects)| subjects.iter().map(move |s| (*s, number as i64)));
                let (subjects, numbers): (Vec<_>, Vec<_>) = numbered.unzip();
                let path = format!("/v2/creators/timeseries?creator_ids={ids}&metric={metric}&{dates}");
                (path, vec![("subjects", array(&subjects)), ("creators", array(&numbers))])
            }
            Endpoint::ContentSeries { metric } => {
                let videos: Vec<_> = (0..100).map(|_| self.video()).collect();
                let path =
                    format!("/v2/content/timeseries?ids={}&metric={metric}&{dates}", video_ids(&videos));
                (path, vec![("videos", pairs(&videos)), ("since", window.since())])
            }
            Endpoint::AccountsSeries { metric } => {
                let subjects: Vec<_> = (0..50).map(|_| self.account().subject).collect();
                let ids = account_ids(&subjects);
                let path = format!("/v2/accounts/timeseries?account_ids={ids}&metric={metric}&{dates}");
                (path, vec![("subjects", array(&subjects))])
            }
            _ => unreachable!("not a series of many"),
        }
    }
}

fn batch_path(endpoint: Endpoint, videos: &[(i64, i64)], dates: &str) -> String {
    let ids = video_ids(videos);
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

fn account_ids(subjects: &[i64]) -> String {
    join(subjects.iter().map(|subject| layout::account_id(*subject)))
}

fn video_ids(videos: &[(i64, i64)]) -> String {
    join(videos.iter().map(|(_, video)| layout::video_id(*video)))
}

fn pairs(videos: &[(i64, i64)]) -> String {
    format!("[{}]", join(videos.iter().map(|(subject, video)| format!("({subject},{video})"))))
}

fn array(ids: &[i64]) -> String {
    format!("[{}]", join(ids.iter()))
}

fn join(items: impl Iterator<Item = impl ToString>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(",")
}
