//! Finished answers, kept by question and served for as long as the version they were computed under is current.
//!
//! Nothing here knows what a version is made of, when one is current, or HTTP: whoever asks has read the version first.
//! Memory is bounded; what is asked seldom goes first.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use moka::future::Cache;
use moka::ops::compute::{CompResult, Op};
use serde::Serialize;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::store::outbox::data_version::Version;

/// What an entry takes beside its body: its key, its version and the cache's own records of it.
const ENTRY_BYTES: usize = 512;

/// What is asked, by whom: an operation and everything that its answer depends on beside the stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Question {
    organization: Uuid,
    digest: [u8; 32],
}

impl Question {
    pub fn new(
        organization: Uuid,
        operation: &'static str,
        about: &impl Serialize,
    ) -> Result<Self, postcard::Error> {
        let about = postcard::to_stdvec(&(operation, about))?;
        Ok(Question { organization, digest: Sha256::digest(about).into() })
    }
}

/// An answer in the form in which it leaves, and its encodings once somebody wanted them.
#[derive(Debug)]
pub struct Finished {
    body: Bytes,
    tag: String,
    encoded: Mutex<Vec<(&'static str, Bytes)>>,
}

impl Finished {
    pub fn new(body: Vec<u8>) -> Self {
        let tag = tag(&body);
        Finished { body: body.into(), tag, encoded: Mutex::default() }
    }

    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The entity tag of the body as it is, without quotes.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// The body in a coding. All that are kept take less than the body itself.
    pub fn encoded<E>(
        &self,
        coding: &'static str,
        encode: impl FnOnce(&[u8]) -> Result<Vec<u8>, E>,
    ) -> Result<Bytes, E> {
        let kept = |encoded: &[(&str, Bytes)]| {
            encoded.iter().find(|(name, _)| *name == coding).map(|(_, bytes)| bytes.clone())
        };
        if let Some(bytes) = kept(&self.encoded.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(bytes);
        }
        let bytes = Bytes::from(encode(&self.body)?);
        let mut encoded = self.encoded.lock().unwrap_or_else(PoisonError::into_inner);
        let taken: usize = encoded.iter().map(|(_, bytes)| bytes.len()).sum();
        if kept(&encoded).is_none() && taken + bytes.len() <= self.body.len() {
            encoded.push((coding, bytes.clone()));
        }
        Ok(bytes)
    }

    fn weight(&self) -> u32 {
        u32::try_from(2 * self.body.len() + self.tag.len() + ENTRY_BYTES).unwrap_or(u32::MAX)
    }
}

/// The entity tag of a body.
pub fn tag(body: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(&Sha256::digest(body)[..16])
}

/// An answer and the version it was computed under.
type Kept = (Version, Arc<Finished>);

/// The answers that this process keeps. Cheap to clone.
#[derive(Clone)]
pub struct Answers {
    cache: Option<Cache<Question, Kept>>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    hits: AtomicU64,
    shared: AtomicU64,
    misses: AtomicU64,
}

/// How often answers were there, since the process started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// Served without computing anything.
    pub hits: u64,
    /// Served with what another request for the same was just computing.
    pub shared: u64,
    /// Computed.
    pub misses: u64,
    /// Answers kept.
    pub entries: u64,
    /// Bytes they take.
    pub bytes: u64,
}

impl Answers {
    /// Keeps answers of so many bytes altogether; none with 0.
    pub fn new(bytes: u64) -> Self {
        let keeping = || {
            Cache::builder()
                .max_capacity(bytes)
                .weigher(|_question: &Question, (_, answer): &Kept| answer.weight())
                .build()
        };
        Answers { cache: (bytes > 0).then(keeping), counts: Arc::default() }
    }

    pub const fn keeps(&self) -> bool {
        self.cache.is_some()
    }

