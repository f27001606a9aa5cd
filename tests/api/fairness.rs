//! Connections to Postgres while one organization's requests take long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use harness::{IsolatedStores, Organization, ProxiedApi, wait_until};
use serde_json::json;
use sqlx::postgres::PgPoolOptions;
use tidemark::app::Settings;
use tidemark::store::fair_limiter::FairLimiter;
use tokio::task::JoinHandle;

/// An API with few connections, and two organizations: one that sends many requests, and another.
struct Contention {
    stores: IsolatedStores,
    api: ProxiedApi,
    busy: Organization,
    other: Organization,
}

impl Contention {
    async fn start() -> Self {
        let stores = IsolatedStores::create_postgres().await;
        let options = stores.pg().connect_options().as_ref().clone();
        let pg = PgPoolOptions::new().max_connections(4).connect_lazy_with(options);
        let api = ProxiedApi::start_on(stores.connection.clone(), Settings::default(), |databases| {
            databases.pg = pg;
        })
        .await;
        let (busy, other) = (stores.unlimited_organization().await, stores.organization().await);
        let (busy, other) = (api.client_for(&busy), api.client_for(&other));
        for client in [&busy, &other] {
            client.get("/whoami").await.ok(200);
        }
        Contention { stores, api, busy, other }
    }

    /// Waits until the busy organization has its share of the permits and `waiting` of its requests wait for one.
    async fn wait_loaded(&self, limiter: impl Fn(&ProxiedApi) -> &FairLimiter, waiting: usize) {
        wait_until("the busy organization's requests wait", async || {
            let (used, queued) = limiter(&self.api).load();
            (used == 2 && queued >= waiting).then_some(())
        })
        .await;
    }

    /// A list, a write, and the authentication of a key that is not cached.
    async fn assert_serves_others(&self) {
        self.other.get("/creators").await.ok(200);
        self.other.post("/creators", json!({"name": "one"})).await.ok(201);
        let new = self.stores.organization().await;
        self.api.client_for(&new).get("/creators").await.ok(200);
    }

    async fn assert_idle(&self) {
        let idle = async || {
            let loads = [self.api.app.reads.load(), self.api.app.writes.load()];
            (loads == [(0, 0); 2]).then_some(())
        };
        wait_until("all permits are returned", idle).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_one_organization_leave_connections_to_others() {
    const REQUESTS: usize = 600;
    let contention = Contention::start().await;
    // Lists of videos wait until this ends.
    let mut holder = contention.stores.pg().begin().await.unwrap();
    sqlx::query("lock table videos in access exclusive mode").execute(&mut *holder).await.unwrap();
    let ended = Arc::new(AtomicBool::new(false));
    let paths = ["/content?q=x&include_total=true", "/videos", "/account-videos", "/content/top?q=x"];
    let reads = paths.into_iter().cycle().take(REQUESTS).map(|path| {
        let (busy, ended) = (contention.busy.clone(), Arc::clone(&ended));
        tokio::spawn(async move {
            // Those without a permit end after three seconds, and are sent again.
            while !ended.load(Ordering::Relaxed) {
                let status = busy.get(path).await.status;
                assert!([200, 503].contains(&status), "{path} {status}");
            }
        })
    });
    let reads: Vec<JoinHandle<()>> = reads.collect();
    contention.wait_loaded(|api| &api.app.reads, REQUESTS / 2).await;
    contention.assert_serves_others().await;
    contention.busy.post("/creators", json!({"name": "one"})).await.ok(201);

    ended.store(true, Ordering::Relaxed);
    holder.rollback().await.unwrap();
    join_all(reads).await.into_iter().for_each(Result::unwrap);
    contention.assert_idle().await;
}

#[tokio::test]
async fn writes_of_one_organization_leave_connections_to_others() {
    let contention = Contention::start().await;
    // Writes of the organization wait until this ends.
    let mut holder = contention.stores.pg().begin().await.unwrap();
    sqlx::query("select from organizations where id = $1 for update")
        .bind(contention.busy.id)
        .execute(&mut *holder)
        .await
        .unwrap();
    let writes = (0..20).map(|number| {
        let busy = contention.busy.clone();
        tokio::spawn(async move { busy.post("/creators", json!({"name": number.to_string()})).await.status })
    });
    let writes: Vec<_> = writes.collect();
    contention.wait_loaded(|api| &api.app.writes, 18).await;
    contention.assert_serves_others().await;

    holder.rollback().await.unwrap();
    for status in join_all(writes).await {
        assert!([201, 503].contains(&status.unwrap()));
    }
    contention.assert_idle().await;
}
