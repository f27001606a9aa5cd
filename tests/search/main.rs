//! Search finds exactly the records whose text contains the query, in ranking order, soon after every write, and resumes
//! after a restart. `GET /search` is tested in tests/api.

mod counters;
mod following;
mod matching;
mod rebuilding;
mod restarting;
mod setup;
