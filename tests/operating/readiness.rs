//! `/livez` and `/readyz`: whether a process should be started again, and whether it should be given work.

use tidemark::store::records::organizations::OrganizationChange;

use crate::harness::{IsolatedStores, TcpProxy, create_organization, http_client, wait_until};

#[tokio::test]
async fn without_postgres_a_process_lives_and_is_not_ready() {
    let databases = IsolatedStores::create().await;
    let mut url: url::Url = databases.connection.database_url.parse().unwrap();
    let proxy = TcpProxy::start(url.host_str().unwrap(), url.port().unwrap()).await;
    url.set_port(Some(proxy.port)).unwrap();
    let through = [("TIDEMARK_DATABASE_URL", url.to_string())];
    let (api, base) = databases.serve(&through);
    let track = databases.track(&through);
    let health = async || http_client().get(format!("{base}/health")).send().await.unwrap().status().as_u16();
    let ready = async |process: &crate::harness::Process| {
        wait_until("it is ready", async || (process.page("/readyz").await.0 == 200).then_some(())).await;
        assert_eq!(process.page("/livez").await, (200, "ok\n".to_owned()));
    };
    ready(&api).await;
    ready(&track).await;
    assert_eq!(health().await, 200);

    let metrics = async || api.page("/metrics").await.1;
    let page = metrics().await;
    for (metric, pool) in [
        ("count", "postgres"),
        ("count", "clickhouse"),
        ("max", "postgres"),
        ("max", "clickhouse"),
        ("pending_requests", "clickhouse"),
    ] {
        let shown = format!("\ndb_client_connection_{metric}{{db_client_connection_pool_name=\"{pool}\"");
        assert!(page.contains(&shown), "{shown} is not in {page}");
    }

    let (_, key) = create_organization(databases.pg(), OrganizationChange::default()).await;
    proxy.close();
    let asked = http_client().get(format!("{base}/accounts")).bearer_auth(&key).send();
    let (of_api, of_track, healthy, answer) =
        tokio::join!(api.page("/readyz"), track.page("/readyz"), health(), asked);
    for (status, text) in [of_api, of_track] {
        assert_eq!(status, 503);
        assert!(text.contains("postgres does not answer"), "{text}");
    }
    for process in [&api, &track] {
        assert_eq!(process.page("/livez").await.0, 200, "starting it again would help nobody");
    }
    assert_eq!(healthy, 503);
    assert_eq!(answer.unwrap().status(), 503);
    let page = metrics().await;
    let gave_up = "\ndb_client_connection_timeouts_total{db_client_connection_pool_name=\"postgres\"";
    assert!(page.contains(gave_up), "{page}");
    proxy.open();
    ready(&api).await;
    ready(&track).await;
}
