//! Whose turn it is to ask ClickHouse. A process asks only so many things at a time, and an organization at most half
//! of them; the next place goes to whichever waiting organization has the fewest, then to the one that was served
//! longest ago. So however much one organization asks at once, another waits for one answer at most.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use opentelemetry::KeyValue;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::store::Error;
use crate::telemetry::{labels, metrics};

/// How long a question waits for its turn; a request has five seconds in all.
const PATIENCE: Duration = Duration::from_secs(3);

/// The places of a process. Cheap to clone.
#[derive(Clone)]
pub struct FairLimiter {
    state: Arc<Mutex<State>>,
    /// All places.
    places: usize,
    /// Those that one organization may have at a time.
    share: usize,
    patience: Duration,
}

#[derive(Default)]
struct State {
    free: usize,
    /// Numbers everything that asks or is served.
    clock: u64,
    /// Those that ask, or did until just now.
    organizations: HashMap<Uuid, Asking>,
}

/// One organization's part.
#[derive(Default)]
struct Asking {
    /// Places in use.
    taken: usize,
    /// When it was last given one.
    served: u64,
    /// Since when they wait.
    waiting: VecDeque<(u64, oneshot::Sender<Permit>)>,
}

/// A place in use; given back by dropping it.
pub struct Permit {
    limiter: FairLimiter,
    organization: Uuid,
}

impl FairLimiter {
    /// So many places, at least one.
    pub fn new(places: usize) -> Self {
        let places = places.max(1);
        let state = State { free: places, ..State::default() };
        let share = places.div_ceil(2);
        FairLimiter { state: Arc::new(Mutex::new(state)), places, share, patience: PATIENCE }
    }

    /// Waits for a place, not for ever.
    pub async fn acquire(&self, organization: Uuid) -> Result<Permit, Error> {
        let asked = Instant::now();
        let taken = self.wait(organization).await;
        match &taken {
            Ok(_) => {
                if let Some(metrics) = metrics::instruments() {
                    let labels = [KeyValue::new(labels::POOL, labels::ANALYTICS_POOL)];
                    metrics::record_duration(&metrics.connection_wait, asked.elapsed(), &labels);
                }
            }
            Err(_) => metrics::count_pool_timeout(labels::ANALYTICS_POOL),
        }
        taken
    }

    async fn wait(&self, organization: Uuid) -> Result<Permit, Error> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.state();
            let free = state.free > 0;
            let now = state.tick();
            let asking = state.organizations.entry(organization).or_default();
            // Those that gave up are not kept until their turn comes.
            asking.waiting.retain(|(_, sender)| !sender.is_closed());
            if free && asking.waiting.is_empty() && asking.taken < self.share {
                return Ok(self.place(&mut state, organization));
            }
            asking.waiting.push_back((now, sender));
        }
        match tokio::time::timeout(self.patience, receiver).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(Error::TooManyQueries),
        }
    }

    /// How many places there are.
    pub fn permits(&self) -> usize {
        self.places
    }

    /// Questions that run, and those that wait.
    pub fn load(&self) -> (usize, usize) {
        let state = self.state();
        let waits = |asking: &Asking| asking.waiting.iter().filter(|(_, sender)| !sender.is_closed()).count();
        (
            state.organizations.values().map(|asking| asking.taken).sum(),
            state.organizations.values().map(waits).sum(),
        )
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self, state: &mut State, organization: Uuid) -> Permit {
        let now = state.tick();
        let asking = state.organizations.entry(organization).or_default();
        asking.taken += 1;
        asking.served = now;
        state.free -= 1;
        Permit { limiter: self.clone(), organization }
    }

    /// Takes a place back and hands on what is free.
    fn give_back(&self, organization: Uuid) {
        // Places whose taker is gone come back through here themselves, once the state is no longer held.
        let mut refused = Vec::new();
        let mut state = self.state();
        state.free += 1;
        if let Some(asking) = state.organizations.get_mut(&organization) {
            asking.taken -= 1;
        }
        while let Some((next, sender)) = state.next(self.share) {
            let place = self.place(&mut state, next);
            refused.extend(sender.send(place).err());
        }
        state.organizations.retain(|_, asking| asking.taken > 0 || !asking.waiting.is_empty());
        drop(state);
        drop(refused);
    }
}

