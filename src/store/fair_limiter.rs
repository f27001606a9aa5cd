//! Limits concurrent queries, fairly between organizations: those of analytics to ClickHouse, and reads of records from
//! Postgres.
//!
//! An organization holds at most half of the permits. The next permit goes to the waiting organization with the fewest,
//! then to the one served longest ago: however many queries one organization has, another waits for one query at most.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use opentelemetry::KeyValue;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::store::Error;
use crate::telemetry::{labels, metrics};

/// A request has five seconds in all.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(3);

/// The permits of a process. Cheap to clone.
#[derive(Clone)]
pub struct FairLimiter {
    state: Arc<Mutex<State>>,
    permits: usize,
    max_per_organization: usize,
    acquire_timeout: Duration,
    /// The name of the permits in metrics.
    pool: &'static str,
}

#[derive(Default)]
struct State {
    available: usize,
    /// Counts every request for a permit and every permit.
    clock: u64,
    organizations: HashMap<Uuid, Organization>,
}

/// An organization that holds permits or waits for one.
#[derive(Default)]
struct Organization {
    permits: usize,
    /// The clock when it last got a permit.
    last_served: u64,
    /// The clock when each request began.
    waiting: VecDeque<(u64, oneshot::Sender<Permit>)>,
}

/// The right to run one query, returned when dropped.
pub struct Permit {
    limiter: FairLimiter,
    organization: Uuid,
}

impl FairLimiter {
    pub fn new(permits: usize, pool: &'static str) -> Self {
        let permits = permits.max(1);
        FairLimiter {
            state: Arc::new(Mutex::new(State { available: permits, ..State::default() })),
            permits,
            max_per_organization: permits.div_ceil(2),
            acquire_timeout: ACQUIRE_TIMEOUT,
            pool,
        }
    }

    /// Waits for a permit; fails with `Error::TooManyQueries` after a timeout.
    pub async fn acquire(&self, organization: Uuid) -> Result<Permit, Error> {
        let started = Instant::now();
        let Some(permit) = self.wait(organization).await else {
            metrics::count_pool_timeout(self.pool);
            return Err(Error::TooManyQueries);
        };
        if let Some(metrics) = metrics::instruments() {
            let labels = [KeyValue::new(labels::POOL, self.pool)];
            metrics::record_duration(&metrics.connection_wait, started.elapsed(), &labels);
        }
        Ok(permit)
    }

    /// Waits for a permit; None after the timeout.
    async fn wait(&self, id: Uuid) -> Option<Permit> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.lock();
            let is_available = state.available > 0;
            let now = state.tick();
            let organization = state.organizations.entry(id).or_default();
            organization.drop_abandoned();
            let is_first = organization.waiting.is_empty();
            if is_available && is_first && organization.permits < self.max_per_organization {
                return Some(self.issue(&mut state, id));
            }
            organization.waiting.push_back((now, sender));
        }
        tokio::time::timeout(self.acquire_timeout, receiver).await.ok()?.ok()
    }

    /// The number of permits in all.
    pub fn permits(&self) -> usize {
        self.permits
    }

    /// The numbers of permits in use and of requests that wait for one.
    pub fn load(&self) -> (usize, usize) {
        let state = self.lock();
        let waiting = |organization: &Organization| {
            organization.waiting.iter().filter(|(_, sender)| !sender.is_closed()).count()
        };
        (
            state.organizations.values().map(|organization| organization.permits).sum(),
            state.organizations.values().map(waiting).sum(),
        )
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn issue(&self, state: &mut State, id: Uuid) -> Permit {
        let now = state.tick();
        let organization = state.organizations.entry(id).or_default();
        organization.permits += 1;
        organization.last_served = now;
        state.available -= 1;
        Permit { limiter: self.clone(), organization: id }
    }

    /// Returns a permit and issues what is available to waiting organizations.
    fn release(&self, id: Uuid) {
        // Permits that no receiver takes are dropped after the lock, because dropping them calls this function.
        let mut unreceived = Vec::new();
        let mut state = self.lock();
        state.available += 1;
        if let Some(organization) = state.organizations.get_mut(&id) {
            organization.permits -= 1;
        }
        while let Some((next, sender)) = state.next(self.max_per_organization) {
            let permit = self.issue(&mut state, next);
            unreceived.extend(sender.send(permit).err());
        }
        state
            .organizations
            .retain(|_, organization| organization.permits > 0 || !organization.waiting.is_empty());
        drop(state);
        drop(unreceived);
    }
}

impl Organization {
    /// Removes requests that were dropped or timed out.
    fn drop_abandoned(&mut self) {
        self.waiting.retain(|(_, sender)| !sender.is_closed());
    }
}

