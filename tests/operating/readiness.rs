//! `/livez` and `/readyz`: liveness and readiness of the API and the tracker.

use harness::{IsolatedStores, Process, TcpProxy, create_organization, http_client, wait_until};
use tidemark::store::records::organizations::OrganizationChange;

async fn wait_until_ready(process: &Process) {
    wait_until("the process is ready", async || (process.page("/readyz").await.0 == 200).then_some(())).await;
    assert_eq!(process.page("/livez").await, (200, "ok\n".to_owned()));
}

async fn assert_shows_connection_pools(api: &Process) {
    let (_, page) = api.page("/metrics").await;
    for (metric, pool) in [
        ("count", "postgres"),
        ("count", "clickhouse"),
        ("max", "postgres"),
        ("max", "clickhouse"),
        ("pending_requests", "clickhouse"),
    ] {
        let expected = format!("\ndb_client_connection_{metric}{{db_client_connection_pool_name=\"{pool}\"");
        assert!(page.contains(&expected), "{expected} is not in {page}");
    }
}

#[tokio::test]
async fn connections_are_open_when_the_api_is_ready() {
    const CONNECTIONS: i64 = 12;
    let databases = IsolatedStores::create_postgres().await;
    let mut url: url::Url = databases.connection.database_url.parse().unwrap();
    url.query_pairs_mut().append_pair("application_name", "ready");
    let (_api, _base) = databases.serve(&[
        ("TIDEMARK_DATABASE_URL", url.to_string()),
        ("TIDEMARK_DATABASE_CONNECTIONS", CONNECTIONS.to_string()),
    ]);
    let open: i64 = sqlx::query_scalar(
        "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'ready'",
    )
    .fetch_one(databases.pg())
    .await
    .unwrap();
    assert!(open >= CONNECTIONS, "{open} connections");
}

#[tokio::test]
async fn processes_without_postgres_are_live_but_not_ready() {
    let databases = IsolatedStores::create().await;
    let mut url: url::Url = databases.connection.database_url.parse().unwrap();
    let proxy = TcpProxy::start(url.host_str().unwrap(), url.port().unwrap()).await;
    url.set_port(Some(proxy.port)).unwrap();
    let proxied = [("TIDEMARK_DATABASE_URL", url.to_string())];
    let (api, base) = databases.serve(&proxied);
    let track = databases.track(&proxied);
    let health = async || http_client().get(format!("{base}/health")).send().await.unwrap().status().as_u16();
    wait_until_ready(&api).await;
    wait_until_ready(&track).await;
    assert_eq!(health().await, 200);
    assert_shows_connection_pools(&api).await;

    let (_, key) = create_organization(databases.pg(), OrganizationChange::default()).await;
    proxy.close();
    let accounts = http_client().get(format!("{base}/accounts")).bearer_auth(&key).send();
    let (api_ready, track_ready, health_status, accounts) =
        tokio::join!(api.page("/readyz"), track.page("/readyz"), health(), accounts);
    for (status, text) in [api_ready, track_ready] {
        assert_eq!(status, 503);
        assert!(text.contains("postgres does not answer"), "{text}");
    }
    for process in [&api, &track] {
        assert_eq!(process.page("/livez").await.0, 200, "a restart would not help");
    }
    assert_eq!(health_status, 503);
    assert_eq!(accounts.unwrap().status(), 503);
    let (_, page) = api.page("/metrics").await;
    let timeouts = "\ndb_client_connection_timeouts_total{db_client_connection_pool_name=\"postgres\"";
    assert!(page.contains(timeouts), "{page}");
    proxy.open();
    wait_until_ready(&api).await;
    wait_until_ready(&track).await;
}
