//! What questions to ClickHouse may take: their bounds, their names, their end with the client, and their turns.

use std::time::{Duration, Instant};

use chrono::{Days, NaiveDate};
use tidemark::app::Settings;
use tidemark::store::records::keys::NewKey;
use tidemark::store::records::organizations::OrganizationChange;

use crate::harness::{Organization, ProxiedApi, Stack, send, wait_until};

async fn patient() -> Organization {
    let options = OrganizationChange { rate_limit: Some(Some(100_000)), ..OrganizationChange::default() };
    Stack::shared().organization_with(options, NewKey::named("test")).await
}

fn series(day: u64) -> String {
    let start = NaiveDate::default() + Days::new(20_000 + day);
    format!("/analytics/timeseries?start_date={start}&end_date={start}")
}

#[tokio::test]
async fn every_question_has_its_bounds_and_the_name_of_its_request() {
    let process = ProxiedApi::start(Settings::default()).await;
    let organization = process.client_for(&patient().await);
    let get = organization.request(reqwest::Method::GET, "/overview").header("x-request-id", "asked:by/me");
    send(get).await.ok(200);
    let asked = process.clickhouse.requests();
    assert_eq!(asked.len(), 2, "{asked:?}");
    for address in asked {
        let url = url::Url::parse("http://clickhouse").unwrap().join(&address).unwrap();
        let settings: std::collections::HashMap<_, _> = url.query_pairs().collect();
        assert_eq!(settings["log_comment"], "asked:by/me GET /v2/overview");
        for (name, most) in [
            ("max_execution_time", 5),
            ("max_memory_usage", 4_000_000_000),
            ("max_rows_to_read", 10_000_000_000_u64),
            ("max_result_rows", 10_000_000),
        ] {
            let bound: u64 = settings[name].parse().unwrap();
            assert!((1..=most).contains(&bound), "{name} {bound}");
        }
    }
}

#[tokio::test]
async fn a_question_ends_with_the_client_that_asked_it() {
    let process = ProxiedApi::start(Settings::default()).await;
    let organization = process.client_for(&patient().await);
    process.clickhouse.hold();
    let asking = tokio::spawn(async move { organization.get("/overview").await });
    wait_until("both questions are asked", async || (process.clickhouse.request_count() == 2).then_some(()))
        .await;
    assert_eq!(process.app.history.load(), (2, 0));
    asking.abort();
    process.clickhouse.wait_aborted(2).await;
    assert_eq!(process.app.history.load(), (0, 0));
}

/// One place for both organizations, and one of them asks a lot.
#[tokio::test]
async fn many_questions_of_one_organization_delay_another_by_one() {
    let process = ProxiedApi::start(Settings { analytics_concurrency: 1, ..Settings::default() }).await;
    let (many, other) = (process.client_for(&patient().await), process.client_for(&patient().await));
    // Both keys are known, so that nothing but their turn is waited for.
    many.get("/whoami").await.ok(200);
    other.get("/whoami").await.ok(200);
    process.clickhouse.hold();
    let ask = |organization: &Organization, day| {
        let organization = organization.clone();
        tokio::spawn(async move { organization.get(&series(day)).await })
    };
    let waiting: Vec<_> = (0..8).map(|day| ask(&many, day)).collect();
    wait_until("one is asked and all others wait", async || {
        (process.app.history.load() == (1, 7)).then_some(())
    })
    .await;
    let last = {
        let other = other.clone();
        let get = other.request(reqwest::Method::GET, &series(0)).header("x-request-id", "the-other");
        tokio::spawn(async move { send(get).await })
    };
    wait_until("the other waits too", async || (process.app.history.load() == (1, 8)).then_some(())).await;
    process.clickhouse.release();
    last.await.unwrap().ok(200);
    for answer in waiting {
        // On a slow machine the last of them may have waited too long.
        assert!([200, 503].contains(&answer.await.unwrap().status));
    }
    let asked = process.clickhouse.requests();
    let place = asked.iter().position(|address| address.contains("the-other")).unwrap();
    assert_eq!(place, 1, "after the one that ran");
}

#[tokio::test]
async fn who_waits_too_long_for_a_turn_is_told_to_come_again() {
    let process = ProxiedApi::start(Settings { analytics_concurrency: 1, ..Settings::default() }).await;
    let organization = process.client_for(&patient().await);
    process.clickhouse.hold();
    let first = {
        let organization = organization.clone();
        tokio::spawn(async move { organization.get(&series(0)).await })
    };
    wait_until("one question runs", async || (process.app.history.load() == (1, 0)).then_some(())).await;
    let begun = Instant::now();
    let answer = organization.get(&series(1)).await.problem(503, "SERVICE_UNAVAILABLE");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(answer.header("retry-after"), "1");
    assert!(answer.text("/detail").contains("at once"), "{answer}");
    first.await.unwrap().problem(503, "SERVICE_UNAVAILABLE");
    process.clickhouse.release();
    organization.get(&series(1)).await.ok(200);
}
