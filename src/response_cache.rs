//! Caches analytics responses, and what they are computed from, until the data changes, in any process.
//!
//! The [`DataVersion`] is read before the computation, so a cached value is never older than its version. Memory is bounded;
//! the least used entries are evicted first.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use moka::future::Cache;
use moka::ops::compute::{CompResult, Op};
use parking_lot::Mutex;
use serde::Serialize;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::store::outbox::data_version::{DataVersion, VersionedRecords};

/// Bytes of an entry besides its value: key, version and the cache's own bookkeeping.
const ENTRY_OVERHEAD_BYTES: usize = 512;

/// Identifies a value: the organization, and a digest of everything else that determines it besides stored data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheKey {
    organization: Uuid,
    digest: [u8; 32],
}

impl CacheKey {
    pub fn new(organization: Uuid, request: &impl Serialize) -> Result<Self, serde_json::Error> {
        let digest = Sha256::digest(serde_json::to_vec(request)?).into();
        Ok(CacheKey { organization, digest })
    }
}

/// A serialized response body with its entity tag, and its compressed forms once they were requested.
#[derive(Debug)]
pub struct CachedResponse {
    body: Bytes,
    etag: String,
    /// The cursor of a page that is not the last one.
    next_cursor: Option<String>,
    encodings: Mutex<Vec<(&'static str, Bytes)>>,
}

impl CachedResponse {
    pub fn new(body: impl Into<Bytes>) -> Self {
        let body = body.into();
        let etag = etag(&body);
        CachedResponse::with_etag(body, etag)
    }

    /// Sets the entity tag, which differs for any two bodies, without quotes.
    pub fn with_etag(body: impl Into<Bytes>, etag: String) -> Self {
        CachedResponse { body: body.into(), etag, next_cursor: None, encodings: Mutex::default() }
    }

    /// Sets the cursor of the next page.
    pub fn with_next_cursor(self, next_cursor: Option<String>) -> Self {
        CachedResponse { next_cursor, ..self }
    }

    pub fn next_cursor(&self) -> Option<&str> {
        self.next_cursor.as_deref()
    }

    /// Adds compressed forms of the body.
    pub fn with_encodings<const N: usize>(self, encodings: [(&'static str, &'static [u8]); N]) -> Self {
        let encodings = encodings.map(|(coding, bytes)| (coding, Bytes::from_static(bytes)));
        CachedResponse { encodings: Mutex::new(encodings.into()), ..self }
    }

    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The entity tag of the uncompressed body, without quotes.
    pub fn etag(&self) -> &str {
        &self.etag
    }

    /// Returns the compressed body. Compressed forms are stored while together they are no larger than the body.
    pub fn encoded<E>(
        &self,
        coding: &'static str,
        encode: impl FnOnce(&[u8]) -> Result<Vec<u8>, E>,
    ) -> Result<Bytes, E> {
        let find = |encodings: &[(&str, Bytes)]| {
            encodings.iter().find(|(name, _)| *name == coding).map(|(_, bytes)| bytes.clone())
        };
        if let Some(bytes) = find(&self.encodings.lock()) {
            return Ok(bytes);
        }
        let encoded = Bytes::from(encode(&self.body)?);
        let mut encodings = self.encodings.lock();
        let used: usize = encodings.iter().map(|(_, bytes)| bytes.len()).sum();
        if find(&encodings).is_none() && used + encoded.len() <= self.body.len() {
            encodings.push((coding, encoded.clone()));
        }
        Ok(encoded)
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        2 * self.body.len() + self.etag.len()
    }
}

/// Computes the entity tag of a body.
pub fn etag(body: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(&Sha256::digest(body)[..16])
}

type Entry<V> = (DataVersion, Arc<V>);

/// A cache of this process. Cheap to clone.
pub struct VersionedCache<V> {
    cache: Option<Cache<CacheKey, Entry<V>>>,
    counts: Arc<Counts>,
}

impl<V> Clone for VersionedCache<V> {
    fn clone(&self) -> Self {
        VersionedCache { cache: self.cache.clone(), counts: Arc::clone(&self.counts) }
    }
}

pub type ResponseCache = VersionedCache<CachedResponse>;

#[derive(Debug, Default)]
struct Counts {
    hits: AtomicU64,
    shared: AtomicU64,
    misses: AtomicU64,
}

/// Lookups since the process started, and the current size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheStats {
    /// Served from the cache.
    pub hits: u64,
    /// Served from the computation of a concurrent request with the same key.
    pub shared: u64,
    /// Computed.
    pub misses: u64,
    pub entries: u64,
    pub bytes: u64,
}

