//! `tidemark verify` and `tidemark rebuild`: damage to the rollup is reported and repaired, and requests return the same
//! data during a rebuild.

use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{Days, NaiveDate};
use harness::{Organization, ProxiedApi, Stack, wait_until};
use serde_json::{Value, json};
use tidemark::app::Settings;
use tidemark::rollup::{rebuild, verify};
use tidemark::store::records::keys::NewKey;
use tidemark::store::records::organizations::OrganizationChange;
use uuid::Uuid;

use super::model::{Counts, History};

fn tidemark(organization: &Organization, arguments: &[&str]) -> Command {
    let mut command = organization.stack.connection.command();
    command.args(arguments).args(["--org", &organization.id.to_string()]);
    command
}

async fn run(organization: &Organization, arguments: &[&str]) -> Output {
    let mut command = tidemark(organization, arguments);
    tokio::task::spawn_blocking(move || command.output().expect("tidemark runs")).await.unwrap()
}

/// The exit code and the lines of a command without error output.
fn exit_and_lines(output: &Output) -> (Option<i32>, Vec<String>) {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (output.status.code(), text.lines().map(str::to_owned).collect())
}

/// An account with a post and an individually tracked post, observed from 2 to 6 March.
fn small_history() -> History {
    let noon = |number: u32| {
        let day = NaiveDate::from_ymd_opt(2026, 3, number).unwrap();
        day.and_hms_opt(12, 0, 0).unwrap().and_utc()
    };
    let views = |count: i64| -> Counts { std::array::from_fn(|n| (n == 0).then_some(count)) };
    let mut history = History::default();
    let account = history.account("instagram", "ann", None);
    history.follow(account, noon(2), Some(100));
    for (account, first) in [(Some(account), 40), (None, 7)] {
        let video =
            history.video("instagram", account, account.is_none(), NaiveDate::from_ymd_opt(2026, 3, 3));
        for number in 3..7 {
            history.observe(video, noon(number), views(first + 10 * i64::from(number - 3)));
        }
    }
    history
}

/// Writes changed copies of the organization's rollup rows.
async fn damage(organization: &Organization, replaced: &str, condition: &str) {
    damage_table(organization, "account_daily", replaced, condition).await;
}

async fn damage_table(organization: &Organization, table: &str, replaced: &str, condition: &str) {
    let statement = format!(
        "insert into {table} select * replace({replaced})
         from (select * from {table} final where org_id = {{org:UUID}} and {condition})"
    );
    let clickhouse = &organization.stack.databases.clickhouse;
    clickhouse.query_raw(&statement).param("org", organization.id).execute().await.unwrap();
}

/// The figures of a window around March, a new one on every call: cached responses would hide the damage.
async fn overview(organization: &Organization) -> Value {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let start = NaiveDate::from_ymd_opt(2026, 3, 1).unwrap() - Days::new(call % 300);
    let end = NaiveDate::from_ymd_opt(2026, 3, 31).unwrap() + Days::new(call / 300 % 200);
    let response = organization.get(&format!("/overview?start_date={start}&end_date={end}")).await.ok(200);
    response.at("/data").clone()
}

#[tokio::test]
async fn records_that_postgres_lacks_are_reported() {
    let organization = Stack::shared().organization().await;
    small_history().load(&organization).await;
    let clickhouse = &organization.stack.databases.clickhouse;
    let unknown = 1_u64 << 60;
    let extra = "00000000-0000-0000-0000-0000000000ee";
    for (table, condition, replaced) in [
        ("accounts", "true", format!("toUInt64({unknown}) as subject_id")),
        ("videos", "not is_tracked", format!("toUInt64({unknown}) as video_id, toUUID('{extra}') as id")),
    ] {
        let statement = format!(
            "insert into {table} select * replace({replaced}) from {table} final
             where org_id = {{org:UUID}} and {condition}"
        );
        clickhouse.query_raw(&statement).param("org", organization.id).execute().await.unwrap();
    }
    let (status, lines) = exit_and_lines(&run(&organization, &["verify"]).await);
    let expected = [
        format!(
            "subject {unknown}, which Postgres does not know: the table accounts of ClickHouse has it, Postgres does not"
        ),
        format!("video {extra}: the table videos of ClickHouse has it, Postgres does not"),
    ];
    assert_eq!((status, lines), (Some(1), expected.to_vec()));
}