impl State {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Who is next, if anybody may be.
    fn next(&mut self, share: usize) -> Option<(Uuid, oneshot::Sender<Permit>)> {
        if self.free == 0 {
            return None;
        }
        for asking in self.organizations.values_mut() {
            asking.waiting.retain(|(_, sender)| !sender.is_closed());
        }
        let may = self.organizations.iter_mut().filter(|(_, asking)| asking.taken < share);
        let first = may.filter_map(|(organization, asking)| {
            let since = asking.waiting.front()?.0;
            Some(((asking.taken, asking.served, since), organization, asking))
        });
        let (_, organization, asking) = first.min_by_key(|(rank, ..)| *rank)?;
        Some((*organization, asking.waiting.pop_front()?.1))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.limiter.give_back(self.organization);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const ONE: Uuid = Uuid::from_u128(1);
    const OTHER: Uuid = Uuid::from_u128(2);

    /// A question that has asked for its turn.
    fn asked(
        limiter: &FairLimiter,
        organization: Uuid,
    ) -> std::pin::Pin<Box<impl Future<Output = Result<Permit, Error>>>> {
        let limiter = limiter.clone();
        let mut asked = Box::pin(async move { limiter.acquire(organization).await });
        assert!((&mut asked).now_or_never().is_none(), "it has to wait");
        asked
    }

    #[tokio::test]
    async fn an_organization_has_half_of_the_places_and_leaves_the_others() {
        let limiter = FairLimiter::new(4);
        let held = [limiter.acquire(ONE).await.unwrap(), limiter.acquire(ONE).await.unwrap()];
        let mut third = asked(&limiter, ONE);
        let others = [limiter.acquire(OTHER).await.unwrap(), limiter.acquire(OTHER).await.unwrap()];
        assert_eq!(limiter.load(), (4, 1));
        drop(others);
        assert!((&mut third).now_or_never().is_none(), "a free place is not for who has half of them");
        drop(held);
        assert!(third.await.is_ok());
        assert_eq!(limiter.load(), (0, 0));
    }

    /// One place, which is taken, and 64 wait for it.
    #[tokio::test]
    async fn who_comes_last_with_one_question_waits_for_one_answer() {
        let limiter = FairLimiter::new(1);
        let running = limiter.acquire(ONE).await.unwrap();
        let mut many: VecDeque<_> = (0..64).map(|_| asked(&limiter, ONE)).collect();
        let mut other = asked(&limiter, OTHER);
        drop(running);
        let place = (&mut other).now_or_never().expect("it is the other's turn").unwrap();
        assert!(many.iter_mut().all(|waiting| waiting.now_or_never().is_none()));
        let again = asked(&limiter, OTHER);
        drop(place);
        // Both have waiting questions: they take limiter, each in the order in which it asked.
        drop(many.pop_front().unwrap().now_or_never().expect("then one of the many").unwrap());
        drop(again.now_or_never().expect("then the other").unwrap());
        for waiting in many {
            drop(waiting.now_or_never().expect("then the rest").unwrap());
        }
        assert_eq!(limiter.load(), (0, 0));
    }

    #[tokio::test]
    async fn who_has_fewer_places_comes_first() {
        let limiter = FairLimiter::new(4);
        let third = Uuid::from_u128(3);
        let one = [limiter.acquire(ONE).await.unwrap()];
        let other = [limiter.acquire(OTHER).await.unwrap(), limiter.acquire(OTHER).await.unwrap()];
        let last = limiter.acquire(third).await.unwrap();
        let first_asked = asked(&limiter, ONE);
        let mut then = asked(&limiter, third);
        drop(last);
        assert!((&mut then).now_or_never().is_some(), "it has none, the one before it has one");
        drop((one, other));
        assert!(first_asked.await.is_ok());
    }

    #[tokio::test]
    async fn waiting_ends_and_those_that_gave_up_take_no_place() {
        let limiter = FairLimiter { patience: Duration::from_millis(50), ..FairLimiter::new(1) };
        let running = limiter.acquire(ONE).await.unwrap();
        assert!(matches!(limiter.acquire(ONE).await, Err(Error::TooManyQueries)));
        let gave_up = asked(&limiter, ONE);
        let stays = asked(&limiter, ONE);
        drop(gave_up);
        assert_eq!(limiter.load(), (1, 1));
        drop(running);
        let place = stays.await.unwrap();
        // One that is given its place and goes before it looks.
        let gone = asked(&limiter, OTHER);
        drop(place);
        drop(gone);
        assert_eq!(limiter.load(), (0, 0));
    }
}
