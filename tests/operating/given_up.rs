//! What is given up in the middle of its work in Postgres, because its time is over, its client left or its task was
//! aborted: the connection that it had serves whoever comes next, or is closed.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use chrono::Utc;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgPool};
use tidemark::model::platform::Platform;
use tidemark::store::observations::{AccountRef, VideoOrigin, save_videos};
use tidemark::store::records::imports;
use tidemark::store::records::keys::{self, NewKey};
use tidemark::store::{Error, Write};
use uuid::Uuid;

use crate::harness::{Organization, Stack, TcpProxy, wait_until};
use crate::setup::observed_post;

/// Works until it is done or has waited so many times for somebody else.
async fn given_up<T>(waits: usize, work: impl Future<Output = T>) -> Option<T> {
    let (mut work, mut left) = (pin!(work), waits);
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => {
            left -= 1;
            if left == 0 { Poll::Ready(None) } else { Poll::Pending }
        }
    })
    .await
}

/// A pool of one connection, which everybody gets after everybody else.
struct Single {
    organization: Organization,
    pg: PgPool,
    name: String,
}

impl Single {
    async fn new() -> Self {
        let organization = Stack::shared().organization().await;
        let name = format!("given up {}", Uuid::now_v7());
        let server: PgConnectOptions = organization.stack.connection.database_url.parse().unwrap();
        let line = TcpProxy::start(server.get_host(), server.get_port()).await;
        let server = server.host("127.0.0.1").port(line.port);
        let options = PgPoolOptions::new().max_connections(1).acquire_timeout(Duration::from_secs(10));
        let pg = options.connect_with(server.application_name(&name)).await.unwrap();
        Single { organization, pg, name }
    }

    /// Gives work up wherever it waits after its beginning, at one place after the other, and looks each time how the
    /// next ones fare. Says how often it waits.
    async fn gives_up<B, T>(
        &self,
        mut begin: impl AsyncFnMut() -> Result<B, Error>,
        mut work: impl AsyncFnMut(usize, B) -> Result<T, Error>,
    ) -> usize {
        for waits in 1.. {
            let begun = begin().await.unwrap();
            let done = given_up(waits, work(waits, begun)).await;
            let is_done = done.is_some();
            // What it made, a unit of work perhaps, is dropped here.
            done.transpose().unwrap_or_else(|error| panic!("after {waits}: {error}"));
            self.serves_on(waits).await;
            if is_done {
                return waits;
            }
        }
        unreachable!("it is done some time")
    }

    /// Whoever comes next gets the answers to its own questions, and everybody sees what it changed.
    async fn serves_on(&self, waits: usize) {
        for asked in [3, 5, 7_i64] {
            let answer = sqlx::query_scalar("select $1::bigint").bind(asked).fetch_one(&self.pg).await;
            let answer: i64 = answer.unwrap_or_else(|error| panic!("{asked} after {waits}: {error}"));
            assert_eq!(answer, asked, "another question's answer after {waits}");
        }
        let new = NewKey::named(format!("after {waits}"));
        let made = keys::create(&self.pg, self.organization.id, &new).await.unwrap().record;
        let others = self.organization.pg();
        let seen = keys::list(others, self.organization.id).await.unwrap();
        assert!(seen.iter().any(|key| key.id == made.id), "nobody sees what is changed after {waits}");
        wait_until("no transaction is left open", async || {
            let open = "select count(*) from pg_stat_activity
                        where application_name = $1 and state like 'idle in transaction%'";
            let open: i64 = sqlx::query_scalar(open).bind(&self.name).fetch_one(others).await.unwrap();
            (open == 0).then_some(())
        })
        .await;
    }

    async fn account(&self) -> AccountRef {
        let pg = self.organization.pg();
        let mut write = Write::begin(pg, self.organization.id).await.unwrap();
        let names = [(Platform::Tiktok, "given.up".to_owned())];
        let made = imports::find_or_create_accounts(&mut write, &names, false, Utc::now()).await.unwrap();
        write.commit().await.unwrap();
        made.into_values().next().unwrap()
    }

