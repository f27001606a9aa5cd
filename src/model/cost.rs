//! What tracking costs: the requests a day that an account or a video takes from a source, estimated from what is
//! known of its posts.

/// How a source answers an account's posts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paging {
    /// Pages of so many posts, the profile with the first.
    Pages(u32),
    /// A request for the profile, then pages of so many posts for every window of so many days.
    Windows { page: u32, days: u32 },
}

/// What is known of an account: how often it is read, and its posts by the age up to which they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct AccountFacts {
    pub interval_hours: i32,
    pub lookback_days: i32,
    /// Posts younger than 14 days, than 90 days, and all that are read.
    pub fortnight: i64,
    pub quarter: i64,
    pub all: i64,
}

impl Paging {
    fn requests(self, posts: i64, days: f64) -> f64 {
        let pages = |page: u32, windows: f64| (posts as f64 / f64::from(page)).ceil().max(windows);
        match self {
            Paging::Pages(page) => pages(page, 1.0),
            Paging::Windows { page, days: window } => 1.0 + pages(page, (days / f64::from(window)).ceil()),
        }
    }
}

/// The requests a day that an account takes: every scrape reads the newest posts, a weekly one and a monthly one
/// the older ones.
pub fn of_account(paging: Paging, facts: AccountFacts) -> f64 {
    let scrapes = 24.0 / f64::from(facts.interval_hours.max(1));
    let fortnight = paging.requests(facts.fortnight, 14.0);
    let quarter = paging.requests(facts.quarter, 90.0);
    let all = paging.requests(facts.all, f64::from(facts.lookback_days));
    let (weekly, monthly) = (scrapes.min(1.0 / 7.0), scrapes.min(1.0 / 30.0));
    scrapes * fortnight + weekly * (quarter - fortnight) + monthly * (all - quarter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn daily(fortnight: i64, quarter: i64, all: i64) -> AccountFacts {
        AccountFacts { interval_hours: 24, lookback_days: 365, fortnight, quarter, all }
    }

    #[test]
    fn a_small_account_costs_one_request_a_scrape() {
        assert_eq!(of_account(Paging::Pages(50), daily(3, 20, 50)), 1.0);
        let monthly = AccountFacts { interval_hours: 720, ..daily(3, 20, 50) };
        assert!((of_account(Paging::Pages(50), monthly) - 1.0 / 30.0).abs() < 1e-9);
    }

    #[test]
    fn older_posts_cost_seldom() {
        // 1 page daily, 3 weekly, 8 monthly.
        let cost = of_account(Paging::Pages(50), daily(50, 150, 400));
        assert!((cost - (1.0 + 2.0 / 7.0 + 5.0 / 30.0)).abs() < 1e-9, "{cost}");
        // The profile and 1 window daily, 3 windows weekly, 13 monthly.
        let cost = of_account(Paging::Windows { page: 100, days: 30 }, daily(5, 30, 100));
        assert!((cost - (2.0 + 2.0 / 7.0 + 10.0 / 30.0)).abs() < 1e-9, "{cost}");
    }
}
