//! Estimates the requests per day that an account needs from a source.

/// How a source pages through an account's posts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paging {
    /// Pages of this many posts; the first includes the profile.
    Pages(u32),
    /// Pages as they were delivered. The size is assumed until a page followed another.
    Delivered { assumed_size: u32, counts: PageCounts },
    /// A request for the profile, then pages of posts for each window of days.
    Windows { page: u32, days: u32 },
}

/// How often an account is scraped, and how many posts there are to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct ScrapeLoad {
    pub interval_hours: i32,
    pub lookback_days: i32,
    /// Posts of the last 14 days.
    pub posts_14d: i64,
    pub posts_90d: i64,
    /// All posts within the lookback.
    pub posts_total: i64,
}

/// The pages of posts that a source has delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct PageCounts {
    /// Accounts that were read.
    pub reads: i64,
    /// Pages that another one followed, and their posts.
    pub full_pages: i64,
    pub full_page_posts: i64,
    /// Pages that had only posts older than asked for.
    pub surplus_pages: i64,
}

impl PageCounts {
    fn page_size(self) -> Option<f64> {
        (self.full_pages > 0).then(|| (self.full_page_posts as f64 / self.full_pages as f64).max(1.0))
    }

    fn surplus_per_read(self) -> f64 {
        self.surplus_pages as f64 / self.reads.max(1) as f64
    }
}

impl Paging {
    fn requests(self, posts: i64, days: f64) -> f64 {
        let pages = |size: f64, windows: f64| (posts as f64 / size).ceil().max(windows);
        match self {
            Paging::Pages(size) => pages(size.into(), 1.0),
            Paging::Delivered { assumed_size, counts } => {
                pages(counts.page_size().unwrap_or(assumed_size.into()), 1.0) + counts.surplus_per_read()
            }
            Paging::Windows { page, days: window } => {
                1.0 + pages(page.into(), (days / f64::from(window)).ceil())
            }
        }
    }
}

/// Returns the requests per day of an account: every scrape reads posts of 14 days, a weekly one of 90 days, a monthly
/// one all.
pub fn daily_requests(paging: Paging, load: ScrapeLoad) -> f64 {
    let scrapes = 24.0 / f64::from(load.interval_hours.max(1));
    let every_scrape = paging.requests(load.posts_14d, 14.0);
    let weekly_scrape = paging.requests(load.posts_90d, 90.0);
    let monthly_scrape = paging.requests(load.posts_total, f64::from(load.lookback_days));
    let (weekly, monthly) = (scrapes.min(1.0 / 7.0), scrapes.min(1.0 / 30.0));
    scrapes * every_scrape
        + weekly * (weekly_scrape - every_scrape)
        + monthly * (monthly_scrape - weekly_scrape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn daily(posts_14d: i64, posts_90d: i64, posts_total: i64) -> ScrapeLoad {
        ScrapeLoad { interval_hours: 24, lookback_days: 365, posts_14d, posts_90d, posts_total }
    }

    #[test]
    fn small_account_takes_one_request_per_scrape() {
        assert_eq!(daily_requests(Paging::Pages(50), daily(3, 20, 50)), 1.0);
        let monthly = ScrapeLoad { interval_hours: 720, ..daily(3, 20, 50) };
        assert!((daily_requests(Paging::Pages(50), monthly) - 1.0 / 30.0).abs() < 1e-9);
    }

    #[test]
    fn delivered_pages_decide_the_price() {
        let paging = |reads, full_pages, full_page_posts, surplus_pages| Paging::Delivered {
            assumed_size: 100,
            counts: PageCounts { reads, full_pages, full_page_posts, surplus_pages },
        };
        assert_eq!(daily_requests(paging(0, 0, 0, 0), daily(30, 30, 30)), 1.0);
        assert_eq!(daily_requests(paging(9, 0, 0, 0), daily(30, 30, 30)), 1.0);
        assert_eq!(daily_requests(paging(9, 4, 48, 0), daily(30, 30, 30)), 3.0);
        assert_eq!(daily_requests(paging(8, 4, 48, 4), daily(30, 30, 30)), 3.5);
        assert_eq!(daily_requests(paging(1, 1, 0, 0), daily(30, 30, 30)), 30.0);
    }

    #[test]
    fn older_posts_are_read_weekly_and_monthly() {
        // 1 page daily, 3 weekly, 8 monthly.
        let by_pages = daily_requests(Paging::Pages(50), daily(50, 150, 400));
        assert!((by_pages - (1.0 + 2.0 / 7.0 + 5.0 / 30.0)).abs() < 1e-9, "{by_pages}");
        // The profile and 1 window daily, 3 windows weekly, 13 monthly.
        let by_windows = daily_requests(Paging::Windows { page: 100, days: 30 }, daily(5, 30, 100));
        assert!((by_windows - (2.0 + 2.0 / 7.0 + 10.0 / 30.0)).abs() < 1e-9, "{by_windows}");
    }
}
