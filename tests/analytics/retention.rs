//! Retention: older history is deleted from responses and files, and later gains do not change.

use chrono::{DateTime, Datelike, Days, NaiveDate, Utc};
use harness::{Organization, Stack};
use serde_json::{Value, json};
use tidemark::rollup::verify;

use super::model::{Counts, History};

fn noon(day: NaiveDate) -> DateTime<Utc> {
    day.and_hms_opt(12, 0, 0).unwrap().and_utc()
}

/// Views, and saves if reported.
fn counts(views: i64, saves: Option<i64>) -> Counts {
    std::array::from_fn(|n| [Some(views), None, None, None, saves].get(n).copied().flatten())
}

async fn run(organization: &Organization, arguments: &[&str]) -> Value {
    let mut command = organization.stack.connection.command();
    command.args(arguments).arg("--json");
    command.env("TIDEMARK_CLOCK_URL", format!("{}/_clock", organization.stack.connection.sandbox_url));
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Gained views, followers at the end and on the day before the window, and `data_as_of`.
async fn overview(organization: &Organization, start: NaiveDate, end: NaiveDate) -> Value {
    let response = organization.get(&format!("/overview?start_date={start}&end_date={end}")).await.ok(200);
    let followers = response.at("/data/followers");
    json!([
        response.at("/data/views/current"),
        followers["current"],
        followers["previous"],
        response.at("/meta/data_as_of")
    ])
}

#[tokio::test]
async fn expired_history_is_deleted_and_later_gains_stay() {
    let organization = Stack::shared().organization().await;
    let stores = &organization.stack.databases;
    let today = stores.clock.now().await.date_naive();
    let ago = |days: u64| today - Days::new(days);
    // Retention deletes full months: the month of 30 days ago begins at most 60 days ago.
    let since = ago(30).with_day(1).unwrap();
    let mut history = History::default();
    let account = history.account("tiktok", "ann", None);
    let old = history.video("tiktok", Some(account), false, Some(ago(200)));
    let new = history.video("tiktok", Some(account), false, Some(ago(90)));
    for (day, followers, views, saves) in [
        (100, 1_000, 500, Some(7)),
        (80, 1_050, 700, None),
        (65, 1_100, 800, None),
        (10, 1_200, 1_000, Some(9)),
    ] {
        history.follow(account, noon(ago(day)), Some(followers));
        history.observe(old, noon(ago(day)), counts(views, saves));
    }
    for (day, views) in [(85, 40), (70, 60), (10, 100)] {
        history.observe(new, noon(ago(day)), counts(views, None));
    }
    let ids = history.load(&organization).await;
    let latest = json!(noon(ago(10)).to_rfc3339_opts(chrono::SecondsFormat::Secs, true));
    let full = overview(&organization, ago(120), today).await;
    assert_eq!(full, json!([500 + 100, 1_200, null, latest]));
    let recent = overview(&organization, ago(20), today).await;
    assert_eq!(recent, json!([200 + 40, 1_200, 1_100, latest]));

    let set =
        run(&organization, &["org", "set", &organization.id.to_string(), "--retention-days", "30"]).await;
    assert_eq!((&set["retention_days"], &set["history_since"]), (&json!(30), &Value::Null));
    // The number of removed rows is not checked: ClickHouse merges may remove some before.
    run(&organization, &["erase", "--org", &organization.id.to_string()]).await;
    organization.wait_applied().await;

    assert_eq!(organization.get("/whoami").await.ok(200).at("/data/history_since"), &json!(since));
    assert_eq!(overview(&organization, ago(20), today).await, recent);
    assert_eq!(overview(&organization, ago(120), today).await, json!([240, 1_200, null, latest]));
    assert_eq!(overview(&organization, ago(120), ago(65)).await, json!([0, null, null, null]));
    // The last value of each counter is the baseline, also the 7 saves, which the last day did not report.
    let path = format!(
        "/videos/{}/analytics?values=cumulative&start_date={}&end_date={since}",
        ids.videos[old].0,
        ago(66)
    );
    let days = organization.get(&path).await.ok(200);
    let shown: Vec<_> =
        days.list("/data").iter().map(|day| (&day["view_count"], &day["saved_count"])).collect();
    let (last, expired) = shown.split_last().unwrap();
    assert_eq!(last, &(&json!(800), &json!(7)));
    assert!(expired.iter().all(|day| *day == (&Value::Null, &Value::Null)), "{expired:?}");
    let path = format!("/videos/{}/analytics?start_date={}&end_date={today}", ids.videos[old].0, ago(120));
    let totals = organization.get(&path).await.ok(200);
    let totals = totals.at("/meta/totals");
    assert_eq!((&totals["view_count"], &totals["saved_count"]), (&json!(200), &json!(2)));

    let rows: Vec<(u64, u64, u64)> = stores
        .clickhouse
        .query_raw(
            "select video_id, count(), countIf(view_count is not null) from video_snapshots
             where org_id = {org:UUID} and date < {since:Date} group by video_id order by video_id",
        )
        .param("org", organization.id)
        .param("since", since)
        .fetch_all()
        .await
        .unwrap();
    let mut expected = [old, new].map(|video| (ids.videos[video].1.cast_unsigned(), 2, 1));
    expected.sort_unstable();
    assert_eq!(rows, expected, "the empty first day and the last day");
    let report = verify::verify(stores, organization.id, false).await.unwrap();
    assert_eq!(report.differences, [], "{report:?}");

    // Deleted history does not come back.
    let set =
        run(&organization, &["org", "set", &organization.id.to_string(), "--retention-days", "none"]).await;
    assert_eq!((&set["retention_days"], &set["history_since"]), (&Value::Null, &json!(since)));
}

/// Views on a remaining day are interpolated from the last day with views, although a later expired day has other counters.
#[tokio::test]
async fn views_at_remaining_ages_stay() {
    let organization = Stack::shared().organization().await;
    let stores = &organization.stack.databases;
    let today = stores.clock.now().await.date_naive();
    let ago = |days: u64| today - Days::new(days);
    let mut history = History::default();
    let account = history.account("instagram", "ann", None);
    let video = history.video("instagram", Some(account), false, Some(ago(86)));
    let likes: Counts = std::array::from_fn(|n| (n == 1).then_some(3));
    for (day, counts) in
        [(85, counts(40, None)), (75, counts(60, None)), (68, likes), (10, counts(190, None))]
    {
        history.observe(video, noon(ago(day)), counts);
    }
    let ids = history.load(&organization).await;
    let views = async || {
        let path = format!("/content/{}/ages?ages=1,66,76", ids.videos[video].0);
        let response = organization.get(&path).await.ok(200);
        response.list("/data").iter().map(|entry| entry["views"].clone()).collect::<Vec<_>>()
    };
    // 60 + 130 * 55 / 65
    assert_eq!(views().await, [json!(40), json!(170), json!(190)]);
    run(&organization, &["org", "set", &organization.id.to_string(), "--retention-days", "30"]).await;
    run(&organization, &["erase", "--org", &organization.id.to_string()]).await;
    organization.wait_applied().await;
    assert_eq!(views().await, [Value::Null, json!(170), json!(190)]);
    let rows: Vec<(u64, u64)> = stores
        .clickhouse
        .query_raw(
            "select count(), countIf(view_count is not null) from video_snapshots
             where org_id = {org:UUID} and date < {day:Date}",
        )
        .param("org", organization.id)
        .param("day", ago(60))
        .fetch_all()
        .await
        .unwrap();
    assert_eq!(rows, [(3, 1)], "the empty first day, and the last days with views and likes");
    let report = verify::verify(stores, organization.id, false).await.unwrap();
    assert_eq!(report.differences, [], "{report:?}");
}
