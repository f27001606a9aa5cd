//! Answers of analytics that are computed once: served again, as they left, for as long as nothing that they rest on
//! has changed, whichever process it changed through.

use std::marker::PhantomData;
use std::sync::Arc;

use salvo::http::header::CONTENT_TYPE;
use salvo::http::{HeaderValue, ResBody, StatusCode};
use salvo::{Depot, Request, Response, Writer, async_trait};
use salvo_oapi::{Components, EndpointOutRegister, Operation};
use serde::Serialize;

use crate::app::App;
use crate::http::middleware::authenticate::Caller;
use crate::http::output::problem::Problem;
use crate::response_cache::{CacheKey, CachedResponse};
use crate::store::outbox::data_version::{self, CacheDependencies};

/// A finished answer of a form.
#[derive(Debug)]
pub struct Kept<T> {
    finished: Arc<CachedResponse>,
    of: PhantomData<T>,
}

/// Answers a question from what is kept, or by the work, which then is kept.
///
/// `about` is everything besides the stores that the answer depends on; `basis` says on what of the stores.
pub async fn kept<T: Serialize>(
    app: &App,
    caller: &Caller,
    operation: &'static str,
    about: &impl Serialize,
    dependencies: CacheDependencies,
    work: impl Future<Output = Result<T, Problem>>,
) -> Result<Kept<T>, Problem> {
    let finish = async { Ok::<_, Problem>(CachedResponse::new(serde_json::to_vec(&work.await?)?)) };
    let finished = if app.responses.is_enabled() {
        let key = CacheKey::new(caller.organization, &(operation, about))?;
        // Before the work, so that what it reads is at least as new.
        let version =
            data_version::fetch(&app.pg, caller.organization, dependencies, caller.history_since).await?;
        app.responses.get(key, version, finish).await?
    } else {
        Arc::new(finish.await?)
    };
    Ok(Kept { finished, of: PhantomData })
}

#[async_trait]
impl<T: Send> Writer for Kept<T> {
    async fn write(self, _req: &mut Request, depot: &mut Depot, res: &mut Response) {
        res.status_code(StatusCode::OK);
        res.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        res.body(ResBody::Once(self.finished.body().clone()));
        depot.insert_typed(self.finished);
    }
}

impl<T: EndpointOutRegister> EndpointOutRegister for Kept<T> {
    fn register(components: &mut Components, operation: &mut Operation) {
        T::register(components, operation);
    }
}
