//! The supported releases of ClickHouse and Postgres: the pages name them, what is installed is one of them, and the
//! statements run on the oldest and the newest ClickHouse.

use std::process::Command;

use chdb_http::LIBCHDB_VERSION;
use tidemark::store::migrate::supported_releases::{CLICKHOUSE, POSTGRES};

use crate::read;

#[test]
fn pages_name_the_supported_releases() {
    for page in ["README.md", "docs/install.md"] {
        let words: Vec<_> = read(page).split_whitespace().map(str::to_owned).collect();
        let text = words.join(" ");
        for supported in [CLICKHOUSE, POSTGRES] {
            assert!(text.contains(&supported.to_string()), "{page} lacks {supported}");
        }
    }
}

#[test]
fn installed_releases_are_supported() {
    assert_eq!(CLICKHOUSE.check(LIBCHDB_VERSION), Ok(()));
    let compose = read("docker-compose.yml");
    for (image, supported) in [("clickhouse/clickhouse-server:", CLICKHOUSE), ("postgres:", POSTGRES)] {
        let tags: Vec<_> = compose.split(&format!("image: {image}")).skip(1).collect();
        assert!(!tags.is_empty(), "{image}");
        for tag in tags {
            assert_eq!(supported.check(tag.lines().next().unwrap()), Ok(()));
        }
    }
}

#[test]
#[ignore = "downloads two engines and takes a minute: make test-deep"]
fn statements_run_on_the_oldest_and_the_newest_clickhouse() {
    for release in [CLICKHOUSE.oldest, CLICKHOUSE.newest] {
        let release = release.iter().map(u32::to_string).collect::<Vec<_>>().join(".");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/test-clickhouse");
        let output = Command::new(script).args([&release, "--histories", "40"]).output().unwrap();
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let is_checked = stdout.contains(&format!("ClickHouse {release}."));
        assert!(output.status.success() && is_checked, "{release}: {stdout}\n{stderr}");
    }
}
