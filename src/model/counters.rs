//! The nine counters of a video, each of which a platform may leave unsaid.
//!
//! Unknown is not zero: a counter that an observation lacks never overwrites a known one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::platform::Platform;

/// What an observation says of a video's counters; `None` where it says nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counters {
    /// Views.
    #[serde(default)]
    #[schemars(example = 12_840)]
    pub view_count: Option<i64>,
    /// Likes.
    #[serde(default)]
    #[schemars(example = 964)]
    pub like_count: Option<i64>,
    /// Comments.
    #[serde(default)]
    #[schemars(example = 21)]
    pub comment_count: Option<i64>,
    /// Shares.
    #[serde(default)]
    #[schemars(example = 18)]
    pub share_count: Option<i64>,
    /// Times that it was saved.
    #[serde(default)]
    #[schemars(example = 30)]
    pub saved_count: Option<i64>,
    /// Plays; on TikTok the views.
    #[serde(default)]
    #[schemars(example = 15_120)]
    pub play_count: Option<i64>,
    /// Plays on Instagram.
    #[serde(default)]
    #[schemars(example = 14_710)]
    pub ig_play_count: Option<i64>,
    /// Plays on Facebook.
    #[serde(default)]
    #[schemars(example = 410)]
    pub fb_play_count: Option<i64>,
    /// Likes on Facebook.
    #[serde(default)]
    #[schemars(example = 8)]
    pub fb_like_count: Option<i64>,
}

impl Counters {
    /// The largest count that is believed: platforms have answered overflows, and sums must not overflow here.
    pub const MAX_VALUE: i64 = 1_000_000_000_000_000;

    /// The names of the counters, in the order of [`Counters::to_array`].
    pub const NAMES: [&'static str; 9] = [
        "view_count",
        "like_count",
        "comment_count",
        "share_count",
        "saved_count",
        "play_count",
        "ig_play_count",
        "fb_play_count",
        "fb_like_count",
    ];

    /// Returns the counters in the order of [`Counters::NAMES`].
    pub const fn to_array(self) -> [Option<i64>; 9] {
        [
            self.view_count,
            self.like_count,
            self.comment_count,
            self.share_count,
            self.saved_count,
            self.play_count,
            self.ig_play_count,
            self.fb_play_count,
            self.fb_like_count,
        ]
    }

    /// Makes counters from values in the order of [`Counters::NAMES`].
    pub const fn from_array(values: [Option<i64>; 9]) -> Self {
        let [
            view_count,
            like_count,
            comment_count,
            share_count,
            saved_count,
            play_count,
            ig_play_count,
            fb_play_count,
            fb_like_count,
        ] = values;
        Counters {
            view_count,
            like_count,
            comment_count,
            share_count,
            saved_count,
            play_count,
            ig_play_count,
            fb_play_count,
            fb_like_count,
        }
    }

    /// Whether nothing is known: such an observation describes a video and counts nothing.
    pub fn is_empty(&self) -> bool {
        *self == Counters::default()
    }

    /// Applies the platform's own meaning: on TikTok a play is a view.
    #[must_use]
    pub const fn normalize_for(mut self, platform: Platform) -> Self {
        if matches!(platform, Platform::Tiktok) {
            self.play_count = self.view_count;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_round_trip_in_the_order_of_the_names() {
        let values = std::array::from_fn(|n| Some(n as i64));
        let counters = Counters::from_array(values);
        assert_eq!(counters.to_array(), values);
        let json = serde_json::to_value(counters).unwrap();
        for (name, value) in Counters::NAMES.iter().zip(values) {
            assert_eq!(json[name], value.unwrap());
        }
    }

    #[test]
    fn a_play_is_a_view_on_tiktok_alone() {
        let seen = Counters { view_count: Some(7), play_count: Some(9), ..Counters::default() };
        assert_eq!(seen.normalize_for(Platform::Tiktok).play_count, Some(7));
        assert_eq!(seen.normalize_for(Platform::Instagram).play_count, Some(9));
    }
}
