//! What was gained over some days, in the figures that series, leaderboards and totals show.

use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::Serialize;

/// Gains of a video, an account, or any number of them. Platforms correct counters, so a gain may be negative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Gains {
    /// Gain in views.
    pub views: i64,
    /// Gain in plays; on TikTok a play is a view.
    pub plays: i64,
    /// Gain in likes.
    pub likes: i64,
    /// Gain in comments.
    pub comments: i64,
    /// Gain in shares.
    pub shares: i64,
    /// Likes, comments and shares together.
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
