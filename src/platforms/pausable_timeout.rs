//! How long a source may take for one account or post, all its pages together. What a read waits in line behind others of its
//! own process is nobody's time: it would lose the pages that it has, and the requests spent on them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

tokio::task_local! {
    static SPENT: Mutex<Spent>;
}

/// The time of one read.
struct Spent {
    before: Duration,
    /// Since when it runs, unless the read is in line.
    since: Option<Instant>,
}

impl Spent {
    fn whole(&self) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

fn locked(spent: &Mutex<Spent>) -> MutexGuard<'_, Spent> {
    spent.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for what a source says; nothing when it takes longer.
pub(super) async fn within<T>(patience: Duration, asking: impl Future<Output = T>) -> Option<T> {
    let spent = Mutex::new(Spent { before: Duration::ZERO, since: Some(Instant::now()) });
    let bounded = async {
        tokio::pin!(asking);
        loop {
            let left = patience.saturating_sub(SPENT.with(|spent| locked(spent).whole()));
            if left.is_zero() {
                return None;
            }
            // In line none of it is spent meanwhile.
            if let Ok(answer) = tokio::time::timeout(left, asking.as_mut()).await {
                return Some(answer);
            }
        }
    };
    SPENT.scope(spent, bounded).await
}

/// Waits in line. Outside of [`within`] nobody counts.
pub(super) async fn in_line<T>(turn: impl Future<Output = T>) -> T {
    let _ = SPENT.try_with(|spent| {
        let mut spent = locked(spent);
        (spent.before, spent.since) = (spent.whole(), None);
    });
    let turn = turn.await;
    let _ = SPENT.try_with(|spent| locked(spent).since = Some(Instant::now()));
    turn
}