#[tokio::test]
async fn damaged_rollup_is_reported_by_day_and_repaired() {
    let organization = Stack::shared().organization().await;
    let ids = small_history().load(&organization).await;
    let intact = overview(&organization).await;
    assert_eq!(intact["views"]["current"], json!(40 + 30 + 37));
    assert_eq!(exit_and_lines(&run(&organization, &["verify"]).await), (Some(0), vec![]));

    let (account, individual) = (ids.accounts[0], ids.videos[1]);
    let account_rows = "platform = 'instagram' and follower_gain is not null";
    let newer = "version + 1 as version";
    damage(
        &organization,
        &format!("view_gain + 1 as view_gain, {newer}"),
        &format!("date = '2026-03-03' and {account_rows}"),
    )
    .await;
    damage(
        &organization,
        &format!("1 as is_deleted, {newer}"),
        &format!("date = '2026-03-04' and {account_rows}"),
    )
    .await;
    damage(
        &organization,
        &format!("toDate('2026-03-20') as date, {newer}"),
        &format!("date = '2026-03-05' and {account_rows}"),
    )
    .await;
    // Higher than the version of any delivery.
    let highest = "18446744073709551615 as version";
    damage(
        &organization,
        &format!("view_base + 5 as view_base, {highest}"),
        &format!("subject_id = {}", individual.1),
    )
    .await;
    // The dimension table with the usernames.
    let statement =
        "insert into accounts select * replace('bob' as username, version + 1 as version) from accounts final
                     where org_id = {org:UUID}";
    let clickhouse = &organization.stack.databases.clickhouse;
    clickhouse.query_raw(statement).param("org", organization.id).execute().await.unwrap();

    let (status, mut lines) = exit_and_lines(&run(&organization, &["verify"]).await);
    lines.sort();
    let (ann, video) = (format!("account {account} (@ann on instagram)"), format!("video {}", individual.0));
    let mut expected = vec![
        format!("{ann}: username is bob in the table accounts of ClickHouse, ann in Postgres"),
        format!("{ann}, 2026-03-03: view_gain is 41 in the rollup, 40 by the snapshots"),
        format!(
            "{ann}, 2026-03-04: the rollup lacks the day, by the snapshots follower_gain is 0, view_gain is 10"
        ),
        format!(
            "{ann}, 2026-03-20: the rollup has the day, on which nothing was observed: follower_gain is 0, view_gain is 10"
        ),
    ];
    for (day, base) in [(3, 5), (4, 5), (5, 5), (6, 5)] {
        expected
            .push(format!("{video}, 2026-03-0{day}: view_base is {base} in the rollup, 0 by the snapshots"));
    }
    expected.sort();
    assert_eq!((status, lines), (Some(1), expected));

    let output = run(&organization, &["verify", "--json"]).await;
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!((&report["subjects"], report["differences"].as_array().unwrap().len()), (&json!(2), 8));
    let day =
        report["differences"].as_array().unwrap().iter().find(|found| found["date"] == "2026-03-03").unwrap();
    assert_eq!(
        (&day["kind"], &day["account_id"], &day["values"]),
        (&json!("day"), &json!(account), &json!({"view_gain": {"is": "41", "should_be": "40"}}))
    );

    let output = run(&organization, &["rebuild", "--json"]).await;
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), summary), (Some(0), json!({"organizations": 1, "subjects": 2})));
    assert_eq!(exit_and_lines(&run(&organization, &["verify"]).await), (Some(0), vec![]));
    assert_eq!(overview(&organization).await, intact);
}

#[tokio::test]
async fn damaged_rollup_of_videos_is_reported_and_repaired() {
    let organization = Stack::shared().organization().await;
    let ids = small_history().load(&organization).await;
    let (on_account, individual) = (ids.videos[0], ids.videos[1]);
    // A row that no delivery could replace, one that is missing, and one of another day.
    for (replaced, condition) in [
        ("view_gain + 1 as view_gain, 18446744073709551615 as version", "date = '2026-03-03'"),
        ("1 as is_deleted, version + 1 as version", "date = '2026-03-04'"),
    ] {
        let condition = format!("video_id = {} and {condition}", on_account.1);
        damage_table(&organization, "video_daily", replaced, &condition).await;
    }
    for replaced in ["toDate('2026-03-20') as date", "1 as is_deleted, version + 1 as version"] {
        let condition = format!("video_id = {} and date = '2026-03-05'", individual.1);
        damage_table(&organization, "video_daily", replaced, &condition).await;
    }
    let (status, mut lines) = exit_and_lines(&run(&organization, &["verify"]).await);
    lines.sort();
    let mut expected = [
        format!(
            "video {}: days is 3 in the rollup of videos, 4 by the snapshots; view_gain is 61 in the rollup of videos, \
             70 by the snapshots",
            on_account.0
        ),
        format!(
            "video {}: the rollup of videos has its gains on other days, or another platform",
            individual.0
        ),
    ];
    expected.sort();
    assert_eq!((status, lines), (Some(1), expected.to_vec()));
    assert_eq!(run(&organization, &["rebuild"]).await.status.code(), Some(0));
    assert_eq!(exit_and_lines(&run(&organization, &["verify"]).await), (Some(0), vec![]));
}

