//! The seeded data: 50 organizations of skewed size with 3,000 accounts and 1.3 million videos over 400 days, and three larger
//! copies of one of them: with ten times the days, the accounts, or the videos per account.

use std::ops::Range;

use uuid::Uuid;

/// Days of history, except for the organization with ten times as many.
pub const DAYS: u32 = 400;
pub const ORGANIZATIONS: usize = 50;
const ACCOUNTS: usize = 3_000;
/// Videos of accounts; the tracker reads each about 20 times, so these have 27 million snapshots.
const VIDEOS: usize = 1_340_000;
/// The largest accounts have about four times the mean.
const MIN_VIDEOS_PER_ACCOUNT: usize = 40;
/// Days before the start of tracking whose posts the first scrape reads.
const LOOKBACK_DAYS: u32 = 364;

/// The three larger organizations, whose numbers follow those of the others.
pub const GROWN: [&str; 3] = ["days ×10", "accounts ×10", "videos ×10"];

#[derive(Debug, Clone, Copy)]
pub struct Account {
    pub organization: usize,
    /// Internal id, which is its subject.
    pub subject: i64,
    pub first_video: i64,
    pub videos: i64,
    pub days: u32,
}

impl Account {
    /// Its newest videos, at most so many.
    pub fn newest_videos(&self, count: i64) -> Range<i64> {
        let end = self.first_video + self.videos;
        end - count.min(self.videos)..end
    }
}

/// A video that is tracked individually, and on no tracked account.
#[derive(Debug, Clone, Copy)]
pub struct TrackedVideo {
    pub organization: usize,
    /// Internal id, which is its subject.
    pub id: i64,
    pub days: u32,
}

pub struct Layout {
    pub accounts: Vec<Account>,
    /// One for each account of an organization, added on different days.
    pub tracked_videos: Vec<TrackedVideo>,
}

/// Ids derived from numbers, so that both databases agree without a lookup.
pub fn organization_id(number: usize) -> Uuid {
    Uuid::from_u128(0x018f_0000_0000_7000_8000_0000_0000_0000 + number as u128)
}

pub fn account_id(subject: i64) -> Uuid {
    Uuid::from_u128(0x018f_0000_0000_7000_8100_0000_0000_0000 + subject as u128)
}

pub fn video_id(internal: i64) -> Uuid {
    Uuid::from_u128(0x018f_0000_0000_7000_8200_0000_0000_0000 + internal as u128)
}

/// The number in the category of an account; there are eight.
pub fn category(subject: i64) -> i64 {
    subject / 2 % 8
}

impl Layout {
    /// The 50 organizations, and the three larger copies of organization `grown`. `scale` divides the number of accounts,
    /// for a quick trial.
    pub fn new(grown: usize, scale: usize) -> Self {
        let total = ACCOUNTS / scale;
        let sizes = organization_sizes(total);
        let spread = |n: usize| (n * 7_919 % 1_000) as f64 / 1_000.0;
        let weights: Vec<f64> = (0..total).map(|n| spread(n).powi(3)).collect();
        let scale_to_total =
            (VIDEOS / scale - MIN_VIDEOS_PER_ACCOUNT * total) as f64 / weights.iter().sum::<f64>();
        let videos: Vec<usize> = weights
            .iter()
            .map(|weight| MIN_VIDEOS_PER_ACCOUNT + (weight * scale_to_total).round() as usize)
            .collect();

        let mut layout = Layout { accounts: Vec::new(), tracked_videos: Vec::new() };
        let mut n = 0;
        for (organization, size) in sizes.iter().enumerate() {
            for _ in 0..*size {
                layout.push(organization, videos[n.min(videos.len() - 1)], DAYS);
                n += 1;
            }
        }
        let first: usize = sizes[..grown].iter().sum();
        let base: Vec<usize> = videos[first..].iter().copied().take(sizes[grown]).collect();
        // Ten times the days at the same rate.
        let posts_in_more_days =
            |videos: usize| videos * (DAYS * 10 + LOOKBACK_DAYS) as usize / (DAYS + LOOKBACK_DAYS) as usize;
        for videos in &base {
            layout.push(ORGANIZATIONS, posts_in_more_days(*videos), DAYS * 10);
        }
        for _ in 0..10 {
            for videos in &base {
                layout.push(ORGANIZATIONS + 1, *videos, DAYS);
            }
        }
        for videos in &base {
            layout.push(ORGANIZATIONS + 2, videos * 10, DAYS);
        }
        layout.assign_video_ids();
        layout
    }

    fn push(&mut self, organization: usize, videos: usize, days: u32) {
        let subject = self.accounts.len() as i64 + 1;
        self.accounts.push(Account { organization, subject, first_video: 0, videos: videos as i64, days });
    }

    /// Accounts first, so that the ids of an account's videos are adjacent, as after one scrape; then videos without account.
    fn assign_video_ids(&mut self) {
        let mut next = self.accounts.len() as i64 + 1;
        for account in &mut self.accounts {
            account.first_video = next;
            next += account.videos;
        }
        for account in &self.accounts {
            let days = 1 + (next * 7_919) as u32 % account.days;
            self.tracked_videos.push(TrackedVideo { organization: account.organization, id: next, days });
            next += 1;
        }
    }

    pub fn organizations(&self) -> usize {
        self.accounts.last().map_or(0, |account| account.organization + 1)
    }

    pub fn accounts_of(&self, organization: usize) -> &[Account] {
        let first = self.accounts.partition_point(|account| account.organization < organization);
        let end = self.accounts.partition_point(|account| account.organization <= organization);
        &self.accounts[first..end]
    }

    /// The accounts of the 50 organizations.
    pub fn tracked(&self) -> &[Account] {
        let end = self.accounts.partition_point(|account| account.organization < ORGANIZATIONS);
        &self.accounts[..end]
    }

    /// Above every internal id.
    pub fn last_id(&self) -> i64 {
        self.tracked_videos.last().map_or(0, |video| video.id + 1)
    }
}

/// Splits accounts over the organizations, as 1/n.
fn organization_sizes(accounts: usize) -> Vec<usize> {
    let weights: f64 = (1..=ORGANIZATIONS).map(|index| 1.0 / index as f64).sum();
    let share = |index: usize| ((accounts as f64 / (index + 1) as f64 / weights).round() as usize).max(1);
    let mut sizes: Vec<usize> = (0..ORGANIZATIONS).map(share).collect();
    let others: usize = sizes[1..].iter().sum();
    sizes[0] = accounts.saturating_sub(others).max(1);
    sizes
}
