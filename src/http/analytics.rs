//! The input of analytics besides arguments: the window of a request, and the version of the data that its response is computed
//! from, or was computed from when it was cached.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

use chrono::{DateTime, Days, NaiveDate, Utc};
use salvo::http::StatusCode;
use salvo::http::header::LINK;
use salvo::{Depot, Request, Response, Writer, async_trait};
use salvo_oapi::{Components, EndpointOutRegister, Operation};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use uuid::Uuid;

use super::caller::Caller;
use super::input::request_part::impl_extractible;
use super::input::window::WindowParams;
use super::output::envelope::{WindowMeta, write_body};
use super::output::page::{Ranking, link_header};
use super::output::problem::Problem;
use crate::app::App;
use crate::model::period::{Period, Window};
use crate::model::picture::copies_url;
use crate::model::platform::Platform;
use crate::model::readable::ReadablePlatforms;
use crate::response_cache::{CacheKey, CachedResponse, ResponseCache, VersionedCache};
use crate::store::Error;
use crate::store::analytics::collections::{self, Member};
use crate::store::analytics::rollup_cache::ReadVersion;
use crate::store::analytics::{HistoryReader, VersionedHistory};
use crate::store::outbox::data_version::{self, CacheDependencies, VersionedRecords};
use crate::store::postgres::{FairReads, RecordsQuery};
use crate::store::records::collections::membership;

/// The arguments of a request and the window they name. With its route, organization and the version of the data, they
/// determine its response.
#[derive(Debug, Serialize)]
pub struct WindowArgs<A> {
    pub args: A,
    pub window: Window,
    /// The last complete day that is not after the window.
    pub complete_through: NaiveDate,
}

impl<A> WindowArgs<A> {
    pub fn meta(&self, data_as_of: Option<DateTime<Utc>>) -> WindowMeta {
        WindowMeta {
            period: self.window.period,
            start_date: self.window.start,
            end_date: self.window.end,
            days: self.window.days(),
            complete_through: self.complete_through,
            data_as_of,
        }
    }
}

/// The records that a response depends on besides history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordDependency {
    /// Accounts, creators and their links.
    Accounts,
    /// Also videos.
    Videos,
    /// Also what scrapes found in profiles until now, such as followers.
    Profiles,
    /// Also tracking, which has no version: the response is not cached.
    Tracking,
}

/// Everything that handlers of analytics may use besides their arguments, so that a response depends on nothing else.
pub struct Analytics {
    pub pg: FairReads,
    /// Equal for all requests of a process.
    pub readable: ReadablePlatforms,
    pub organization: Uuid,
    pub history_since: Option<NaiveDate>,
    pub history: HistoryReader,
    now: DateTime<Utc>,
    route: String,
    /// Responses to other requests than GET and HEAD are not cached.
    is_safe: bool,
    responses: ResponseCache,
    members: VersionedCache<Vec<Member>>,
}

impl Analytics {
    async fn from_request(req: &Request, depot: &Depot) -> Result<Self, Problem> {
        let App { pg, reads, history, readable, clock, responses, members, .. } =
            App::from_request(req, depot)?;
        let Caller { organization, history_since, .. } = Caller::from_depot(depot)?;
        Ok(Analytics {
            pg: FairReads::new(pg, reads, organization),
            readable,
            organization,
            history_since,
            history,
            now: clock.now().await,
            route: req.matched_path().to_owned(),
            is_safe: req.method().is_safe(),
            responses,
            members,
        })
    }

    /// Resolves the window that the arguments name.
    pub fn window<A>(
        &self,
        args: A,
        params: impl FnOnce(&A) -> WindowParams,
    ) -> Result<WindowArgs<A>, Problem> {
        let window = params(&args).resolve(self.now)?;
        Ok(WindowArgs { args, window, complete_through: window.complete_through(self.now) })
    }

    /// The UTC day of the request.
    pub fn today(&self) -> NaiveDate {
        self.now.date_naive()
    }

    /// Arguments without a window: theirs are the last `days` days.
    pub fn last_days<A>(&self, args: A, days: u16) -> WindowArgs<A> {
        let end = self.today();
        let start = end + Days::new(1) - Days::new(days.into());
        let window = Window { period: Period::Custom, start, end };
        WindowArgs { args, window, complete_through: window.complete_through(self.now) }
    }

