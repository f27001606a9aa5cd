//! The measured endpoints: the rows of the tables in docs/measurements/analytics.md.

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Endpoint {
    Overview,
    Timeseries,
    CreatorTimeseries,
    AccountMetrics,
    AccountVideoMetrics,
    VideoMetrics,
    VideoDeltas,
    VideoAnalytics,
    AccountsTop {
        metric: &'static str,
        days: u64,
    },
    CreatorsTop {
        metric: &'static str,
        days: u64,
    },
    ContentTop {
        metric: &'static str,
        days: u64,
        filter: Filter,
    },
    AccountsSeries {
        metric: &'static str,
    },
    CreatorsSeries {
        metric: &'static str,
    },
    ContentSeries {
        metric: &'static str,
    },
    /// The organization by week and platform, with the year before.
    YearByWeek,
    Breakouts,
    ContentAges,
    Benchmarks,
}

/// The filter or page of `/content/top`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Filter {
    None,
    Account,
    Creator,
    Category,
    MediaType,
    Text,
    PostedInWindow,
    /// `include_all=true`, many pages on.
    DeepPage,
}

/// Figures that a dashboard refreshes, measured for organizations of every size and under load.
pub const FIGURES: &[Endpoint] = &[
    Endpoint::Overview,
    Endpoint::Timeseries,
    Endpoint::CreatorsTop { metric: "views", days: 90 },
    Endpoint::CreatorTimeseries,
    Endpoint::AccountMetrics,
    Endpoint::AccountVideoMetrics,
    Endpoint::VideoMetrics,
    Endpoint::VideoDeltas,
    Endpoint::VideoAnalytics,
];

/// Rankings and series of many, measured for the biggest organization.
pub const TABLES: &[Endpoint] = &[
    Endpoint::AccountsTop { metric: "views", days: 30 },
    Endpoint::AccountsTop { metric: "views", days: 90 },
    Endpoint::AccountsTop { metric: "engagement", days: 30 },
    Endpoint::AccountsTop { metric: "engagement_rate", days: 30 },
    Endpoint::AccountsTop { metric: "followers", days: 30 },
    Endpoint::AccountsTop { metric: "new_posts", days: 30 },
    Endpoint::AccountsTop { metric: "new_posts", days: 90 },
    Endpoint::CreatorsTop { metric: "views", days: 30 },
    Endpoint::CreatorsTop { metric: "engagement_rate", days: 90 },
    Endpoint::CreatorsTop { metric: "followers", days: 90 },
    Endpoint::CreatorsTop { metric: "new_posts", days: 90 },
    Endpoint::ContentTop { metric: "views", days: 7, filter: Filter::None },
    Endpoint::ContentTop { metric: "views", days: 30, filter: Filter::None },
    Endpoint::ContentTop { metric: "views", days: 90, filter: Filter::None },
    Endpoint::ContentTop { metric: "likes", days: 30, filter: Filter::None },
    Endpoint::ContentTop { metric: "likes", days: 90, filter: Filter::None },
    Endpoint::ContentTop { metric: "engagement", days: 30, filter: Filter::None },
    Endpoint::ContentTop { metric: "engagement", days: 90, filter: Filter::None },
    Endpoint::ContentTop { metric: "views", days: 30, filter: Filter::Account },
    Endpoint::ContentTop { metric: "views", days: 30, filter: Filter::Creator },
    Endpoint::ContentTop { metric: "views", days: 30, filter: Filter::Category },
    Endpoint::ContentTop { metric: "views", days: 30, filter: Filter::MediaType },
    Endpoint::ContentTop { metric: "views", days: 30, filter: Filter::Text },
    Endpoint::ContentTop { metric: "views", days: 30, filter: Filter::PostedInWindow },
    Endpoint::ContentTop { metric: "views", days: 90, filter: Filter::PostedInWindow },
    Endpoint::ContentTop { metric: "views", days: 30, filter: Filter::DeepPage },
    Endpoint::AccountsSeries { metric: "views" },
    Endpoint::AccountsSeries { metric: "followers" },
    Endpoint::CreatorsSeries { metric: "views" },
    Endpoint::CreatorsSeries { metric: "followers" },
    Endpoint::ContentSeries { metric: "views" },
    Endpoint::YearByWeek,
    Endpoint::Breakouts,
    Endpoint::ContentAges,
    Endpoint::Benchmarks,
];

