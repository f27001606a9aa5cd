//! Gains over days, as time series, leaderboards and totals show them.

use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::Serialize;

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