    /// Returns the cached response to this request, or reads records and computes the response from them; caches it if the
    /// request is safe and the records have a version.
    pub async fn respond<A: Serialize, R: 'static, T: Serialize>(
        &self,
        request: &WindowArgs<A>,
        records: RecordDependency,
        query: RecordsQuery<R>,
        compute: impl AsyncFnOnce(R, VersionedHistory) -> Result<T, Problem>,
    ) -> Result<Cached<T>, Problem> {
        let serialize_response = async |(found, history)| -> Result<_, Problem> {
            Ok(CachedResponse::new(serde_json::to_vec(&compute(found, history).await?)?))
        };
        let response = self.get_or_compute(request, records, query, serialize_response).await?;
        Ok(Cached { response, body: PhantomData })
    }

    /// Returns the cached page, or computes and caches it.
    pub async fn respond_page<A: Serialize, R: 'static, T: Serialize, M: Serialize>(
        &self,
        request: &WindowArgs<A>,
        records: RecordDependency,
        query: RecordsQuery<R>,
        compute: impl AsyncFnOnce(R, VersionedHistory) -> Result<Ranking<T, M>, Problem>,
    ) -> Result<CachedPage<Ranking<T, M>>, Problem> {
        let serialize_response = async |(found, history)| -> Result<_, Problem> {
            let page = compute(found, history).await?;
            let response = CachedResponse::new(serde_json::to_vec(&page)?);
            Ok(response.with_next_cursor(page.pagination.next_cursor))
        };
        let response = self.get_or_compute(request, records, query, serialize_response).await?;
        Ok(CachedPage(Cached { response, body: PhantomData }))
    }

    /// The posts of a collection, on one platform or all: read once for all requests until something of the organization
    /// changes.
    pub async fn collection_members(
        &self,
        collection: Uuid,
        platform: Option<Platform>,
    ) -> Result<Arc<Vec<Member>>, Problem> {
        let key = CacheKey::new(self.organization, &(collection, platform))?;
        let dependencies = CacheDependencies { until: NaiveDate::MAX, videos: true };
        let fetch = async |cached| -> Result<_, Problem> {
            let Analytics { organization, history_since, .. } = *self;
            let pg = self.pg.acquire().await?;
            let definition = membership::find(organization, collection);
            Ok(data_version::fetch(&pg, organization, dependencies, history_since, cached, definition)
                .await?)
        };
        let read = async |membership| -> Result<_, Problem> {
            Ok(collections::list_members(&self.pg, &membership, platform).await?)
        };
        self.members.get_or_compute(Some(key), fetch, read).await
    }

    async fn get_or_compute<A: Serialize, R: 'static>(
        &self,
        request: &WindowArgs<A>,
        records: RecordDependency,
        query: RecordsQuery<R>,
        compute: impl AsyncFnOnce((R, VersionedHistory)) -> Result<CachedResponse, Problem>,
    ) -> Result<Arc<CachedResponse>, Problem> {
        let key = (&self.route, request, copies_url());
        let key = (self.is_safe && records != RecordDependency::Tracking)
            .then(|| CacheKey::new(self.organization, &key))
            .transpose()?;
        let until = if records < RecordDependency::Profiles { request.window.end } else { NaiveDate::MAX };
        let dependencies = CacheDependencies { until, videos: records != RecordDependency::Accounts };
        // One statement reads the version and, unless that is the cached response's, the records.
        let fetch = async |cached| -> Result<_, Problem> {
            let Analytics { pg, organization, history_since, .. } = self;
            let pg = pg.acquire().await?;
            let read_at = Instant::now();
            let fetched =
                data_version::fetch(&pg, *organization, dependencies, *history_since, cached, query).await?;
            Ok(match fetched {
                VersionedRecords::Unchanged => VersionedRecords::Unchanged,
                VersionedRecords::Changed(version, found) => {
                    let read = ReadVersion { version: version.history, read_at };
                    VersionedRecords::Changed(version, (found, self.history.clone().at(*organization, read)))
                }
            })
        };
        self.responses.get_or_compute(key, fetch, compute).await
    }
}

/// A serialized `T`, from the cache or just computed.
#[derive(Debug)]
pub struct Cached<T> {
    response: Arc<CachedResponse>,
    body: PhantomData<T>,
}

/// A page of a ranking, from the cache or just computed.
#[derive(Debug)]
pub struct CachedPage<T>(Cached<T>);

/// The JSON of a ranking.
#[derive(Serialize, Deserialize)]
struct RawRanking {
    data: Vec<Box<RawValue>>,
    pagination: Box<RawValue>,
    meta: Box<RawValue>,
}

#[derive(Deserialize)]
struct EntryId {
    id: Uuid,
}

impl<T, M> CachedPage<Ranking<T, M>> {
    /// Adds to each entry the fields that `fetch` finds by its id, because they change without a version. Entries that it does
    /// not find were deleted just now.
    pub async fn complete<U, F: Serialize>(
        self,
        fetch: impl AsyncFnOnce(Vec<Uuid>) -> Result<HashMap<Uuid, F>, Error>,
    ) -> Result<CachedPage<Ranking<U, M>>, Problem> {
        let cached = self.0.response;
        let mut ranking: RawRanking = serde_json::from_slice(cached.body())?;
        let id_of = |entry: &RawValue| serde_json::from_str(entry.get()).map(|EntryId { id }| id);
        let ids: Vec<Uuid> = ranking.data.iter().map(|entry| id_of(entry)).collect::<Result<_, _>>()?;
        let mut found = fetch(ids.clone()).await?;
        let entries = ranking.data.iter().zip(ids);
        let completed = entries.filter_map(|(entry, id)| Some(join(entry, &found.remove(&id)?)));
        ranking.data = completed.collect::<Result<_, _>>()?;
        let response = CachedResponse::new(serde_json::to_vec(&ranking)?);
        let response = Arc::new(response.with_next_cursor(cached.next_cursor().map(str::to_owned)));
        Ok(CachedPage(Cached { response, body: PhantomData }))
    }
}

/// Joins two objects, neither of them empty.
fn join(entry: &RawValue, fields: &impl Serialize) -> Result<Box<RawValue>, serde_json::Error> {
    let fields = to_raw_value(fields)?;
    let start = &entry.get()[..entry.get().len() - 1];
    RawValue::from_string(format!("{start},{}", &fields.get()[1..]))
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

impl_extractible!([] Analytics, |req, depot| Self::from_request(req, depot).await, |_operation| {});
