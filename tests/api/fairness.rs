//! Connections to Postgres while one organization's reads take long.

use futures_util::future::join_all;
use harness::{IsolatedStores, ProxiedApi, wait_until};
use serde_json::json;
use sqlx::postgres::PgPoolOptions;
use tidemark::app::Settings;

#[tokio::test]
async fn reads_of_one_organization_leave_connections_to_others() {
    let stores = IsolatedStores::create_postgres().await;
    let options = stores.pg().connect_options().as_ref().clone();
    let pg = PgPoolOptions::new().max_connections(4).connect_lazy_with(options);
    let api = ProxiedApi::start_on(stores.connection.clone(), Settings::default(), |databases| {
        databases.pg = pg;
    })
    .await;
    let (busy, other) = (stores.organization().await, stores.organization().await);
    let (busy, other) = (api.client_for(&busy), api.client_for(&other));
    for client in [&busy, &other] {
        client.get("/whoami").await.ok(200);
    }
    // Lists of videos wait until this ends.
    let mut holder = stores.pg().begin().await.unwrap();
    sqlx::query("lock table videos in access exclusive mode").execute(&mut *holder).await.unwrap();
    let paths = ["/content?q=x&include_total=true", "/videos", "/account-videos"];
    let reads = paths.into_iter().cycle().take(20).map(|path| {
        let busy = busy.clone();
        tokio::spawn(async move { busy.get(path).await.status })
    });
    let reads: Vec<_> = reads.collect();
    wait_until("the busy organization's reads wait", async || {
        (api.app.reads.load() == (2, 18)).then_some(())
    })
    .await;

    // A list, a write, and the authentication of a key that is not cached.
    other.get("/creators").await.ok(200);
    other.post("/creators", json!({"name": "one"})).await.ok(201);
    let new = stores.organization().await;
    api.client_for(&new).get("/creators").await.ok(200);
    busy.post("/creators", json!({"name": "one"})).await.ok(201);
    holder.rollback().await.unwrap();
    for status in join_all(reads).await {
        // Those without a permit end after three seconds.
        assert!([200, 503].contains(&status.unwrap()));
    }
    assert_eq!(api.app.reads.load(), (0, 0));
}