    /// The answer to a question under a version that was read before; computed once for all who wait for it, and kept
    /// unless that fails.
    pub async fn get<E: Send + Sync + 'static>(
        &self,
        question: Question,
        version: Version,
        compute: impl Future<Output = Result<Finished, E>>,
    ) -> Result<Arc<Finished>, E> {
        let Some(cache) = &self.cache else { return compute.await.map(Arc::new) };
        let current = |(kept, _): &Kept| *kept == version;
        if let Some((_, answer)) = cache.get(&question).await.filter(current) {
            self.counts.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(answer);
        }
        let done = cache
            .entry(question)
            .and_try_compute_with(async |entry| match entry {
                Some(entry) if current(entry.value()) => Ok(Op::Nop),
                _ => Ok(Op::Put((version, Arc::new(compute.await?)))),
            })
            .await?;
        let (computed, answer) = match done {
            CompResult::Inserted(entry) | CompResult::ReplacedWith(entry) => (true, entry.into_value().1),
            CompResult::Unchanged(entry) | CompResult::Removed(entry) => (false, entry.into_value().1),
            CompResult::StillNone(_) => unreachable!("only an answer that is there is left as it is"),
        };
        let count = if computed { &self.counts.misses } else { &self.counts.shared };
        count.fetch_add(1, Ordering::Relaxed);
        Ok(answer)
    }

    /// How well keeping answers does.
    pub async fn told(&self) -> Use {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (mut entries, mut bytes) = (0, 0);
        if let Some(cache) = &self.cache {
            cache.run_pending_tasks().await;
            (entries, bytes) = (cache.entry_count(), cache.weighted_size());
        }
        let Counts { hits, shared, misses } = &*self.counts;
        Use { hits: read(hits), shared: read(shared), misses: read(misses), entries, bytes }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn question(number: u32) -> Question {
        Question::new(Uuid::nil(), "test", &number).unwrap()
    }

    fn version(number: i64) -> Version {
        Version::example(number)
    }

    async fn get(answers: &Answers, number: u32, under: i64, text: &str) -> Result<String, String> {
        let work =
            async { if text.is_empty() { Err("failed".to_owned()) } else { Ok(Finished::new(text.into())) } };
        let answer = answers.get(question(number), version(under), work).await?;
        Ok(String::from_utf8(answer.body().to_vec()).unwrap())
    }

    fn used(told: Use) -> (u64, u64, u64) {
        (told.hits, told.shared, told.misses)
    }

    #[tokio::test]
    async fn an_answer_is_served_under_its_version_alone_and_failures_are_not_kept() {
        let answers = Answers::new(1 << 20);
        assert_eq!(get(&answers, 1, 1, "").await, Err("failed".to_owned()));
        assert_eq!(get(&answers, 1, 1, "one").await.unwrap(), "one");
        assert_eq!(get(&answers, 1, 1, "").await.unwrap(), "one");
        assert_eq!(get(&answers, 2, 1, "other").await.unwrap(), "other");
        assert_eq!(get(&answers, 1, 2, "").await, Err("failed".to_owned()));
        assert_eq!(get(&answers, 1, 2, "two").await.unwrap(), "two");
        assert_eq!(get(&answers, 1, 2, "").await.unwrap(), "two");
        assert_eq!(used(answers.told().await), (2, 0, 3));
        let other = Question::new(Uuid::max(), "test", &1_u32).unwrap();
        assert_ne!((other, question(1)), (question(1), Question::new(Uuid::nil(), "other", &1_u32).unwrap()));
    }

    #[tokio::test]
    async fn those_who_wait_get_one_answer_and_one_who_leaves_hands_on() {
        let answers = Answers::new(1 << 20);
        let mut stuck =
            Box::pin(answers.get(question(1), version(1), std::future::pending::<Result<_, String>>()));
        assert!((&mut stuck).now_or_never().is_none());
        let mut next = Box::pin(get(&answers, 1, 1, "next"));
        let mut last = Box::pin(get(&answers, 1, 1, "last"));
        assert!((&mut next).now_or_never().is_none() && (&mut last).now_or_never().is_none());
        drop(stuck);
        let (next, last) = tokio::join!(next, last);
        assert_eq!(next, last);
        assert_eq!(used(answers.told().await), (0, 1, 1));
    }

    #[tokio::test]
    async fn memory_is_bounded() {
        let answers = Answers::new(100_000);
        let body = "x".repeat(2_000);
        for number in 0..1_000 {
            get(&answers, number, 1, &body).await.unwrap();
        }
        let told = answers.told().await;
        assert!((1..=100_000).contains(&told.bytes), "{told:?}");
        assert!((10..=22).contains(&told.entries), "{told:?}");
        let none = Answers::new(0);
        assert!(!none.keeps());
        assert_eq!(get(&none, 1, 1, "one").await.unwrap(), "one");
        assert_eq!(get(&none, 1, 1, "two").await.unwrap(), "two");
    }

    #[test]
    fn encodings_are_kept_while_they_fit() {
        let finished = Finished::new(vec![b'x'; 100]);
        let take = |coding, length: usize| {
            let mut made = false;
            let bytes = finished.encoded(coding, |_| {
                made = true;
                Ok::<_, String>(vec![0; length])
            });
            assert_eq!(bytes.unwrap().len(), length);
            made
        };
        assert!(take("a", 60) && !take("a", 60));
        assert!(take("b", 50) && take("b", 50), "both together are larger than the body");
        assert!(take("c", 40) && !take("c", 40));
    }
}
