//! History that an organization keeps for a while: what is older is gone from every answer and from the files, and what it
//! gained since is what it was.

use chrono::{DateTime, Datelike, Days, NaiveDate, Utc};
use serde_json::{Value, json};
use tidemark::rollup::verify;

use super::model::{Counts, History};
use crate::harness::{Organization, Stack};

fn noon(day: NaiveDate) -> DateTime<Utc> {
    day.and_hms_opt(12, 0, 0).unwrap().and_utc()
}

/// Views, and saves where they are told.
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

/// Views gained, followers at the end and on the eve, and the latest observation of a window.
async fn overview(organization: &Organization, start: NaiveDate, end: NaiveDate) -> Value {
    let answer = organization.get(&format!("/overview?start_date={start}&end_date={end}")).await.ok(200);
    let followers = answer.at("/data/followers");
    json!([
        answer.at("/data/views/current"),
        followers["current"],
        followers["previous"],
        answer.at("/meta/data_as_of")
    ])
}

#[tokio::test]
async fn what_is_older_than_an_organization_keeps_is_gone_and_later_days_gained_what_they_did() {
    let organization = Stack::shared().organization().await;
    let stores = &organization.stack.databases;
    let today = stores.clock.now().await.date_naive();
    let ago = |days: u64| today - Days::new(days);
    // Whole months go: the month that was 30 days ago begins at most 60 days ago.
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
    let before = overview(&organization, ago(120), today).await;
    assert_eq!(before, json!([500 + 100, 1_200, null, latest]));
    let lately = overview(&organization, ago(20), today).await;
    assert_eq!(lately, json!([200 + 40, 1_200, 1_100, latest]));

    let set =
        run(&organization, &["org", "set", &organization.id.to_string(), "--retention-days", "30"]).await;
    assert_eq!((&set["retention_days"], &set["history_since"]), (&json!(30), &Value::Null));
    // How many rows it removes is for ClickHouse to say, which merges some of them away by itself.
    run(&organization, &["erase", "--org", &organization.id.to_string()]).await;
    organization.wait_applied().await;

    assert_eq!(organization.get("/whoami").await.ok(200).at("/data/history_since"), &json!(since));
    assert_eq!(overview(&organization, ago(20), today).await, lately);
    assert_eq!(overview(&organization, ago(120), today).await, json!([240, 1_200, null, latest]));
    assert_eq!(overview(&organization, ago(120), ago(65)).await, json!([0, null, null, null]));
    // What was last known is where later days count from: the seven saves too, which the last day did not tell.
    let path = format!(
        "/videos/{}/analytics?values=cumulative&start_date={}&end_date={since}",
        ids.videos[old].0,
        ago(66)
    );
    let days = organization.get(&path).await.ok(200);
    let shown: Vec<_> =
        days.list("/data").iter().map(|day| (&day["view_count"], &day["saved_count"])).collect();
    let (last, gone) = shown.split_last().unwrap();
    assert_eq!(last, &(&json!(800), &json!(7)));
    assert!(gone.iter().all(|day| *day == (&Value::Null, &Value::Null)), "{gone:?}");
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
    let mut kept = [old, new].map(|video| (ids.videos[video].1.cast_unsigned(), 2, 1));
    kept.sort_unstable();
    assert_eq!(rows, kept, "the first day, which is empty, and the last");
    let report = verify::verify(stores, organization.id, false).await.unwrap();
    assert_eq!(report.differences, [], "{report:?}");

    // What is gone stays gone.
    let set =
        run(&organization, &["org", "set", &organization.id.to_string(), "--retention-days", "none"]).await;
    assert_eq!((&set["retention_days"], &set["history_since"]), (&Value::Null, &json!(since)));
}
