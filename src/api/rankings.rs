//! Code that rankings of accounts and of creators share: the metric, and figures of a window beside those of the previous
//! one.

use std::ops::AddAssign;

use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::http::output::WindowMeta;
use crate::model::change::{Change, engagement_rate_ppm};
use crate::model::file_row::file_row;
use crate::model::gains::{AccountGains, Metrics};
use crate::model::period::Window;
use crate::store::analytics::accounts::PostCounts;
use crate::store::analytics::subjects::ComparedTotals;

/// The metric that a ranking compares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(super) enum Metric {
    #[default]
    Views,
    Likes,
    Comments,
    Shares,
    Engagement,
    EngagementRate,
    Followers,
    NewPosts,
}

/// Gains and posts of one or more accounts in a window.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Figures {
    pub(super) gains: AccountGains,
    pub(super) new_posts: i64,
}

impl Figures {
    pub(super) const fn views(&self) -> i64 {
        self.gains.gains.views
    }

    pub(super) const fn engagement(&self) -> i64 {
        self.gains.gains.engagement
    }

    /// The value of a metric, of the rate in millionths; `None` for an unknown rate.
    fn value(&self, metric: Metric) -> Option<i64> {
        let AccountGains { gains, followers } = self.gains;
        match metric {
            Metric::Views => Some(gains.views),
            Metric::Likes => Some(gains.likes),
            Metric::Comments => Some(gains.comments),
            Metric::Shares => Some(gains.shares),
            Metric::Engagement => Some(gains.engagement),
            Metric::EngagementRate => engagement_rate_ppm(gains.engagement, gains.views),
            Metric::Followers => Some(followers),
            Metric::NewPosts => Some(self.new_posts),
        }
    }
}

impl AddAssign for Figures {
    fn add_assign(&mut self, other: Self) {
        self.gains += other.gains;
        self.new_posts += other.new_posts;
    }
}

/// Figures of a window and of the previous one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ComparedFigures {
    pub(super) current: Figures,
    previous: Figures,
}

impl ComparedFigures {
    /// Figures of an account without its posts.
    pub(super) fn new(totals: &ComparedTotals) -> Self {
        let figures = |gains| Figures { gains, new_posts: 0 };
        ComparedFigures { current: figures(totals.current), previous: figures(totals.previous) }
    }

    pub(super) const fn add_posts(&mut self, posts: PostCounts) {
        self.current.new_posts += posts.current;
        self.previous.new_posts += posts.previous;
    }

    /// The value that entries are ranked by; `None` for an unknown rate.
    pub(super) fn value(&self, metric: Metric) -> Option<i64> {
        self.current.value(metric)
    }

    pub(super) fn shown(&self, metric: Metric) -> ShownFigures {
        let Change { change_percent, .. } =
            Change::from_levels(self.current.value(metric), self.previous.value(metric));
        ShownFigures { metrics: self.current.into(), previous: self.previous.into(), change_percent }
    }
}

impl AddAssign for ComparedFigures {
    fn add_assign(&mut self, other: Self) {
        self.current += other.current;
        self.previous += other.previous;
    }
}

/// Metrics of accounts over a window.
#[derive(Serialize, JsonSchema)]
pub(super) struct RankingMetrics {
    #[serde(flatten)]
    metrics: Metrics,
    /// Followers gained.
    #[schemars(example = 1_240)]
    followers: i64,
    /// Number of discovered videos posted.
    #[schemars(example = 12)]
    new_posts: i64,
}

file_row!(RankingMetrics { metrics, followers, new_posts });

impl From<Figures> for RankingMetrics {
    fn from(Figures { gains: AccountGains { gains, followers }, new_posts }: Figures) -> Self {
        RankingMetrics { metrics: gains.into(), followers, new_posts }
    }
}

/// The figures of an entry.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct ShownFigures {
    /// Metrics of the window.
    metrics: RankingMetrics,
    /// Metrics of the previous window.
    previous: RankingMetrics,
    /// Change of the metric that is ranked by, in percent of its previous value, with one decimal; null if that is 0 or
    /// unknown.
    #[schemars(example = 12.5)]
    change_percent: Option<f64>,
}

/// The window of a ranking and the previous one, which has as many days.
#[derive(Serialize, JsonSchema)]
pub(super) struct RankingMeta {
    #[serde(flatten)]
    window: WindowMeta,
    /// Metric that entries are ranked by.
    metric: Metric,
    /// First day of the previous window (UTC, inclusive).
    #[schemars(example = &"2026-01-14")]
    previous_start_date: NaiveDate,
    /// Last day of the previous window (UTC, inclusive), the day before `start_date`.
    #[schemars(example = &"2026-02-12")]
    previous_end_date: NaiveDate,
}

impl RankingMeta {
    pub(super) fn new(window: Window, meta: WindowMeta, metric: Metric) -> Self {
        let previous = window.previous();
        RankingMeta {
            window: meta,
            metric,
            previous_start_date: previous.start,
            previous_end_date: previous.end,
        }
    }
}
