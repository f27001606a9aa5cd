//! Gains over days, as time series, leaderboards and totals show them.

use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::engagement_rate_ppm;

/// Gains of one or more videos. Platforms correct counters, so a gain may be negative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Gains {
    /// Views gained.
    pub views: i64,
    /// Plays gained; on TikTok a play is a view.
    pub plays: i64,
    /// Likes gained.
    pub likes: i64,
    /// Comments gained.
    pub comments: i64,
    /// Shares gained.
    pub shares: i64,
    /// Likes, comments and shares gained.
    pub engagement: i64,
}

impl Gains {
    pub const fn new(views: i64, plays: i64, likes: i64, comments: i64, shares: i64) -> Self {
        Gains { views, plays, likes, comments, shares, engagement: likes + comments + shares }
    }
}

impl AddAssign for Gains {
    fn add_assign(&mut self, other: Self) {
        self.views += other.views;
        self.plays += other.plays;
        self.likes += other.likes;
        self.comments += other.comments;
        self.shares += other.shares;
        self.engagement += other.engagement;
    }
}

/// Gains of accounts: of their videos together, and in followers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AccountGains {
    #[serde(flatten)]
    pub gains: Gains,
    /// Followers gained.
    pub followers: i64,
}

impl AddAssign for AccountGains {
    fn add_assign(&mut self, other: Self) {
        self.gains += other.gains;
        self.followers += other.followers;
    }
}

/// Gains with the rate of engagement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Metrics {
    #[serde(flatten)]
    pub gains: Gains,
    /// `engagement` per view, rounded to six decimals; null without views.
    #[schemars(example = 0.081_25)]
    pub engagement_rate: Option<f64>,
}

impl From<Gains> for Metrics {
    fn from(gains: Gains) -> Self {
        let millionths = engagement_rate_ppm(gains.engagement, gains.views);
        Metrics { gains, engagement_rate: millionths.map(|millionths| millionths as f64 / 1e6) }
    }
}

/// A figure of [`Gains`] that videos are ranked by and charts show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum GainMetric {
    #[default]
    Views,
    Likes,
    Comments,
    Shares,
    Engagement,
}

impl GainMetric {
    pub const fn of(self, gains: &Gains) -> i64 {
        match self {
            GainMetric::Views => gains.views,
            GainMetric::Likes => gains.likes,
            GainMetric::Comments => gains.comments,
            GainMetric::Shares => gains.shares,
            GainMetric::Engagement => gains.engagement,
        }
    }

    /// The column of its gains in ClickHouse; that of engagement only in the rollup of videos.
    pub const fn gain_column(self) -> &'static str {
        match self {
            GainMetric::Views => "view_gain",
            GainMetric::Likes => "like_gain",
            GainMetric::Comments => "comment_gain",
            GainMetric::Shares => "share_gain",
            GainMetric::Engagement => "engagement_gain",
        }
    }
}
