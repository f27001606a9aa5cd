//! Responses that are served from the response cache while the data they were computed from is unchanged.

use std::marker::PhantomData;
use std::sync::Arc;

use chrono::NaiveDate;
use salvo::http::StatusCode;
use salvo::http::header::LINK;
use salvo::{Depot, Request, Response, Writer, async_trait};
use salvo_oapi::{Components, EndpointOutRegister, Operation};
use serde::Serialize;

use super::envelope::write_body;
use super::page::{Ranking, link_header};
use super::problem::Problem;
use crate::http::input::window::WindowedRequest;
use crate::model::picture::copies_url;
use crate::response_cache::{CacheKey, CachedResponse};
use crate::store::outbox::data_version::{self, CacheDependencies};

/// A serialized `T`, from the cache or just computed.
#[derive(Debug)]
pub struct Cached<T> {
    response: Arc<CachedResponse>,
    body: PhantomData<T>,
}

/// A page of a ranking, from the cache or just computed.
#[derive(Debug)]
pub struct CachedPage<T>(Cached<T>);

/// The records that a response depends on besides history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Records {
    /// Accounts, creators and their links.
    Accounts,
    /// Also videos.
    Videos,
    /// Also what scrapes found in profiles until now, such as followers.
    Profiles,
    /// Also tracking, which has no version: the response is not cached.
    Tracking,
}

impl<A: Serialize> WindowedRequest<A> {
    /// Returns the cached response to this request, or computes and caches it.
    pub async fn cached<T: Serialize>(
        &self,
        records: Records,
        compute: impl Future<Output = Result<T, Problem>>,
    ) -> Result<Cached<T>, Problem> {
        let compute = async { Ok(CachedResponse::new(serde_json::to_vec(&compute.await?)?)) };
        let response = self.get_or_compute(records, compute).await?;
        Ok(Cached { response, body: PhantomData })
    }

    /// Returns the cached page, or computes and caches it.
    pub async fn cached_page<T: Serialize, M: Serialize>(
        &self,
        records: Records,
        compute: impl Future<Output = Result<Ranking<T, M>, Problem>>,
    ) -> Result<CachedPage<Ranking<T, M>>, Problem> {
        let compute = async {
            let page = compute.await?;
            let response = CachedResponse::new(serde_json::to_vec(&page)?);
            Ok(response.with_next_cursor(page.pagination.next_cursor))
        };
        let response = self.get_or_compute(records, compute).await?;
        Ok(CachedPage(Cached { response, body: PhantomData }))
    }

    async fn get_or_compute(
        &self,
        records: Records,
        compute: impl Future<Output = Result<CachedResponse, Problem>>,
    ) -> Result<Arc<CachedResponse>, Problem> {
        if !self.responses.is_enabled() || records == Records::Tracking {
            return Ok(Arc::new(compute.await?));
        }
        let key = (&self.route, &self.args, self.window, self.complete_through, copies_url());
        let key = CacheKey::new(self.organization, &key)?;
        let until = if records == Records::Profiles { NaiveDate::MAX } else { self.window.end };
        let dependencies = CacheDependencies { until, videos: records != Records::Accounts };
        // Read before computing, so that a cached response is never older than its version.
        let version =
            data_version::fetch(&self.pg, self.organization, dependencies, self.history_since).await?;
        self.history.set_version(version.history);
        self.responses.get_or_compute(key, version, compute).await
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

#[async_trait]
impl<T: Send> Writer for CachedPage<T> {
    async fn write(self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        if let Some(links) = link_header(req, depot, self.0.response.next_cursor()) {
            res.headers_mut().insert(LINK, links);
        }
        self.0.write(req, depot, res).await;
    }
}

impl<T: EndpointOutRegister> EndpointOutRegister for CachedPage<T> {
    fn register(components: &mut Components, operation: &mut Operation) {
        T::register(components, operation);
    }
}

impl<T: EndpointOutRegister> EndpointOutRegister for Cached<T> {
    fn register(components: &mut Components, operation: &mut Operation) {
        T::register(components, operation);
    }
}