#[tokio::test]
async fn unknown_organization_is_an_error_message() {
    let mut organization = Stack::shared().organization().await;
    organization.id = uuid::Uuid::now_v7();
    for name in ["verify", "rebuild"] {
        let output = run(&organization, &[name]).await;
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(
            message.starts_with("error: no such organization: see `tidemark org list`"),
            "{name}: {message}"
        );
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{name}");
    }
}

/// A rebuild removes subjects missing in Postgres from the rollup and leaves their snapshots.
#[tokio::test]
async fn subject_missing_in_postgres_is_reported_and_removed() {
    let organization = Stack::shared().organization().await;
    let ids = small_history().load(&organization).await;
    let intact = overview(&organization).await;
    let (clickhouse, stray) =
        (&organization.stack.databases.clickhouse, 9_000_000_000_000_i64 + ids.videos[0].1);
    for table in ["video_snapshots", "account_daily"] {
        let statement = format!(
            "insert into {table} select * replace({stray} as subject_id)
             from (select * from {table} final where org_id = {{org:UUID}} and subject_id != {})",
            ids.videos[1].1
        );
        clickhouse.query_raw(&statement).param("org", organization.id).execute().await.unwrap();
    }
    // No delivery: a process with the rollup in memory does not read it again.
    let api = ProxiedApi::start(Settings { rollup_cache_bytes: 0, ..Settings::default() }).await;
    assert_ne!(overview(&api.client_for(&organization)).await, intact);
    let stores = &organization.stack.databases;
    let report = verify::verify(stores, organization.id, false).await.unwrap();
    let texts: Vec<_> = report.differences.iter().map(|found| found.text.as_str()).collect();
    let name = format!("subject {stray}, which Postgres does not know");
    assert!(texts.iter().all(|text| text.starts_with(&name)) && texts.len() == 6, "{texts:#?}");
    let deleted_meanwhile = Uuid::now_v7();
    let summary = rebuild::rebuild(stores, &[deleted_meanwhile, organization.id], false).await.unwrap();
    assert_eq!(summary.organizations, 1);
    assert_eq!(overview(&organization).await, intact);
    let report = verify::verify(stores, organization.id, false).await.unwrap();
    let remaining: Vec<_> = report.differences.iter().map(|found| found.text.as_str()).collect();
    let expected =
        format!("{name}: has 4 snapshots of video number {}, which does not belong to it", ids.videos[0].1);
    assert_eq!(remaining, [expected]);
}

#[tokio::test]
async fn rebuild_does_not_change_responses_even_if_killed() {
    let key = NewKey { rate_limit: Some(1_000_000), ..NewKey::named("unlimited") };
    let organization = Stack::shared().organization_with(OrganizationChange::default(), key).await;
    small_history().load(&organization).await;
    let intact = overview(&organization).await;
    let stores = organization.stack.databases.clone();
    let rebuilding = {
        let (stores, id) = (stores.clone(), organization.id);
        tokio::spawn(async move {
            for _ in 0..5 {
                rebuild::rebuild(&stores, &[id], false).await.unwrap();
            }
        })
    };
    let mut requests = 0;
    while !rebuilding.is_finished() || requests == 0 {
        assert_eq!(overview(&organization).await, intact);
        requests += 1;
    }
    rebuilding.await.unwrap();

    let mut child = tidemark(&organization, &["rebuild"]).stdout(Stdio::null()).spawn().unwrap();
    let position: i64 = sqlx::query_scalar("select max(position) from outbox where organization_id = $1")
        .bind(organization.id)
        .fetch_one(&stores.pg)
        .await
        .unwrap();
    wait_until("the rebuild writes to the outbox", || async {
        sqlx::query_scalar::<_, bool>(
            "select exists (select from outbox where organization_id = $1 and position > $2)",
        )
        .bind(organization.id)
        .bind(position)
        .fetch_one(&stores.pg)
        .await
        .unwrap()
        .then_some(())
    })
    .await;
    // It may have exited already.
    let _ = child.kill();
    child.wait().unwrap();
    organization.wait_applied().await;
    assert_eq!(overview(&organization).await, intact);
    assert_eq!(verify::verify(&stores, organization.id, false).await.unwrap().differences, []);
}
