//! Responses that are served from the response cache while the data they were computed from is unchanged.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

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
use crate::store::outbox::data_version::{self, CacheDependencies, VersionedRecords};
use crate::store::postgres::RecordsQuery;

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
    /// Returns the cached response to this request, or reads records, computes the response from them and caches it.
    pub async fn cached<R: 'static, T: Serialize>(
        &self,
        records: Records,
        query: RecordsQuery<R>,
        compute: impl AsyncFnOnce(R) -> Result<T, Problem>,
    ) -> Result<Cached<T>, Problem> {
        let compute = async |found: R| -> Result<_, Problem> {
            Ok(CachedResponse::new(serde_json::to_vec(&compute(found).await?)?))
        };
        let response = self.get_or_compute(records, query, compute).await?;
        Ok(Cached { response, body: PhantomData })
    }

    /// Returns the cached page, or computes and caches it.
    pub async fn cached_page<R: 'static, T: Serialize, M: Serialize>(
        &self,
        records: Records,
        query: RecordsQuery<R>,
        compute: impl AsyncFnOnce(R) -> Result<Ranking<T, M>, Problem>,
    ) -> Result<CachedPage<Ranking<T, M>>, Problem> {
        let compute = async |found: R| -> Result<_, Problem> {
            let page = compute(found).await?;
            let response = CachedResponse::new(serde_json::to_vec(&page)?);
            Ok(response.with_next_cursor(page.pagination.next_cursor))
        };
        let response = self.get_or_compute(records, query, compute).await?;
        Ok(CachedPage(Cached { response, body: PhantomData }))
    }

    async fn get_or_compute<R: 'static>(
        &self,
        records: Records,
        query: RecordsQuery<R>,
        compute: impl AsyncFnOnce(R) -> Result<CachedResponse, Problem>,
    ) -> Result<Arc<CachedResponse>, Problem> {
        if records == Records::Tracking {
            return Ok(Arc::new(compute(query.fetch(&self.pg).await?).await?));
        }
        let key = (&self.route, &self.args, self.window, self.complete_through, copies_url());
        let key = CacheKey::new(self.organization, &key)?;
        let until = if records == Records::Profiles { NaiveDate::MAX } else { self.window.end };
        let dependencies = CacheDependencies { until, videos: records != Records::Accounts };
        let fetch = async |cached| -> Result<_, Problem> {
            let WindowedRequest { pg, organization, history_since, .. } = self;
            let read_at = Instant::now();
            let fetched =
                data_version::fetch(pg, *organization, dependencies, *history_since, cached, query).await?;
            if let VersionedRecords::Changed(version, _) = &fetched {
                self.history.set_version(version.history, read_at);
            }
            Ok(fetched)
        };
        self.responses.get_or_compute(key, fetch, compute).await
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
