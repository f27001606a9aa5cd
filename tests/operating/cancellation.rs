//! Cancelled database work, for example after a timeout, a disconnect or an aborted task: its connection is reused or closed.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use harness::{Organization, Stack, TcpProxy, wait_until};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgPool};
use tidemark::model::platform::Platform;
use tidemark::store::observations::{AccountRef, VideoOrigin, save_videos};
use tidemark::store::records::imports;
use tidemark::store::records::keys::{self, NewKey};
use tidemark::store::{Error, Write};
use uuid::Uuid;

use harness::relay::observed_post;

/// Runs work until it completes, or drops it when it is pending for the `polls`th time.
async fn cancel_after<T>(polls: usize, work: impl Future<Output = T>) -> Option<T> {
    let (mut work, mut left) = (pin!(work), polls);
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => {
            left -= 1;
            if left == 0 { Poll::Ready(None) } else { Poll::Pending }
        }
    })
    .await
}

/// A pool of one connection, which cancelled work and later work share.
struct SingleConnectionPool {
    organization: Organization,
    pg: PgPool,
    application_name: String,
}

impl SingleConnectionPool {
    async fn new() -> Self {
        let organization = Stack::shared().organization().await;
        let application_name = format!("cancellation {}", Uuid::now_v7());
        let server: PgConnectOptions = organization.stack.connection.database_url.parse().unwrap();
        let proxy = TcpProxy::start(server.get_host(), server.get_port()).await;
        let server = server.host("127.0.0.1").port(proxy.port);
        let options = PgPoolOptions::new().max_connections(1).acquire_timeout(Duration::from_secs(10));
        let pg = options.connect_with(server.application_name(&application_name)).await.unwrap();
        SingleConnectionPool { organization, pg, application_name }
    }

    /// Cancels work at each point where it is pending, one point per attempt, and checks the pool each time. Returns the
    /// number of the attempt that completed.
    async fn cancel_everywhere<S, T>(
        &self,
        mut prepare: impl AsyncFnMut() -> Result<S, Error>,
        mut work: impl AsyncFnMut(usize, S) -> Result<T, Error>,
    ) -> usize {
        for attempt in 1.. {
            let prepared = prepare().await.unwrap();
            let result = cancel_after(attempt, work(attempt, prepared)).await;
            let is_completed = result.is_some();
            // Drops the output, for example a transaction.
            result.transpose().unwrap_or_else(|error| panic!("attempt {attempt}: {error}"));
            self.assert_usable(attempt).await;
            if is_completed {
                return attempt;
            }
        }
        unreachable!("the work completes")
    }

    /// Asserts that queries get their own results, that writes are committed, and that no transaction is left open.
    async fn assert_usable(&self, attempt: usize) {
        for number in [3, 5, 7_i64] {
            let result = sqlx::query_scalar("select $1::bigint").bind(number).fetch_one(&self.pg).await;
            let result: i64 = result.unwrap_or_else(|error| panic!("{number} after {attempt}: {error}"));
            assert_eq!(result, number, "the result of another query after attempt {attempt}");
        }
        let new = NewKey::named(format!("after {attempt}"));
        let created = keys::create(&self.pg, self.organization.id, &new).await.unwrap().record;
        let other_pool = self.organization.pg();
        let listed = keys::list(other_pool, self.organization.id).await.unwrap();
        assert!(listed.iter().any(|key| key.id == created.id), "not committed after attempt {attempt}");
        wait_until("no transaction is left open", async || {
            let open = "select count(*) from pg_stat_activity
                        where application_name = $1 and state like 'idle in transaction%'";
            let open: i64 =
                sqlx::query_scalar(open).bind(&self.application_name).fetch_one(other_pool).await.unwrap();
            (open == 0).then_some(())
        })
        .await;
    }

    async fn create_account(&self) -> AccountRef {
        let mut write = Write::begin(self.organization.pg(), self.organization.id).await.unwrap();
        let names = [(Platform::Tiktok, "cancelled".to_owned())];
        let created =
            imports::find_or_create_accounts(&mut write, &names, &Default::default(), false, harness::now())
                .await
                .unwrap();
        write.commit().await.unwrap();
        created.into_values().next().unwrap()
    }

