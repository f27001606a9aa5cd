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

/// Every supported major version can be tested (TIDEMARK_TEST_POSTGRES) on both architectures; the demo takes the newest.
#[test]
fn pinned_postgres_packages_are_of_the_supported_releases() {
    let pins = read("scripts/postgres.sha512");
    let mut pinned = Vec::new();
    for line in pins.lines() {
        let (digest, archive) = line.split_once("  embedded-postgres-linux-").expect(line);
        assert!(digest.len() == 128 && digest.bytes().all(|digit| digit.is_ascii_hexdigit()), "{line}");
        let (architecture, version) = archive.split_once('-').expect(line);
        let major: u32 = version.split_once('.').expect(line).0.parse().expect(line);
        pinned.push((architecture, major));
    }
    let [oldest, newest] = [POSTGRES.oldest[0], POSTGRES.newest[0]];
    let supported =
        ["x64", "arm64"].into_iter().flat_map(|name| (oldest..=newest).map(move |major| (name, major)));
    assert!(pinned.iter().copied().eq(supported), "{pinned:?}");
    assert!(read("scripts/install-postgres").contains(&format!("${{TIDEMARK_TEST_POSTGRES:-{newest}}}")));
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
