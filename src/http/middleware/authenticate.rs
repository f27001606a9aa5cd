//! Authenticates API keys and checks their scope. Keys are cached for seconds, so that changes take effect in every
//! process; unknown keys are rate limited by client address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;
use parking_lot::Mutex;
use salvo::http::Method;
use salvo::http::header::AUTHORIZATION;
use salvo::{Depot, Request, handler};

use super::rate_limit::MinuteWindows;
use super::record_metrics::count_rate_limit_rejection;
use crate::app::App;
use crate::http::caller::Caller;
use crate::http::deadline::TimeBudget;
use crate::http::forwarded::client_address;
use crate::http::output::problem::Problem;
use crate::model::key::{ApiKey, KeyHash};
use crate::model::organization::{KeyStatus, Scope, Subscription};
use crate::store::records::keys::{self, Grant};

const KEY_CACHE_TTL: Duration = Duration::from_secs(3);
const _: () = assert!(KEY_CACHE_TTL.as_millis() < 5_000, "key changes must take effect within five seconds");
const MAX_CACHED_KEYS: usize = 20_000;

#[derive(Default)]
struct KeyCache(Mutex<HashMap<KeyHash, (Instant, Arc<Grant>)>>);

impl KeyCache {
    fn get(&self, hash: &KeyHash) -> Option<Arc<Grant>> {
        let keys = self.0.lock();
        keys.get(hash)
            .filter(|(fetched, _)| fetched.elapsed() < KEY_CACHE_TTL)
            .map(|(_, grant)| grant.clone())
    }

    fn insert(&self, hash: KeyHash, fetched: Instant, grant: Arc<Grant>) {
        let mut keys = self.0.lock();
        if keys.len() >= MAX_CACHED_KEYS {
            keys.retain(|_, (at, _)| at.elapsed() < KEY_CACHE_TTL);
        }
        if keys.len() < MAX_CACHED_KEYS {
            keys.insert(hash, (fetched, grant));
        }
    }
}

#[derive(Default)]
pub struct Authenticate {
    keys: KeyCache,
    unknown_keys: MinuteWindows<IpAddr>,
}

impl Authenticate {
    async fn authenticate(&self, app: &App, req: &Request) -> Result<Caller, Problem> {
        let key = bearer_token(req).and_then(ApiKey::parse).ok_or_else(Problem::unauthorized)?;
        let grant = self.find_grant(app, &key).await?;
        let Some(grant) = grant else { return Err(reject_unknown(&self.unknown_keys, app, req)) };
        if grant.expires_at.is_some_and(|expires| expires <= Utc::now()) {
            return Err(Problem::unauthorized());
        }
        if grant.status != KeyStatus::Active {
            return Err(Problem::forbidden("this API key is not active"));
        }
        if grant.subscription != Subscription::Active {
            return Err(Problem::forbidden("the organization's subscription is not active"));
        }
        Ok(Caller::new(&grant))
    }

    async fn find_grant(&self, app: &App, key: &ApiKey) -> Result<Option<Arc<Grant>>, Problem> {
        let hash = key.hash();
        if let Some(grant) = self.keys.get(&hash) {
            return Ok(Some(grant));
        }
        // The age of the cached key counts from here, because it may change during the query.
        let fetched = Instant::now();
        let grant = TimeBudget::FULL.timeout(async {
            // Every request authenticates first, so none reads the tables of another version.
            app.schema.check(&app.pg).await?;
            keys::find_grant(&app.pg, key).await
        });
        Ok(grant.await??.map(|grant| {
            let grant = Arc::new(grant);
            self.keys.insert(hash, fetched, grant.clone());
            grant
        }))
    }
}

/// Rejects a well-formed key or token that does not exist, and counts it for the client's address.
pub(super) fn reject_unknown(unknown: &MinuteWindows<IpAddr>, app: &App, req: &Request) -> Problem {
    let Some(address) = client_address(req, &app.settings.trusted_proxies) else {
        return Problem::unauthorized();
    };
    let limit = app.settings.auth_failure_limit;
    let window = unknown.count(subscriber_network(address), limit, Utc::now());
    if window.is_allowed {
        return Problem::unauthorized();
    }
    count_rate_limit_rejection("address");
    let detail = "too many unknown API keys from this address: check the key and wait";
    Problem::rate_limited(detail, window.seconds_left)
}

#[handler]
impl Authenticate {
    async fn handle(&self, req: &Request, depot: &mut Depot) -> Result<(), Problem> {
        let started = Instant::now();
        let app = depot.get_typed::<App>().map_err(|_| Problem::internal("no application state"))?;
        let caller = self.authenticate(app, req).await?;
        depot.insert_typed(caller);
        depot.insert_typed(TimeBudget::FULL.minus(started.elapsed()));
        Ok(())
    }
}

/// Returns the /64 network of an IPv6 address, which one subscriber has, or the IPv4 address.
fn subscriber_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address @ IpAddr::V4(_) => address,
    }
}

/// Returns the token of a single `Authorization: Bearer` header.
pub(super) fn bearer_token(req: &Request) -> Option<&str> {
    let mut values = req.headers().get_all(AUTHORIZATION).iter();
    let (scheme, token) = values.next()?.to_str().ok()?.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && values.next().is_none()).then(|| token.trim())
}

/// Requires the write scope for all methods except GET and HEAD.
pub struct RequireWriteScope;

#[handler]
impl RequireWriteScope {
    fn handle(&self, req: &Request, depot: &Depot) -> Result<(), Problem> {
        let is_read = matches!(*req.method(), Method::GET | Method::HEAD);
        if is_read { Ok(()) } else { require_write_scope(depot) }
    }
}

/// Requires the write scope for all methods, where what is read is secret.
pub struct RequireWriteScopeToRead;

#[handler]
impl RequireWriteScopeToRead {
    fn handle(&self, depot: &Depot) -> Result<(), Problem> {
        require_write_scope(depot)
    }
}

fn require_write_scope(depot: &Depot) -> Result<(), Problem> {
    if depot.get_typed::<Caller>().is_ok_and(|caller| caller.scopes.contains(&Scope::Write)) {
        return Ok(());
    }
    Err(Problem::insufficient_scope("this API key lacks the write scope"))
}
