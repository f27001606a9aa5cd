//! Analytics endpoints: every number is compared with a plain-loop model, and every request rule is tested.

#[path = "../harness/mod.rs"]
mod harness;

mod age_examples;
mod age_model;
mod aged_posts;
mod ages;
mod agree;
mod agreement;
mod batches;
mod bounds;
mod content;
mod course;
mod courses;
mod coverage;
mod data_page;
mod data_team;
mod examples;
mod export_streams;
mod exports;
mod large_batches;
mod model;
mod posts;
mod ranking_model;
mod ranking_plans;
mod rankings;
mod response_cache;
mod retention;
mod rollup_cache;
mod scale;
mod series;
mod sparklines;
mod statements;
mod steps;
mod sums;
mod verify_rebuild;
mod video_rollup;
mod views;
mod windows;