    /// Whether the posts of an attempt are there: all of them or none.
    async fn has(&self, attempt: usize, posts: usize) -> bool {
        let found = "select count(*) from videos where organization_id = $1 and external_id like $2";
        let found: i64 = sqlx::query_scalar(found)
            .bind(self.organization.id)
            .bind(format!("{attempt:03}%"))
            .fetch_one(self.organization.pg())
            .await
            .unwrap();
        assert!(found == 0 || found == posts as i64, "{found} of {posts} are there");
        found > 0
    }
}

async fn nothing() -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn statements_are_given_up_wherever_they_wait() {
    let single = Single::new().await;
    let waits = single
        .gives_up(nothing, async |attempt, ()| {
            // One that the connection does not know yet, and whose answer does not come at once.
            let rows = format!("select n + {attempt} from generate_series(1, $1::bigint) n");
            let rows = sqlx::query_scalar(AssertSqlSafe(rows)).bind(20_000_i64).fetch_all(&single.pg).await?;
            assert_eq!(rows.iter().sum::<i64>(), 200_010_000 + 20_000 * attempt as i64);
            Ok(())
        })
        .await;
    assert!(waits > 3, "it only waited {waits} times");
}

#[tokio::test]
async fn units_of_work_are_given_up_while_they_begin() {
    let single = Single::new().await;
    let begin = async || Write::begin(&single.pg, single.organization.id).await;
    let waits = single.gives_up(nothing, async |_, ()| begin().await).await;
    assert!(waits > 2, "it only waited {waits} times");
}

/// Units of work that make posts of so many bytes are wholly there or not at all, wherever they are given up.
async fn making_posts(posts: usize, bytes: usize) {
    let single = Single::new().await;
    let (account, now) = (single.account().await, Utc::now());
    let url = "u".repeat(bytes);
    let begin = async || Write::begin(&single.pg, single.organization.id).await;
    let waits = single
        .gives_up(begin, async |attempt, mut write| {
            let made = (0..posts).map(|n| {
                let external_id = format!("{attempt:03}{n:06}");
                let mut made = observed_post(VideoOrigin::Account(account), external_id, 10, now);
                made.latest.url.record(Some(url.clone()), now);
                made
            });
            save_videos(&mut write, now, made.collect()).await?;
            write.commit().await
        })
        .await;
    assert!(waits > 10, "it only waited {waits} times");
    for attempt in 1..waits {
        single.has(attempt, posts).await;
    }
    assert!(single.has(waits, posts).await);
    assert!(!single.has(1, posts).await, "it was not given up");
}

#[tokio::test]
async fn units_of_work_are_given_up_wherever_they_wait() {
    making_posts(2, 10).await;
}

/// More than the connection takes at once, so that they are given up in the middle of what they send, too.
#[tokio::test]
async fn units_of_work_are_given_up_while_they_send() {
    making_posts(6, 1 << 20).await;
}

/// In the middle of a copy whose row another unit of work has made and not committed yet.
#[tokio::test]
async fn a_unit_of_work_is_given_up_while_another_is_in_its_way() {
    let single = Single::new().await;
    let (id, others, now) = (single.organization.id, single.organization.pg(), Utc::now());
    let made = || vec![observed_post(VideoOrigin::Individual { is_active: false }, "1".to_owned(), 10, now)];
    let mut other = Write::begin(others, id).await.unwrap();
    save_videos(&mut other, now, made()).await.unwrap();
    let mut write = Write::begin(&single.pg, id).await.unwrap();
    let waiting = tokio::spawn({
        let made = made();
        async move { save_videos(&mut write, now, made).await.map(|_| ()) }
    });
    wait_until("it waits for the other", async || {
        let waits = "select exists (select from pg_stat_activity
                     where application_name = $1 and wait_event_type = 'Lock' and query like 'copy%')";
        let waits: bool = sqlx::query_scalar(waits).bind(&single.name).fetch_one(others).await.unwrap();
        waits.then_some(())
    })
    .await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    drop(other);
    single.serves_on(1).await;
    let mut write = Write::begin(&single.pg, id).await.unwrap();
    save_videos(&mut write, now, made()).await.unwrap();
    write.commit().await.unwrap();
}
