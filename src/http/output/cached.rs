//! Responses that are served from the response cache while the data they were computed from is unchanged.

use std::marker::PhantomData;
use std::sync::Arc;

use salvo::http::StatusCode;
use salvo::{Depot, Request, Response, Writer, async_trait};
use salvo_oapi::{Components, EndpointOutRegister, Operation};
use serde::Serialize;

use super::envelope::write_body;
use super::problem::Problem;
use crate::http::input::window::WindowedRequest;
use crate::response_cache::{CacheKey, CachedResponse};
use crate::store::outbox::data_version::{self, CacheDependencies};

/// A serialized `T`, from the cache or just computed.
#[derive(Debug)]
pub struct Cached<T> {
    response: Arc<CachedResponse>,
    body: PhantomData<T>,
}

/// The records that a response depends on besides history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Records {
    /// Accounts, creators and their links.
    Accounts,
    /// Also videos.
    Videos,
}

impl<A: Serialize> WindowedRequest<A> {
    /// Returns the cached response to this request, or computes and caches it.
    pub async fn cached<T: Serialize>(
        &self,
        records: Records,
        compute: impl Future<Output = Result<T, Problem>>,
    ) -> Result<Cached<T>, Problem> {
        let compute = async { Ok::<_, Problem>(CachedResponse::new(serde_json::to_vec(&compute.await?)?)) };
        let response = if self.responses.is_enabled() {
            let key = (&self.route, &self.args, self.window, self.complete_through);
            let key = CacheKey::new(self.organization, &key)?;
            let videos = records == Records::Videos;
            let dependencies = CacheDependencies { until: self.window.end, videos };
            // Read before computing, so that a cached response is never older than its version.
            let version =
                data_version::fetch(&self.pg, self.organization, dependencies, self.history_since).await?;
            self.responses.get_or_compute(key, version, compute).await?
        } else {
            Arc::new(compute.await?)
        };
        Ok(Cached { response, body: PhantomData })
    }
}

#[async_trait]
impl<T: Send> Writer for Cached<T> {
    async fn write(self, _req: &mut Request, depot: &mut Depot, res: &mut Response) {
        write_body(StatusCode::OK, self.response.body().clone(), res);
        // For its entity tag and its compressed forms.
        depot.insert_typed(self.response);
    }
}

impl<T: EndpointOutRegister> EndpointOutRegister for Cached<T> {
    fn register(components: &mut Components, operation: &mut Operation) {
        T::register(components, operation);
    }
}
