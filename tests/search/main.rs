//! Search finds exactly the records whose text contains the query, best first, soon after every write, and goes on
//! where it stopped. What `GET /search` makes of it over HTTP is not tested here.

mod counters;
mod following;
#[path = "../harness/mod.rs"]
mod harness;
mod matching;
mod rebuilding;
mod restarting;
mod setup;
