//! Whose request it is. A key is looked up by its hash and remembered for a few seconds, so that what the command
//! line changes takes effect everywhere at once; keys that do not exist are counted by the address they come from.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::{NaiveDate, Utc};
use salvo::http::Method;
use salvo::http::header::AUTHORIZATION;
use salvo::{Depot, FlowCtrl, Handler, Request, Response, Writer, async_trait};
use uuid::Uuid;

use crate::app::App;
use crate::http::forwarded::peer;
use crate::http::middleware::rate_limit::Windows;
use crate::http::middleware::record_metrics;
use crate::http::middleware::request_timeout::{self, TimeLeft};
use crate::http::output::problem::Problem;
use crate::model::key::{ApiKey, KeyHash};
use crate::model::limits::DEFAULT_RATE_PER_MINUTE;
use crate::model::organization::{KeyStatus, Scope, Subscription};
use crate::store::records::keys::{self, Grant};

/// How long a key is taken for what it was; well below the five seconds within which changes have to show.
const FRESH: Duration = Duration::from_secs(3);
const _: () = assert!(FRESH.as_millis() < 5_000, "changes of keys have to show within five seconds");
/// Keys remembered at once.
const REMEMBERED: usize = 20_000;

/// Who asks, and what they may do.
#[derive(Debug, Clone)]
pub struct Caller {
    pub organization: Uuid,
    pub key: Uuid,
    pub key_name: Arc<str>,
    /// With those implied, the least first.
    pub scopes: Arc<[Scope]>,
    /// Requests a minute.
    pub rate_limit: u32,
    /// The first day of which the organization's history is kept, where not all of it is.
    pub history_since: Option<NaiveDate>,
}

impl Caller {
    fn new(grant: &Grant) -> Self {
        let greatest = grant.scopes.iter().filter_map(|scope| scope.parse::<Scope>().ok()).max();
        Caller {
            organization: grant.organization_id,
            key: grant.id,
            key_name: grant.name.as_str().into(),
            scopes: greatest.map(|scope| scope.implied().collect()).unwrap_or_default(),
            rate_limit: u32::try_from(grant.rate_limit.unwrap_or(DEFAULT_RATE_PER_MINUTE))
                .unwrap_or_default(),
            history_since: grant.history_since,
        }
    }

    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }
}

/// The keys seen lately.
#[derive(Default)]
struct Remembered(Mutex<HashMap<KeyHash, (Instant, Arc<Grant>)>>);

impl Remembered {
    fn get(&self, hash: &KeyHash) -> Option<Arc<Grant>> {
        let keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.get(hash).filter(|(seen, _)| seen.elapsed() < FRESH).map(|(_, grant)| grant.clone())
    }

    /// Remembers a key as of when it began to be looked up.
    fn put(&self, hash: KeyHash, asked: Instant, grant: Arc<Grant>) {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if keys.len() >= REMEMBERED {
            keys.retain(|_, (seen, _)| seen.elapsed() < FRESH);
        }
        if keys.len() < REMEMBERED {
            keys.insert(hash, (asked, grant));
        }
    }
}

/// Lets only requests with a working key through.
pub struct Authenticate {
    remembered: Remembered,
    failures: Windows<IpAddr>,
}

impl Authenticate {
    pub fn new() -> Self {
        Authenticate { remembered: Remembered::default(), failures: Windows::default() }
    }

    async fn caller(&self, app: &App, req: &Request) -> Result<Caller, Problem> {
        let key = bearer(req).and_then(ApiKey::parse).ok_or_else(Problem::unauthorized)?;
        let grant = self.grant(app, &key).await?;
        let Some(grant) = grant else { return Err(self.unknown_key(app, req)) };
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

    async fn grant(&self, app: &App, key: &ApiKey) -> Result<Option<Arc<Grant>>, Problem> {
        let hash = key.hash();
        if let Some(grant) = self.remembered.get(&hash) {
            return Ok(Some(grant));
        }
        let asked = Instant::now();
        let found = async {
            // Every request authenticates first, so none works on another version's tables.
            app.schema.check(&app.pg).await?;
            keys::find_grant(&app.pg, key).await
        };
        let found = request_timeout::bounded(TimeLeft::WHOLE, found).await??;
        Ok(found.map(|grant| {
            let grant = Arc::new(grant);
            self.remembered.put(hash, asked, grant.clone());
            grant
        }))
    }

    /// Counts a key that does not exist against whoever's address sent it.
    fn unknown_key(&self, app: &App, req: &Request) -> Problem {
        let Some(peer) = peer(req, &app.settings.trusted_proxies) else { return Problem::unauthorized() };
        let taken = self.failures.take(subscriber(peer), app.settings.auth_failure_limit, Utc::now());
        if taken.allowed {
            Problem::unauthorized()
        } else {
            record_metrics::refused("address");
            Problem::rate_limited(
                "too many unknown API keys from this address: wait and check the key",
                taken.seconds_left,
            )
        }
    }
}

impl Default for Authenticate {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Handler for Authenticate {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        let started = Instant::now();
        let outcome = match depot.get_typed::<App>() {
            Ok(app) => self.caller(app, req).await,
            Err(_) => Err(Problem::internal("the application was not handed to the request")),
        };
        match outcome {
            Ok(caller) => {
                depot.insert_typed(caller);
                depot.insert_typed(TimeLeft::WHOLE.less(started.elapsed()));
            }
            Err(problem) => {
                problem.write(req, depot, res).await;
                ctrl.skip_rest();
            }
        }
    }
}

/// Whom an address belongs to: a subscriber of IPv6 has a network of 2^64 of them.
fn subscriber(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address @ IpAddr::V4(_) => address,
    }
}

/// The credentials of an `Authorization: Bearer` header, the scheme in any case.
fn bearer(req: &Request) -> Option<&str> {
    let mut values = req.headers().get_all(AUTHORIZATION).iter();
    let (scheme, credentials) = values.next()?.to_str().ok()?.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && values.next().is_none()).then(|| credentials.trim())
}

/// Lets only keys that may write change anything.
pub struct RequireScope;

#[async_trait]
impl Handler for RequireScope {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        let reads = matches!(*req.method(), Method::GET | Method::HEAD);
        let may = reads || depot.get_typed::<Caller>().is_ok_and(|caller| caller.may(Scope::Write));
        if !may {
            let problem =
                Problem::insufficient_scope("this API key lacks the scope write, which this method needs");
            problem.write(req, depot, res).await;
            ctrl.skip_rest();
        }
    }
}