impl Endpoint {
    pub fn name(self) -> String {
        match self {
            Endpoint::Overview => "/overview, 30 days".to_owned(),
            Endpoint::Timeseries => "/analytics/timeseries, 90 days".to_owned(),
            Endpoint::CreatorTimeseries => "/creators/{id}/analytics/timeseries, 90 days".to_owned(),
            Endpoint::AccountMetrics => "/accounts/metrics, 50 ids".to_owned(),
            Endpoint::AccountVideoMetrics => "/account-videos/metrics, 100 ids".to_owned(),
            Endpoint::VideoMetrics => "/videos/metrics, 100 ids".to_owned(),
            Endpoint::VideoDeltas => "/videos/deltas, 100 ids × 4 windows".to_owned(),
            Endpoint::VideoAnalytics => "/videos/{id}/analytics, 30 days".to_owned(),
            Endpoint::AccountsTop { metric, days } => format!("/accounts/top, {metric}, {days} days"),
            Endpoint::CreatorsTop { metric, days } => format!("/creators/top, {metric}, {days} days"),
            Endpoint::ContentTop { metric, days, filter } => {
                format!("/content/top, {metric}, {days} days{}", filter.name())
            }
            Endpoint::AccountsSeries { metric } => format!("/accounts/timeseries, 50 ids, {metric}, 30 days"),
            Endpoint::CreatorsSeries { metric } => format!("/creators/timeseries, 50 ids, {metric}, 30 days"),
            Endpoint::ContentSeries { metric } => format!("/content/timeseries, 100 ids, {metric}, 30 days"),
            Endpoint::YearByWeek => {
                "/analytics/timeseries, 365 days by week and platform, with previous".to_owned()
            }
            Endpoint::Breakouts => "/content/breakouts".to_owned(),
            Endpoint::ContentAges => "/content/{id}/ages".to_owned(),
            Endpoint::Benchmarks => "/accounts/{id}/benchmarks".to_owned(),
        }
    }

    /// The target for the median latency in milliseconds. `/content/timeseries` has none: it is to beat plain SQL.
    pub fn target_ms(self) -> Option<f64> {
        match self {
            Endpoint::AccountVideoMetrics | Endpoint::VideoMetrics | Endpoint::VideoDeltas => Some(14.0),
            Endpoint::VideoAnalytics => Some(6.0),
            Endpoint::AccountsTop { .. } | Endpoint::CreatorsTop { .. } => Some(20.0),
            Endpoint::ContentTop { metric: "views", filter: Filter::None, .. } => Some(60.0),
            Endpoint::ContentTop { .. } => Some(120.0),
            Endpoint::AccountsSeries { .. } | Endpoint::CreatorsSeries { .. } => Some(12.0),
            Endpoint::ContentSeries { .. } => None,
            Endpoint::YearByWeek | Endpoint::ContentAges | Endpoint::Benchmarks => Some(15.0),
            Endpoint::Breakouts => Some(80.0),
            _ => Some(8.0),
        }
    }

    /// The length of its windows, at most.
    pub fn days(self) -> u64 {
        match self {
            Endpoint::Timeseries | Endpoint::CreatorTimeseries => 90,
            Endpoint::AccountsTop { days, .. }
            | Endpoint::CreatorsTop { days, .. }
            | Endpoint::ContentTop { days, .. } => days,
            Endpoint::YearByWeek => 365,
            _ => 30,
        }
    }

    /// Returns an equal query in SQL.
    pub fn sql(self) -> &'static str {
        match self {
            Endpoint::Overview => include_str!("sql/overview.sql"),
            Endpoint::Timeseries => include_str!("sql/timeseries.sql"),
            Endpoint::CreatorTimeseries => include_str!("sql/creator_timeseries.sql"),
            Endpoint::AccountMetrics => include_str!("sql/account_metrics.sql"),
            Endpoint::AccountVideoMetrics | Endpoint::VideoMetrics => include_str!("sql/video_metrics.sql"),
            Endpoint::VideoDeltas => include_str!("sql/video_deltas.sql"),
            Endpoint::VideoAnalytics => include_str!("sql/video_analytics.sql"),
            Endpoint::AccountsTop { metric: "new_posts", .. }
            | Endpoint::CreatorsTop { metric: "new_posts", .. } => include_str!("sql/new_posts.sql"),
            Endpoint::AccountsTop { .. } => include_str!("sql/accounts_top.sql"),
            Endpoint::CreatorsTop { .. } => include_str!("sql/creators_top.sql"),
            Endpoint::ContentTop { filter, .. } => filter.sql(),
            Endpoint::AccountsSeries { metric: "followers" } => include_str!("sql/accounts_followers.sql"),
            Endpoint::AccountsSeries { .. } => include_str!("sql/accounts_series.sql"),
            Endpoint::CreatorsSeries { metric: "followers" } => include_str!("sql/creators_followers.sql"),
            Endpoint::CreatorsSeries { .. } => include_str!("sql/creators_series.sql"),
            Endpoint::ContentSeries { .. } => include_str!("sql/content_series.sql"),
            Endpoint::YearByWeek => include_str!("sql/year_by_week.sql"),
            Endpoint::Breakouts => include_str!("sql/breakouts.sql"),
            Endpoint::ContentAges => include_str!("sql/content_ages.sql"),
            Endpoint::Benchmarks => include_str!("sql/benchmarks.sql"),
        }
    }
}

impl Filter {
    fn name(self) -> &'static str {
        match self {
            Filter::None => "",
            Filter::Account => ", account_id",
            Filter::Creator => ", creator_id",
            Filter::Category => ", category",
            Filter::MediaType => ", media_type",
            Filter::Text => ", q",
            Filter::PostedInWindow => ", posted=in_window",
            Filter::DeepPage => ", include_all, page 101",
        }
    }

    /// Postgres alone knows media types and captions, so those are ignored.
    fn sql(self) -> &'static str {
        match self {
            Filter::None | Filter::MediaType | Filter::Text | Filter::DeepPage => {
                include_str!("sql/content_top.sql")
            }
            Filter::Account | Filter::Creator | Filter::Category => {
                include_str!("sql/content_top_accounts.sql")
            }
            Filter::PostedInWindow => include_str!("sql/content_top_posted.sql"),
        }
    }
}
