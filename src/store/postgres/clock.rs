//! Compares a machine's clock with Postgres', the one that all processes share.

use std::fmt;
use std::time::Instant;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgPool;

use crate::store::Error;

/// A larger difference would show in the numbers.
const MAX_SKEW: TimeDelta = TimeDelta::minutes(1);

/// A reading of the machine's clock.
#[derive(Debug, Clone, Copy)]
pub struct ClockReading {
    time: DateTime<Utc>,
    read_at: Instant,
}

impl ClockReading {
    /// A reading that was made just now.
    pub fn new(time: DateTime<Utc>) -> Self {
        ClockReading { time, read_at: Instant::now() }
    }

    /// Returns the time since it was made. If the machine was suspended, that time is missing.
    pub fn elapsed(&self) -> TimeDelta {
        TimeDelta::from_std(self.read_at.elapsed()).unwrap_or_default()
    }

    /// Returns how far the clock was ahead when it was read, however long that is ago and even if it was set since. If the
    /// machine was suspended since, that time is missing.
    pub fn skew(&self, postgres_now: DateTime<Utc>) -> ClockSkew {
        ClockSkew(self.time.signed_duration_since(postgres_now) + self.elapsed())
    }
}

/// How far a machine's clock is ahead of Postgres'.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockSkew(TimeDelta);

impl ClockSkew {
    pub fn from_seconds(seconds: f64) -> Self {
        ClockSkew(TimeDelta::milliseconds((seconds * 1000.0) as i64))
    }

    pub fn is_excessive(self) -> bool {
        self.0.abs() > MAX_SKEW
    }

    /// Seconds ahead, negative if it is behind.
    pub fn as_seconds(self) -> f64 {
        self.0.as_seconds_f64()
    }
}

impl fmt::Display for ClockSkew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = if self.0 < TimeDelta::zero() { "behind" } else { "ahead of" };
        write!(f, "{} s {direction} Postgres'", self.0.num_seconds().abs())
    }
}

pub async fn fetch_now(pg: &PgPool) -> Result<DateTime<Utc>, Error> {
    Ok(sqlx::query_scalar("select clock_timestamp()").fetch_one(pg).await?)
}

/// Returns how far the clock was ahead when it was read.
pub async fn fetch_skew(pg: &PgPool, reading: ClockReading) -> Result<ClockSkew, Error> {
    Ok(reading.skew(fetch_now(pg).await?))
}

/// Fails if the clock was wrong when it was read.
pub async fn require_synchronized(pg: &PgPool, reading: ClockReading) -> Result<(), Error> {
    let skew = fetch_skew(pg, reading).await?;
    if skew.is_excessive() {
        return Err(Error::Conflict(format!(
            "this machine's clock is {skew}: synchronize both by NTP, then repeat the command"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn time_since_the_reading_is_no_skew() {
        let now = Utc::now();
        let read_at = Instant::now() - Duration::from_secs(300);
        let skew = |seconds: i64| ClockReading { time: now + TimeDelta::seconds(seconds), read_at }.skew(now);
        assert!(!skew(-300).is_excessive(), "a scrape may take long");
        assert!(skew(-230).is_excessive() && skew(-370).is_excessive());
        assert_eq!(skew(3_300).to_string(), "3600 s ahead of Postgres'");
        assert_eq!(skew(-3_900).to_string(), "3599 s behind Postgres'");
    }
}
