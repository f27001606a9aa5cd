//! Processes refuse a server whose release is too old, and warn about one that is not tested.

use harness::{ClickhouseProxy, IsolatedStores};
use sqlx::AssertSqlSafe;
use tidemark::store::migrate::supported_releases::{CLICKHOUSE, POSTGRES, SupportedReleases};

use super::doctor::doctor_findings;
use super::migrations::{run, run_failing};

/// Asserts that doctor has this finding about the release of a server.
#[track_caller]
fn assert_finding(stores: &IsolatedStores, check: &str, status: &str, message: &str) {
    let found = doctor_findings(stores);
    let matches = |finding: &&serde_json::Value| {
        let text = finding["message"].as_str().unwrap();
        finding["check"] == check && finding["status"] == status && text.ends_with(message)
    };
    assert!(found.iter().any(|finding| matches(&finding)), "no {status} {message:?} in {found:#?}");
}

#[track_caller]
fn assert_refused(stores: &IsolatedStores, supported: SupportedReleases, version: &str, check: &str) {
    let error = supported.check(version).unwrap_err().to_string();
    assert!(error.contains("is too old: upgrade it to "), "{error}");
    for line in run_failing(stores, &["migrate", "serve", "track"]) {
        assert_eq!(line, format!("error: {error}"));
    }
    assert_finding(stores, check, "fail", &error);
}

#[track_caller]
fn assert_warned_about(stores: &IsolatedStores, supported: SupportedReleases, version: &str, check: &str) {
    let error = supported.check(version).unwrap_err().to_string();
    assert!(error.contains(" is untested: use "), "{error}");
    let (status, log) = run(stores, &["migrate"]);
    assert_eq!(status, Some(0), "{log}");
    let (api, _) = stores.serve(&[]);
    for log in [log, api.log()] {
        assert_eq!(log.matches(&error).count(), 1, "{log}");
    }
    assert_finding(stores, check, "warn", &error);
}

#[tokio::test(flavor = "multi_thread")]
async fn old_clickhouse_is_refused_and_an_untested_one_reported() {
    let mut stores = IsolatedStores::create().await;
    let proxy = ClickhouseProxy::start(&stores.connection.clickhouse_url).await;
    stores.connection.clickhouse_url.clone_from(&proxy.url);
    stores.environment.push(("TIDEMARK_CLICKHOUSE_URL", proxy.url.clone()));
    proxy.replace("version()", "'24.12.7'");
    assert_refused(&stores, CLICKHOUSE, "24.12.7", "clickhouse");
    proxy.replace("version()", "'99.1.12'");
    assert_warned_about(&stores, CLICKHOUSE, "99.1.12", "clickhouse");
    proxy.replace("version()", "'unknown'");
    assert_warned_about(&stores, CLICKHOUSE, "unknown", "clickhouse");
}

/// Has Postgres report a version.
async fn report_version(stores: &IsolatedStores, version: &str) {
    let statements = format!(
        "create or replace function public.current_setting(name text) returns text language sql as
             $$ select case name when 'server_version' then '{version}' else pg_catalog.current_setting(name) end $$;
         do $$ begin
             execute format('alter database %I set search_path = public, pg_catalog', current_database());
         end $$"
    );
    sqlx::raw_sql(AssertSqlSafe(statements)).execute(stores.pg()).await.unwrap();
}

#[tokio::test]
async fn old_postgres_is_refused_and_an_untested_one_reported() {
    let stores = IsolatedStores::create().await;
    report_version(&stores, "14.22 (Debian 14.22-1)").await;
    assert_refused(&stores, POSTGRES, "14.22 (Debian 14.22-1)", "postgres");
    report_version(&stores, "99devel").await;
    assert_warned_about(&stores, POSTGRES, "99devel", "postgres");
}
