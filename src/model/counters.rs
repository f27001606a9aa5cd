//! The counters of videos and of profiles.
//!
//! Unknown is not zero: an observation without a counter does not overwrite the last known value.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::file_row::file_row;
use super::platform::Platform;

/// Calls a macro with the counters of a video: name in the API, the files and the stores; type of the latest value, which
/// is either 0 or null while the counter is unknown; description; example.
///
/// This is their only definition, in the order of all arrays and of the columns in ClickHouse.
macro_rules! with_video_counters {
    ($macro:ident) => {
        $macro! {
            view_count: i64, "Views", 12_840;
            like_count: i64, "Likes", 964;
            comment_count: i64, "Comments", 21;
            share_count: i64, "Shares", 18;
            saved_count: Option<i64>, "Saves", 30;
            play_count: i64, "Plays (on TikTok equal to views)", 15_120;
            ig_play_count: Option<i64>, "Plays on Instagram", 14_710;
            fb_play_count: Option<i64>, "Plays on Facebook", 410;
            fb_like_count: Option<i64>, "Likes on Facebook", 8;
        }
    };
}
pub(crate) use with_video_counters;

/// Defines a struct of observed counters.
macro_rules! counters {
    ($(#[$attribute:meta])* $name:ident { $($counter:ident: $latest:ty $(, $description:literal, $example:literal)?;)* }) => {
        $(#[$attribute])*
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, sqlx::FromRow,
        )]
        pub struct $name {
            $(
                $(
                    #[doc = concat!($description, ".")]
                    #[schemars(example = $example)]
                )?
                #[serde(default)]
                pub $counter: Option<i64>,
            )*
        }

        impl $name {
            /// The names of the counters, which are their columns, too.
            pub const NAMES: [&'static str; [$(stringify!($counter)),*].len()] = [$(stringify!($counter)),*];

            /// Whether the latest value of a counter is null while it is unknown, instead of 0.
            pub const NULLABLE: [bool; Self::NAMES.len()] = [$(<$latest as LatestCount>::NULLABLE),*];

            /// Returns the counters in the order of [`Self::NAMES`].
            pub const fn to_array(self) -> [Option<i64>; Self::NAMES.len()] {
                [$(self.$counter),*]
            }

            /// Replaces unknown counters by 0 where the stores do.
            #[must_use]
            pub fn or_zero(self) -> Self {
                let counters = self.to_array();
                let stored = |n: usize| counters[n].or((!Self::NULLABLE[n]).then_some(0));
                Self::from_array(std::array::from_fn(stored))
            }

            /// Returns the counters of an array in the order of [`Self::NAMES`].
            pub const fn from_array([$($counter),*]: [Option<i64>; Self::NAMES.len()]) -> Self {
                $name { $($counter),* }
            }
        }

        file_row!($name { $($counter),* });
    };
}

/// The type of a counter's latest value.
trait LatestCount {
    const NULLABLE: bool;
}

impl LatestCount for i64 {
    const NULLABLE: bool = false;
}

impl LatestCount for Option<i64> {
    const NULLABLE: bool = true;
}

macro_rules! video_counters {
    ($($table:tt)*) => {
        counters! {
            /// The counters of a video as observed, or their gains; `None` is unknown.
            Counters { $($table)* }
        }
    };
}
with_video_counters!(video_counters);

counters! {
    /// The counters of a profile as observed; `None` is unknown.
    ProfileCounters {
        follower_count: i64;
        following_count: i64;
        profile_post_count: i64;
    }
}

/// Defines the counters that the API shows of a record.
macro_rules! latest_counters {
    ($($counter:ident: $latest:ident $(<$number:ident>)?, $description:literal, $example:literal;)*) => {
        /// The latest counters of a video.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, sqlx::FromRow)]
        pub struct LatestCounters {
            $(
                #[doc = concat!($description, ", by the last scrape", $(null_note!($number),)? ".")]
                #[schemars(example = $example * 100)]
                pub $counter: $latest $(<$number>)?,
            )*
        }

        /// The sums of the latest counters of an account's discovered videos.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, sqlx::FromRow)]
        pub struct CounterSums {
            $(
                #[doc = concat!($description, " of all discovered posts", $(null_note!($number),)? ".")]
                #[schemars(example = $example * 1_000)]
                pub $counter: $latest $(<$number>)?,
            )*
        }
    };
}

macro_rules! null_note {
    ($number:ident) => {
        "; null if the platform never reported them"
    };
}
with_video_counters!(latest_counters);

/// The counters of the rollup: those of videos, then followers.
pub const ROLLUP_COUNTERS: [&str; Counters::NAMES.len() + 1] = {
    let mut names = ["follower_count"; Counters::NAMES.len() + 1];
    names.split_at_mut(Counters::NAMES.len()).0.copy_from_slice(&Counters::NAMES);
    names
};

/// The counters of the rollup of videos.
pub const VIDEO_ROLLUP_COUNTERS: [&str; 6] =
    ["view_count", "play_count", "like_count", "comment_count", "share_count", "saved_count"];

pub fn gain_column(counter: &str) -> String {
    counter.replace("_count", "_gain")
}

/// Returns the rollup column of a counter's first known values, which are no gain.
pub fn base_column(counter: &str) -> String {
    counter.replace("_count", "_base")
}

impl ProfileCounters {
    /// Whether all counters are unknown: such a row of a file describes an account and is no observation.
    pub fn is_empty(&self) -> bool {
        *self == ProfileCounters::default()
    }
}

impl Counters {
    /// The largest valid count: platforms have sent overflows, and sums must not overflow.
    pub const MAX_VALUE: i64 = 1_000_000_000_000_000;

    /// Whether all counters are unknown: such an observation describes a video but does not count.
    pub fn is_empty(&self) -> bool {
        *self == Counters::default()
    }

    /// The names of a platform's counters.
    pub fn names_on(platform: Platform) -> impl Iterator<Item = &'static str> {
        let only_on_instagram = ["ig_play_count", "fb_play_count", "fb_like_count"];
        let exists = move |name: &&str| platform == Platform::Instagram || !only_on_instagram.contains(name);
        Self::NAMES.into_iter().filter(exists)
    }

    /// Applies a platform's rules: on TikTok, plays are views.
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
    fn arrays_round_trip_in_the_order_of_names() {
        let values = std::array::from_fn(|n| Some(n as i64));
        let counters = Counters::from_array(values);
        assert_eq!(counters.to_array(), values);
        let json = serde_json::to_value(counters).unwrap();
        for (name, value) in Counters::NAMES.iter().zip(values) {
            assert_eq!(json[name], value.unwrap());
        }
    }

    #[test]
    fn plays_are_views_on_tiktok_only() {
        let observed = Counters { view_count: Some(7), play_count: Some(9), ..Counters::default() };
        assert_eq!(observed.normalize_for(Platform::Tiktok).play_count, Some(7));
        assert_eq!(observed.normalize_for(Platform::Instagram).play_count, Some(9));
    }
}
