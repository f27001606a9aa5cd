//! Authenticates the tokens of shares, which reach their report and nothing else. They are looked up for every request, so a
//! deleted one is rejected at once.

use std::net::IpAddr;
use std::time::Instant;

use salvo::{Depot, Request, handler};

use super::authenticate::{bearer_token, reject_unknown};
use super::rate_limit::MinuteWindows;
use crate::app::App;
use crate::http::caller::Caller;
use crate::http::deadline::TimeBudget;
use crate::http::output::problem::Problem;
use crate::model::key::ShareToken;
use crate::model::organization::Subscription;
use crate::store::records::collections::shares::{self, ShareGrant};

#[derive(Default)]
pub struct AuthenticateShare {
    unknown_tokens: MinuteWindows<IpAddr>,
}

impl AuthenticateShare {
    async fn authenticate(&self, app: &App, req: &Request) -> Result<ShareGrant, Problem> {
        let token = bearer_token(req).and_then(ShareToken::parse).ok_or_else(Problem::unauthorized)?;
        let grant = TimeBudget::FULL.timeout(async {
            app.schema.check(&app.pg).await?;
            shares::find_grant(&app.pg, &token).await
        });
        let Some(grant) = grant.await?? else { return Err(reject_unknown(&self.unknown_tokens, app, req)) };
        if grant.expires_at <= app.clock.now().await {
            return Err(Problem::unauthorized());
        }
        if grant.subscription != Subscription::Active {
            return Err(Problem::forbidden("the organization's subscription is not active"));
        }
        Ok(grant)
    }
}

#[handler]
impl AuthenticateShare {
    async fn handle(&self, req: &Request, depot: &mut Depot) -> Result<(), Problem> {
        let started = Instant::now();
        let app = depot.get_typed::<App>().map_err(|_| Problem::internal("no application state"))?;
        let grant = self.authenticate(app, req).await?;
        depot.insert_typed(Caller::from_share(&grant));
        depot.insert_typed(grant);
        depot.insert_typed(TimeBudget::FULL.minus(started.elapsed()));
        Ok(())
    }
}