impl<V: Send + Sync + 'static> VersionedCache<V> {
    /// Creates a cache of this capacity for values of so many bytes each; 0 disables it.
    pub fn new(max_bytes: u64, bytes: fn(&V) -> usize) -> Self {
        let weigh = move |_: &CacheKey, (_, value): &Entry<V>| {
            u32::try_from(bytes(value) + ENTRY_OVERHEAD_BYTES).unwrap_or(u32::MAX)
        };
        let build = || Cache::builder().max_capacity(max_bytes).weigher(weigh).build();
        VersionedCache { cache: (max_bytes > 0).then(build), counts: Arc::default() }
    }

    /// Returns the value cached under this key if its version is current, or computes it, once for all concurrent requests
    /// with this key. Errors are not cached, nor is anything without a key.
    ///
    /// `fetch` gets the version of the cached value and returns the current one, with the records to compute from if that
    /// differs.
    pub async fn get_or_compute<R, E: Send + Sync + 'static>(
        &self,
        cache_key: Option<CacheKey>,
        fetch: impl AsyncFnOnce(Option<DataVersion>) -> Result<VersionedRecords<R>, E>,
        compute: impl AsyncFnOnce(R) -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        let slot = self.cache.as_ref().zip(cache_key);
        let cached = match slot {
            Some((cache, key)) => cache.get(&key).await,
            None => None,
        };
        // Read before computing, so that a cached value is never older than its version.
        let fetched = fetch(cached.as_ref().map(|(version, _)| *version)).await?;
        let (version, records) = match (fetched, cached) {
            (VersionedRecords::Changed(version, records), _) => (version, records),
            (VersionedRecords::Unchanged, Some((_, value))) => {
                self.counts.hits.fetch_add(1, Ordering::Relaxed);
                return Ok(value);
            }
            (VersionedRecords::Unchanged, None) => unreachable!("no version was given"),
        };
        let Some((cache, key)) = slot else { return compute(records).await.map(Arc::new) };
        let outcome = cache
            .entry(key)
            .and_try_compute_with(async |entry| match entry {
                Some(entry) if entry.value().0.is_at_least(&version) => Ok(Op::Nop),
                _ => Ok(Op::Put((version, Arc::new(compute(records).await?)))),
            })
            .await?;
        let (count, entry) = match outcome {
            CompResult::Inserted(entry) | CompResult::ReplacedWith(entry) => (&self.counts.misses, entry),
            CompResult::Unchanged(entry) | CompResult::Removed(entry) => (&self.counts.shared, entry),
            CompResult::StillNone(_) => unreachable!("an absent entry is always computed"),
        };
        count.fetch_add(1, Ordering::Relaxed);
        Ok(entry.into_value().1)
    }

    pub async fn stats(&self) -> CacheStats {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (mut entries, mut bytes) = (0, 0);
        if let Some(cache) = &self.cache {
            cache.run_pending_tasks().await;
            (entries, bytes) = (cache.entry_count(), cache.weighted_size());
        }
        let Counts { hits, shared, misses } = &*self.counts;
        CacheStats { hits: read(hits), shared: read(shared), misses: read(misses), entries, bytes }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn key(number: u32) -> CacheKey {
        CacheKey::new(Uuid::nil(), &number).unwrap()
    }

    /// Looks up a key under a version; computes the text, or fails where it is empty.
    async fn get(cache: &ResponseCache, number: u32, version: i64, text: &str) -> Result<String, String> {
        let compute = async |()| {
            if text.is_empty() { Err("failed".to_owned()) } else { Ok(CachedResponse::new(text.to_owned())) }
        };
        let response = cache.get_or_compute(Some(key(number)), fetch(version), compute).await?;
        Ok(String::from_utf8(response.body().to_vec()).unwrap())
    }

    fn fetch(version: i64) -> impl AsyncFnOnce(Option<DataVersion>) -> Result<VersionedRecords<()>, String> {
        let current = DataVersion::example(version);
        async move |cached| {
            let is_current = cached == Some(current);
            Ok(if is_current { VersionedRecords::Unchanged } else { VersionedRecords::Changed(current, ()) })
        }
    }

    fn lookups(stats: CacheStats) -> (u64, u64, u64) {
        (stats.hits, stats.shared, stats.misses)
    }

    #[tokio::test]
    async fn response_is_cached_per_version_and_errors_are_not() {
        let cache = ResponseCache::new(1 << 20, CachedResponse::bytes);
        assert_eq!(get(&cache, 1, 1, "").await, Err("failed".to_owned()));
        assert_eq!(get(&cache, 1, 1, "one").await.unwrap(), "one");
        assert_eq!(get(&cache, 1, 1, "").await.unwrap(), "one");
        assert_eq!(get(&cache, 2, 1, "other").await.unwrap(), "other");
        assert_eq!(get(&cache, 1, 2, "").await, Err("failed".to_owned()));
        assert_eq!(get(&cache, 1, 2, "two").await.unwrap(), "two");
        assert_eq!(get(&cache, 1, 2, "").await.unwrap(), "two");
        // A request that began before the change.
        assert_eq!(get(&cache, 1, 1, "").await.unwrap(), "two");
        assert_eq!(lookups(cache.stats().await), (2, 1, 3));
        assert_ne!(CacheKey::new(Uuid::max(), &1_u32).unwrap(), key(1));
    }

    #[tokio::test]
    async fn concurrent_requests_share_one_computation() {
        let cache = ResponseCache::new(1 << 20, CachedResponse::bytes);
        let pending = async |()| std::future::pending().await;
        let mut stuck = Box::pin(cache.get_or_compute(Some(key(1)), fetch(1), pending));
        assert!((&mut stuck).now_or_never().is_none());
        let mut next = Box::pin(get(&cache, 1, 1, "next"));
        let mut last = Box::pin(get(&cache, 1, 1, "last"));
        assert!((&mut next).now_or_never().is_none() && (&mut last).now_or_never().is_none());
        // A cancelled computation passes to the next request.
        drop(stuck);
        let (next, last) = tokio::join!(next, last);
        assert_eq!(next, last);
        assert_eq!(lookups(cache.stats().await), (0, 1, 1));
    }

    #[tokio::test]
    async fn memory_is_bounded() {
        let cache = ResponseCache::new(100_000, CachedResponse::bytes);
        let body = "x".repeat(2_000);
        for number in 0..1_000 {
            get(&cache, number, 1, &body).await.unwrap();
        }
        let stats = cache.stats().await;
        assert!((1..=100_000).contains(&stats.bytes), "{stats:?}");
        assert!((10..=22).contains(&stats.entries), "{stats:?}");
        let disabled = ResponseCache::new(0, CachedResponse::bytes);
        assert_eq!(get(&disabled, 1, 1, "one").await.unwrap(), "one");
        assert_eq!(get(&disabled, 1, 1, "two").await.unwrap(), "two");
    }

    #[test]
    fn encodings_are_cached_up_to_the_size_of_the_body() {
        let response = CachedResponse::new(vec![b'x'; 100]);
        let is_encoded = |coding, length: usize| {
            let mut called = false;
            let bytes = response.encoded(coding, |_| {
                called = true;
                Ok::<_, String>(vec![0; length])
            });
            assert_eq!(bytes.unwrap().len(), length);
            called
        };
        assert!(is_encoded("a", 60) && !is_encoded("a", 60));
        assert!(is_encoded("b", 50) && is_encoded("b", 50), "both together are larger than the body");
        assert!(is_encoded("c", 40) && !is_encoded("c", 40));
    }
}
