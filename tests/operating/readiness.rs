//! `/livez` and `/readyz`: whether a process should be started again, and whether it should be given work.

use std::net::SocketAddr;

use tidemark::store::records::organizations::OrganizationChange;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::harness::databases::Databases;
use crate::harness::{client, eventually, tenant};

/// A way to Postgres that can be closed and opened again.
pub(crate) struct Gate {
    here: SocketAddr,
    open: watch::Sender<bool>,
}

impl Gate {
    /// The way to what the URL of a database names, and that URL with the way in it.
    pub(crate) async fn to(mut url: url::Url) -> (Self, url::Url) {
        let there = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gate = Gate { here: listener.local_addr().unwrap(), open: watch::Sender::new(true) };
        let open = gate.open.subscribe();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, there.clone(), open.clone()));
            }
        });
        url.set_port(Some(gate.here.port())).unwrap();
        (gate, url)
    }

    /// Cuts everybody off. Who comes from now on waits in front of it.
    pub(crate) fn close(&self) {
        self.open.send_replace(false);
    }

    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }
}

async fn pass(mut client: TcpStream, there: String, mut open: watch::Receiver<bool>) {
    let mut closed = open.clone();
    let closed = async { drop(closed.wait_for(|open| !*open).await) };
    let _ = open.wait_for(|open| *open).await;
    let mut server = TcpStream::connect(&there).await.unwrap();
    tokio::select! {
        // Either side may go at any time.
        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
        () = closed => {}
    }
}

#[tokio::test]
async fn without_postgres_a_process_lives_and_is_not_ready() {
    let databases = Databases::fresh("readiness").await;
    let (_, url) = &databases.variables[0];
    let (gate, url) = Gate::to(url.parse().unwrap()).await;
    let through = [("TIDEMARK_DATABASE_URL", url.to_string())];
    let (api, base) = databases.serve(&through);
    let track = databases.track(&through);
    let health = async || client().get(format!("{base}/health")).send().await.unwrap().status().as_u16();
    let ready = async |process: &crate::harness::databases::Process| {
        eventually("it is ready", async || (process.page("/readyz").await.0 == 200).then_some(())).await;
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

    let (_, key) = tenant(&databases.pg, OrganizationChange::default()).await;
    gate.close();
    let asked = client().get(format!("{base}/accounts")).bearer_auth(&key).send();
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
    gate.open();
    ready(&api).await;
    ready(&track).await;
}
