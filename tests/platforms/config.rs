//! Which sources a configuration enables, and its errors.

use clap::Parser;
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use tidemark::platforms::{ConfigError, RequestBudget, SourceArgs, Sources};

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    sources: SourceArgs,
}

const GRAPH: [&str; 2] = ["--instagram-graph-user-id=178", "--instagram-graph-token=EAAB-secret"];
const RESEARCH: [&str; 2] = ["--tiktok-research-client-key=k", "--tiktok-research-client-secret=s-secret"];
const HTTP: [&str; 1] = ["--http-source-url=http://127.0.0.1:9/http"];

pub fn args(parts: &[&[&str]]) -> SourceArgs {
    let line = ["tidemark"].into_iter().chain(parts.iter().flat_map(|part| part.iter().copied()));
    Command::try_parse_from(line).expect("valid options").sources
}

fn names(parts: &[&[&str]]) -> Result<(Vec<&'static str>, Vec<&'static str>), String> {
    let sources =
        Sources::from_args(&args(parts), &RequestBudget::in_memory()).map_err(|error| error.to_string())?;
    Ok((sources.names(Platform::Instagram), sources.names(Platform::Tiktok)))
}

#[test]
fn no_credentials_configure_no_source() {
    assert_eq!(names(&[]), Ok((vec![], vec![])));
    let sources = Sources::from_args(&args(&[]), &RequestBudget::in_memory()).expect("defaults work");
    assert!(!sources.has_source(Platform::Instagram) && !sources.has_source(Platform::Tiktok));
    assert_eq!(
        names(&[&["--instagram-sources=", "--http-source-url=", "--instagram-graph-url="]]),
        Ok((vec![], vec![]))
    );
}

#[test]
fn credentials_enable_sources_in_order() {
    assert_eq!(names(&[&GRAPH]), Ok((vec!["instagram-graph"], vec![])));
    assert_eq!(
        names(&[&GRAPH, &RESEARCH, &HTTP]),
        Ok((vec!["instagram-graph", "http"], vec!["tiktok-research", "http"]))
    );
    let order = ["--instagram-sources=http, instagram-graph,http", "--tiktok-sources=none"];
    assert_eq!(names(&[&GRAPH, &RESEARCH, &HTTP, &order]), Ok((vec!["http", "instagram-graph"], vec![])));
}

#[test]
fn unusable_source_is_an_error_that_names_the_variable() {
    for (parts, expected) in [
        (&["--instagram-sources=instagram-graph"] as &[&str], "TIDEMARK_INSTAGRAM_GRAPH_USER_ID"),
        (
            &["--instagram-sources=instagram-graph", "--instagram-graph-user-id=1"],
            "TIDEMARK_INSTAGRAM_GRAPH_TOKEN",
        ),
        (&["--tiktok-sources=tiktok-research"], "TIDEMARK_TIKTOK_RESEARCH_CLIENT_KEY"),
        (&["--tiktok-sources=http"], "TIDEMARK_HTTP_SOURCE_URL"),
        (&["--tiktok-sources=instagram-graph"], "TIDEMARK_TIKTOK_SOURCES"),
        (&["--instagram-sources=magic"], "magic"),
        (&["--http-source-url=ftp://x/"], "TIDEMARK_HTTP_SOURCE_URL"),
        (&["--http-source-url=http://user:pass@x/"], "TIDEMARK_HTTP_SOURCE_URL"),
        (&["--http-source-url=nonsense"], "TIDEMARK_HTTP_SOURCE_URL"),
    ] {
        let error = names(&[parts]).expect_err("an error");
        assert!(error.contains(expected), "{parts:?}: {error}");
        assert!(!error.contains("user:pass"), "{error}");
    }
    let invalid_token = Sources::from_args(
        &args(&[&["--instagram-graph-user-id=1", "--instagram-graph-token=a\nb"]]),
        &RequestBudget::in_memory(),
    );
    assert!(matches!(invalid_token, Err(ConfigError::Setup { .. })));
}

#[test]
fn debug_output_contains_no_secret() {
    let debug = format!("{:?}", args(&[&GRAPH, &RESEARCH, &HTTP, &["--http-source-token=t-secret"]]));
    assert!(debug.contains("[redacted]") && !debug.contains("-secret"), "{debug}");
}

#[test]
fn readable_platforms_follow_from_the_sources() {
    let readable = |parts: &[&[&str]]| {
        Sources::from_args(&args(parts), &RequestBudget::in_memory()).expect("a configuration").readable()
    };
    let (instagram, tiktok) = (Platform::Instagram, Platform::Tiktok);
    assert_eq!(
        readable(&[&GRAPH, &RESEARCH]),
        ReadablePlatforms {
            accounts: vec![instagram, tiktok],
            posts_by_id: vec![tiktok],
            posts_by_shortcode: vec![]
        }
    );
    assert_eq!(
        readable(&[&GRAPH, &["--tiktok-sources=none"]]),
        ReadablePlatforms { accounts: vec![instagram], posts_by_id: vec![], posts_by_shortcode: vec![] }
    );
    assert_eq!(readable(&[&GRAPH, &HTTP]), ReadablePlatforms::new(Platform::ALL));
    assert_eq!(readable(&[]), ReadablePlatforms::new([]));
}
