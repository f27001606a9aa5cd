//! Runs the transaction of a request.

use crate::http::output::problem::Problem;
use crate::store::retry_on_conflict;

/// Runs a whole transaction, from its begin to its commit, and repeats it while it conflicts with a concurrent one.
/// Everything with an effect, such as storing the response under an idempotency key, must be part of the transaction.
pub async fn in_transaction<T, F>(transaction: impl FnMut() -> F) -> Result<T, Problem>
where
    F: Future<Output = Result<T, Problem>>,
{
    retry_on_conflict(transaction).await
}
