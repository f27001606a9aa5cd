//! The last known value of every field, whatever the order in which observations arrive.
//!
//! Each field keeps the time at which it was last known, so an older observation fills what a newer one left
//! unsaid and overwrites nothing.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::counters::Counters;

/// A value and when it was observed.
#[derive(Debug, Clone, PartialEq)]
pub struct Timestamped<T> {
    pub value: T,
    pub at: DateTime<Utc>,
}

/// The latest observed value of a field; empty until the field is observed.
#[derive(Debug, Clone, PartialEq)]
pub struct LatestValue<T>(Option<Timestamped<T>>);

impl<T> LatestValue<T> {
    /// Replaces the value unless the new one is unknown or older.
    pub fn record(&mut self, value: Option<T>, at: DateTime<Utc>) {
        self.merge(LatestValue(value.map(|value| Timestamped { value, at })));
    }

    /// Replaces the value with the other one if that is not older.
    pub fn merge(&mut self, other: LatestValue<T>) {
        if other.at() >= self.at() && other.0.is_some() {
            self.0 = other.0;
        }
    }

    pub const fn get(&self) -> Option<&T> {
        match &self.0 {
            Some(latest) => Some(&latest.value),
            None => None,
        }
    }

    /// Returns when the value was observed.
    pub fn at(&self) -> Option<DateTime<Utc>> {
        self.0.as_ref().map(|latest| latest.at)
    }

    pub fn into_timestamped(self) -> Option<Timestamped<T>> {
        self.0
    }
}

impl<T> Default for LatestValue<T> {
    fn default() -> Self {
        LatestValue(None)
    }
}

/// Fields whose columns hold a zero while they were never known.
const ZERO_UNTIL_KNOWN: [&str; 9] = [
    "view_count",
    "like_count",
    "comment_count",
    "share_count",
    "play_count",
    "follower_count",
    "following_count",
    "profile_post_count",
    "is_verified",
];

/// When each field was last known, as stored: fields known at the latest observation are left out, and so are
/// those whose null column says by itself that they never were; a zero that was never known stands as null.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KnownAt(BTreeMap<String, Option<DateTime<Utc>>>);

impl KnownAt {
    fn restore<T>(
        &self,
        field: &str,
        value: Option<T>,
        observed_at: Option<DateTime<Utc>>,
    ) -> LatestValue<T> {
        let at = match self.0.get(field) {
            Some(exception) => *exception,
            None => observed_at,
        };
        LatestValue(value.zip(at).map(|(value, at)| Timestamped { value, at }))
    }

    fn add<T>(&mut self, field: &str, latest: &LatestValue<T>, observed_at: Option<DateTime<Utc>>) {
        let at = latest.at();
        if at != observed_at && (at.is_some() || ZERO_UNTIL_KNOWN.contains(&field)) {
            self.0.insert(field.to_owned(), at);
        }
    }

    /// Whether every field was known at the latest observation.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Declares a record of last known fields with its merging and its stored form: plain values, beside the times at which they
/// were known.
macro_rules! latest {
    ($(#[$doc:meta])* $name:ident, $values:ident { $($field:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $name {
            $(pub $field: LatestValue<$type>,)*
        }

        /// The columns in which it is stored.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $values {
            $(pub $field: Option<$type>,)*
        }

        impl $name {
            /// Merges every field with the other record's.
            pub fn merge(&mut self, other: $name) {
                $(self.$field.merge(other.$field);)*
            }

            /// When anything was last known.
            pub fn observed_at(&self) -> Option<DateTime<Utc>> {
                [$(self.$field.at()),*].into_iter().flatten().max()
            }

            /// Which fields were last known at another time than `observed_at`.
            pub fn known_at(&self, observed_at: Option<DateTime<Utc>>) -> KnownAt {
                let mut known_at = KnownAt::default();
                $(known_at.add(stringify!($field), &self.$field, observed_at);)*
                known_at
            }

            /// Reads a record back from its columns.
            pub fn restore(known_at: &KnownAt, observed_at: Option<DateTime<Utc>>, values: $values) -> Self {
                $name { $($field: known_at.restore(stringify!($field), values.$field, observed_at),)* }
            }
        }
    };
}

latest! {
    /// What is last known of a video.
    VideoLatest, VideoValues {
        view_count: i64,
        like_count: i64,
        comment_count: i64,
        share_count: i64,
        saved_count: i64,
        play_count: i64,
        ig_play_count: i64,
        fb_play_count: i64,
        fb_like_count: i64,
        description: String,
        media_type: String,
        duration: f64,
        create_time: DateTime<Utc>,
        url: String,
        cover_image_url: String,
        video_url: String,
        platform_data: serde_json::Value,
    }
}

impl VideoLatest {
    /// Learns the counters of one observation.
    pub fn record_counters(&mut self, counters: &Counters, at: DateTime<Utc>) {
        self.view_count.record(counters.view_count, at);
        self.like_count.record(counters.like_count, at);
        self.comment_count.record(counters.comment_count, at);
        self.share_count.record(counters.share_count, at);
        self.saved_count.record(counters.saved_count, at);
        self.play_count.record(counters.play_count, at);
        self.ig_play_count.record(counters.ig_play_count, at);
        self.fb_play_count.record(counters.fb_play_count, at);
        self.fb_like_count.record(counters.fb_like_count, at);
    }
}

latest! {
    /// What is last known of an account's profile.
    AccountLatest, AccountValues {
        name: String,
        description: String,
        profile_pic_url: String,
        link_in_bio: String,
        is_verified: bool,
        follower_count: i64,
        following_count: i64,
        profile_post_count: i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u32) -> DateTime<Utc> {
        DateTime::from_timestamp(i64::from(second), 0).unwrap()
    }

    fn observation(second: u32, views: Option<i64>, saves: Option<i64>) -> VideoLatest {
        let mut latest = VideoLatest::default();
        let counters = Counters { view_count: views, saved_count: saves, ..Counters::default() };
        latest.record_counters(&counters, at(second));
        latest
    }

    #[test]
    fn every_order_of_arrival_ends_the_same() {
        let observations = [
            observation(1, Some(10), Some(1)),
            observation(2, Some(20), Some(2)),
            observation(3, Some(30), None),
        ];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut latest = VideoLatest::default();
            for n in order {
                // Through the stored form each time, as between two batches of an import.
                let (observed_at, views, saves) = (
                    latest.observed_at(),
                    latest.view_count.get().cloned(),
                    latest.saved_count.get().cloned(),
                );
                let known_at = latest.known_at(observed_at);
                let values = VideoValues { view_count: views, saved_count: saves, ..VideoValues::default() };
                latest = VideoLatest::restore(&known_at, observed_at, values);
                latest.merge(observations[n].clone());
            }
            assert_eq!(
                (latest.view_count.get().cloned(), latest.saved_count.get().cloned()),
                (Some(30), Some(2)),
                "{order:?}"
            );
        }
    }

    #[test]
    fn a_zero_is_told_from_a_counter_never_known() {
        let latest = observation(3, Some(0), None);
        let json = serde_json::to_value(latest.known_at(latest.observed_at())).unwrap();
        assert_eq!(json.get("view_count"), None);
        assert_eq!(json.get("like_count"), Some(&serde_json::Value::Null));
        assert_eq!(json.get("saved_count"), None, "a null column says so itself");
    }
}
