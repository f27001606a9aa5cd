//! Scrapes that are recorded out of order: a scrape of an account takes longer than one of its posts.

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use harness::IsolatedStores;

use harness::relay::{scrape_at, scrape_profile_at};

#[tokio::test]
async fn latest_scrape_wins_whichever_is_recorded_last() {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(1).await;
    let late = harness::now().trunc_subsecs(6);
    let early = late - TimeDelta::milliseconds(11);
    for (at, views) in [(late, 120), (early, 100)] {
        scrape_at(stores.pg(), tenant.id, tenant.accounts[0], 1, views, at).await;
        scrape_profile_at(stores.pg(), tenant.id, tenant.accounts[0], &format!("as of {views}"), at).await;
    }
    type Scraped = (DateTime<Utc>, DateTime<Utc>, String);
    let times = "select first_scrape_time, last_scrape_time";
    for (sql, latest) in [
        (format!("{times}, name from accounts where organization_id = $1"), "as of 120"),
        (format!("{times}, view_count::text from videos where organization_id = $1"), "120"),
    ] {
        let sql = sqlx::query_as(sqlx::AssertSqlSafe(sql));
        let scraped: Scraped = sql.bind(tenant.id).fetch_one(stores.pg()).await.unwrap();
        assert_eq!(scraped, (early, late, latest.to_owned()));
    }
}
