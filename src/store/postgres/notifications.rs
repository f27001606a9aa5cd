//! Wakes the loops of all processes that look for work, when something is committed for which they wait.
//!
//! `NOTIFY` holds a lock of the whole server until its transaction is on disk. So it is sent after the transaction of a change,
//! in one of its own that does not wait for the disk. If a process is killed between them, no notification is sent, so loops also
//! look at intervals. Those of a process that does not listen poll.

use std::convert::Infallible;
use std::sync::LazyLock;
use std::time::Duration;

use sqlx::postgres::PgListener;
use sqlx::{Executor, PgExecutor, PgPool};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::with_timeout;
use crate::store::Error;

const CHANNEL: &str = "tidemark";
/// How long a loop waits without a notification.
const MAX_PAUSE: Duration = Duration::from_secs(5);
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// How often the connection of a process that hears nothing is checked.
const PING_INTERVAL: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// What loops wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// Units of work, and other changes that are written.
    Writes,
    /// What the relay has delivered.
    Deliveries,
    /// Messages of webhooks.
    Messages,
}

impl Topic {
    const ALL: [Topic; 3] = [Topic::Writes, Topic::Deliveries, Topic::Messages];

    const fn as_str(self) -> &'static str {
        match self {
            Topic::Writes => "writes",
            Topic::Deliveries => "deliveries",
            Topic::Messages => "messages",
        }
    }
}

/// What this process has heard.
#[derive(Debug, Clone, Copy, Default)]
struct Heard {
    is_listening: bool,
    /// The number of notifications of each topic.
    counts: [u64; Topic::ALL.len()],
}

impl Heard {
    fn count(&self, topics: &[Topic]) -> u64 {
        topics.iter().map(|topic| self.counts[*topic as usize]).sum()
    }
}

static HEARD: LazyLock<watch::Sender<Heard>> = LazyLock::new(watch::Sender::default);

/// Notifies the loops of all processes.
pub(in crate::store) async fn send(pg: impl PgExecutor<'_>, topic: Topic) -> Result<(), sqlx::Error> {
    sqlx::query("select set_config('synchronous_commit', 'off', true), pg_notify($1, $2)")
        .bind(CHANNEL)
        .bind(topic.as_str())
        .execute(pg)
        .await
        .map(drop)
}

/// Notifies the loops of this process.
pub(in crate::store) fn wake(topic: Topic) {
    HEARD.send_modify(|heard| heard.counts[topic as usize] += 1);
}

/// Listens until it is stopped. The pool is for this alone.
pub async fn listen(pg: PgPool, stop: CancellationToken) {
    let listening = async {
        loop {
            let Err(error) = hear(&pg).await;
            HEARD.send_modify(|heard| heard.is_listening = false);
            tracing::debug!(%error, "cannot listen for notifications, polling");
            tokio::time::sleep(RETRY_DELAY).await;
        }
    };
    let _: Option<Infallible> = stop.run_until_cancelled(listening).await;
    HEARD.send_modify(|heard| heard.is_listening = false);
}

/// Listens as long as the connection works.
async fn hear(pg: &PgPool) -> Result<Infallible, Error> {
    let mut listener = PgListener::connect_with(pg).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    HEARD.send_modify(|heard| heard.is_listening = true);
    // What was sent before was not heard.
    Topic::ALL.into_iter().for_each(wake);
    loop {
        match tokio::time::timeout(PING_INTERVAL, listener.try_recv()).await {
            Ok(received) => {
                let Some(notification) = received? else { return Err(Error::Postgres(connection_lost())) };
                let is_topic = |topic: &Topic| topic.as_str() == notification.payload();
                Topic::ALL.into_iter().filter(is_topic).for_each(wake);
            }
            Err(_) => _ = with_timeout(PING_TIMEOUT, (&mut listener).execute("select 1")).await?,
        }
    }
}

fn connection_lost() -> sqlx::Error {
    sqlx::Error::Io(std::io::ErrorKind::ConnectionAborted.into())
}

/// The pauses of a loop that looks for work.
pub struct Subscription {
    topics: &'static [Topic],
    heard: watch::Receiver<Heard>,
    /// The number of notifications before the loop looked last.
    seen: u64,
}

/// Creates the pauses of a loop, which looks for work once it has them.
pub fn subscribe(topics: &'static [Topic]) -> Subscription {
    let heard = HEARD.subscribe();
    let seen = heard.borrow().count(topics);
    Subscription { topics, heard, seen }
}

impl Subscription {
    /// Waits for the shortest pause and, unless work is left, for a notification since the loop looked last, or for a few seconds.
    pub async fn wait(&mut self, shortest: Duration, is_work_left: bool) {
        self.wait_or(shortest, is_work_left, std::future::pending()).await;
    }

    /// Like [`Subscription::wait`]; something else also ends the pause, but not the shortest.
    pub async fn wait_or(&mut self, shortest: Duration, is_work_left: bool, ended: impl Future<Output = ()>) {
        tokio::time::sleep(shortest).await;
        if !is_work_left {
            let (topics, seen) = (self.topics, self.seen);
            let ends_pause = |heard: &Heard| !heard.is_listening || heard.count(topics) != seen;
            let notified = async { drop(self.heard.wait_for(ends_pause).await) };
            tokio::select! {
                () = notified => {}
                () = ended => {}
                () = tokio::time::sleep(MAX_PAUSE) => {}
            }
        }
        self.seen = self.heard.borrow().count(self.topics);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a pause of this length ended before the one between notifications.
    async fn is_over(subscription: &mut Subscription, pause: Duration) -> bool {
        tokio::time::timeout(pause, subscription.wait(Duration::ZERO, false)).await.is_ok()
    }

    #[tokio::test]
    async fn pause_ends_with_a_notification_or_while_the_process_does_not_listen() {
        const TICK: Duration = Duration::from_millis(50);
        let mut writes = subscribe(&[Topic::Writes]);
        assert!(is_over(&mut writes, MAX_PAUSE).await, "loops poll");
        HEARD.send_modify(|heard| heard.is_listening = true);
        wake(Topic::Deliveries);
        assert!(!is_over(&mut writes, TICK).await);
        wake(Topic::Writes);
        assert!(is_over(&mut writes, MAX_PAUSE / 2).await);
        assert!(!is_over(&mut writes, TICK).await, "it has looked since");
        assert!(tokio::time::timeout(MAX_PAUSE / 2, writes.wait(TICK, true)).await.is_ok(), "work is left");
        // One that comes while the loop looks.
        wake(Topic::Writes);
        assert!(is_over(&mut writes, MAX_PAUSE / 2).await);
        HEARD.send_modify(|heard| heard.is_listening = false);
        assert!(is_over(&mut writes, MAX_PAUSE / 2).await);
    }
}