    /// Whether the posts of an attempt are saved: either all of them or none.
    async fn has_posts(&self, attempt: usize, posts: usize) -> bool {
        let saved = "select count(*) from videos where organization_id = $1 and external_id like $2";
        let saved: i64 = sqlx::query_scalar(saved)
            .bind(self.organization.id)
            .bind(format!("{attempt:03}%"))
            .fetch_one(self.organization.pg())
            .await
            .unwrap();
        assert!(saved == 0 || saved == posts as i64, "{saved} of {posts} are saved");
        saved > 0
    }
}

async fn no_preparation() -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn connection_survives_cancelled_statements() {
    let pool = SingleConnectionPool::new().await;
    let attempts = pool
        .cancel_everywhere(no_preparation, async |attempt, ()| {
            // A statement that the connection has not prepared, with a result that arrives in parts.
            let rows = format!("select n + {attempt} from generate_series(1, $1::bigint) n");
            let rows = sqlx::query_scalar(AssertSqlSafe(rows)).bind(20_000_i64).fetch_all(&pool.pg).await?;
            assert_eq!(rows.iter().sum::<i64>(), 200_010_000 + 20_000 * attempt as i64);
            Ok(())
        })
        .await;
    assert!(attempts > 3, "completed in attempt {attempts}");
}

#[tokio::test]
async fn connection_survives_cancelled_transaction_starts() {
    let pool = SingleConnectionPool::new().await;
    let begin = async || Write::begin(&pool.pg, pool.organization.id).await;
    let attempts = pool.cancel_everywhere(no_preparation, async |_, ()| begin().await).await;
    assert!(attempts > 2, "completed in attempt {attempts}");
}

/// Cancels transactions that save posts with long URLs, and asserts that each saves all of its posts or none.
async fn assert_cancelled_transactions_are_atomic(posts: usize, url_bytes: usize) {
    let pool = SingleConnectionPool::new().await;
    let (account, now) = (pool.create_account().await, harness::now());
    let url = "u".repeat(url_bytes);
    let begin = async || Write::begin(&pool.pg, pool.organization.id).await;
    let attempts = pool
        .cancel_everywhere(begin, async |attempt, mut write| {
            let observed = (0..posts).map(|n| {
                let external_id = format!("{attempt:03}{n:06}");
                let mut post = observed_post(VideoOrigin::Account(account), external_id, 10, now);
                post.latest.url.record(Some(url.clone()), now);
                post
            });
            save_videos(&mut write, now, observed.collect()).await?;
            write.commit().await
        })
        .await;
    assert!(attempts > 10, "completed in attempt {attempts}");
    for attempt in 1..attempts {
        pool.has_posts(attempt, posts).await;
    }
    assert!(pool.has_posts(attempts, posts).await);
    assert!(!pool.has_posts(1, posts).await, "the first attempt was not cancelled");
}

#[tokio::test]
async fn cancelled_transactions_are_atomic() {
    assert_cancelled_transactions_are_atomic(2, 10).await;
}

/// The posts exceed the connection's send buffer, so that some attempts are cancelled while they send.
#[tokio::test]
async fn transactions_cancelled_while_sending_are_atomic() {
    assert_cancelled_transactions_are_atomic(6, 1 << 20).await;
}

/// The copy waits for an uncommitted row of another transaction.
#[tokio::test]
async fn connection_survives_a_cancelled_copy_that_waits_for_a_lock() {
    let pool = SingleConnectionPool::new().await;
    let (id, other_pool, now) = (pool.organization.id, pool.organization.pg(), harness::now());
    let posts = || vec![observed_post(VideoOrigin::Individual { is_active: false }, "1".to_owned(), 10, now)];
    let mut blocking = Write::begin(other_pool, id).await.unwrap();
    save_videos(&mut blocking, now, posts()).await.unwrap();
    let mut write = Write::begin(&pool.pg, id).await.unwrap();
    let waiting = tokio::spawn({
        let posts = posts();
        async move { save_videos(&mut write, now, posts).await.map(|_| ()) }
    });
    wait_until("the copy waits for the other transaction", async || {
        let waits = "select exists (select from pg_stat_activity
                     where application_name = $1 and wait_event_type = 'Lock' and query like 'copy%')";
        let waits: bool =
            sqlx::query_scalar(waits).bind(&pool.application_name).fetch_one(other_pool).await.unwrap();
        waits.then_some(())
    })
    .await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    drop(blocking);
    pool.assert_usable(1).await;
    let mut write = Write::begin(&pool.pg, id).await.unwrap();
    save_videos(&mut write, now, posts()).await.unwrap();
    write.commit().await.unwrap();
}