impl State {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Takes the next request to serve out of its queue.
    fn next(&mut self, max_per_organization: usize) -> Option<(Uuid, oneshot::Sender<Permit>)> {
        if self.available == 0 {
            return None;
        }
        self.organizations.values_mut().for_each(Organization::drop_abandoned);
        let eligible = self.organizations.iter_mut().filter(|(_, one)| one.permits < max_per_organization);
        let ranked = eligible.filter_map(|(id, organization)| {
            let since = organization.waiting.front()?.0;
            Some(((organization.permits, organization.last_served, since), id, organization))
        });
        let (_, id, organization) = ranked.min_by_key(|(rank, ..)| *rank)?;
        Some((*id, organization.waiting.pop_front()?.1))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.limiter.release(self.organization);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use futures_util::FutureExt;

    use super::*;

    const ONE: Uuid = Uuid::from_u128(1);
    const OTHER: Uuid = Uuid::from_u128(2);

    type Acquire = Pin<Box<dyn Future<Output = Result<Permit, Error>>>>;

    fn acquire(limiter: &FairLimiter, organization: Uuid) -> Acquire {
        let limiter = limiter.clone();
        let mut request: Acquire = Box::pin(async move { limiter.acquire(organization).await });
        assert!((&mut request).now_or_never().is_none(), "it must wait");
        request
    }

    #[tokio::test]
    async fn organization_holds_at_most_half_of_the_permits() {
        let limiter = FairLimiter::new(4, labels::ANALYTICS_POOL);
        let held = [limiter.acquire(ONE).await.unwrap(), limiter.acquire(ONE).await.unwrap()];
        let mut third = acquire(&limiter, ONE);
        let others = [limiter.acquire(OTHER).await.unwrap(), limiter.acquire(OTHER).await.unwrap()];
        assert_eq!(limiter.load(), (4, 1));
        drop(others);
        assert!((&mut third).now_or_never().is_none(), "the organization holds half");
        drop(held);
        assert!(third.await.is_ok());
        assert_eq!(limiter.load(), (0, 0));
    }

    #[tokio::test]
    async fn late_organization_waits_for_one_query_of_many() {
        let limiter = FairLimiter::new(1, labels::ANALYTICS_POOL);
        let running = limiter.acquire(ONE).await.unwrap();
        let mut many: VecDeque<_> = (0..64).map(|_| acquire(&limiter, ONE)).collect();
        let mut other = acquire(&limiter, OTHER);
        drop(running);
        let permit = (&mut other).now_or_never().expect("the other is next").unwrap();
        assert!(many.iter_mut().all(|request| request.now_or_never().is_none()));
        let again = acquire(&limiter, OTHER);
        drop(permit);
        // While both wait they alternate, each in the order of its requests.
        drop(many.pop_front().unwrap().now_or_never().expect("then one of the many").unwrap());
        drop(again.now_or_never().expect("then the other").unwrap());
        for request in many {
            drop(request.now_or_never().expect("then the rest").unwrap());
        }
        assert_eq!(limiter.load(), (0, 0));
    }

    #[tokio::test]
    async fn organization_with_fewest_permits_is_next() {
        let limiter = FairLimiter::new(4, labels::ANALYTICS_POOL);
        let third = Uuid::from_u128(3);
        let one = [limiter.acquire(ONE).await.unwrap()];
        let other = [limiter.acquire(OTHER).await.unwrap(), limiter.acquire(OTHER).await.unwrap()];
        let last = limiter.acquire(third).await.unwrap();
        let first = acquire(&limiter, ONE);
        let mut second = acquire(&limiter, third);
        drop(last);
        assert!((&mut second).now_or_never().is_some(), "it holds none, the first holds one");
        drop((one, other));
        assert!(first.await.is_ok());
    }

    #[tokio::test]
    async fn abandoned_requests_take_no_permit() {
        let limiter = FairLimiter {
            acquire_timeout: Duration::from_millis(50),
            ..FairLimiter::new(1, labels::ANALYTICS_POOL)
        };
        let running = limiter.acquire(ONE).await.unwrap();
        assert!(matches!(limiter.acquire(ONE).await, Err(Error::TooManyQueries)));
        let dropped = acquire(&limiter, ONE);
        let waiting = acquire(&limiter, ONE);
        drop(dropped);
        assert_eq!(limiter.load(), (1, 1));
        drop(running);
        let permit = waiting.await.unwrap();
        // Dropped after it got its permit and before it was polled.
        let unpolled = acquire(&limiter, OTHER);
        drop(permit);
        drop(unpolled);
        assert_eq!(limiter.load(), (0, 0));
    }
}
