//! The unit of work of a request that changes something.

use crate::http::output::problem::Problem;
use crate::store::{Retryable, retry_on_conflict};

/// Does a unit of work from its beginning to its commit, and again while another one is in its way. Whatever it does is
/// done inside its transaction, the keeping of its answer under an `Idempotency-Key` included, so only the last time
/// counts.
pub async fn unit<T, F>(work: impl FnMut() -> F) -> Result<T, Problem>
where
    F: Future<Output = Result<T, Problem>>,
{
    retry_on_conflict(work).await
}

impl Retryable for Problem {
    fn is_retryable(&self) -> bool {
        self.gave_way()
    }
}
