//! `tidemark clickhouse`: errors with advice, the end of its parent, and ClickHouse's Python client. crates/chdb-http tests the
//! server.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use chdb_http::Credentials;
use harness::Process;
use tempfile::TempDir;

const EXE: &str = env!("CARGO_BIN_EXE_tidemark");
const EXIT_TIMEOUT: Duration = Duration::from_secs(30);

/// A running server with its URL and users.
fn start(data: &Path) -> (Process, String, Credentials) {
    let mut server = Process::clickhouse(data);
    let url = server.listening_url();
    (server, url, Credentials::read(data).unwrap())
}

#[test]
fn failed_start_gives_advice() {
    let directory = TempDir::new().unwrap();
    let data = directory.path().join("data");
    let (server, url, credentials) = start(&data);
    assert_eq!((&*credentials.user, &*credentials.readonly_user), ("tidemark", "analyst"));
    let failed = |arguments: &[&str]| {
        let output =
            Command::new(EXE).arg("clickhouse").args(arguments).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty());
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        stderr
    };
    let other = directory.path().join("other").display().to_string();
    let missing = "/nowhere/libchdb.so";
    let stderr = failed(&["--listen", "127.0.0.1:0", "--data", &other, "--libchdb", missing]);
    assert!(stderr.contains("make libchdb") && stderr.contains("TIDEMARK_LIBCHDB"), "{stderr}");
    let text = directory.path().join("text.so");
    std::fs::write(&text, "text").unwrap();
    let text = text.display().to_string();
    let stderr = failed(&["--listen", "127.0.0.1:0", "--data", &other, "--libchdb", &text]);
    assert!(stderr.contains("make libchdb"), "{stderr}");
    let address = url.trim_start_matches("http://");
    let stderr = failed(&["--listen", address, "--data", &other]);
    assert!(stderr.contains(address) && stderr.contains("--listen"), "{stderr}");
    let stderr = failed(&["--listen", "0.0.0.0:0", "--data", &other]);
    assert!(stderr.contains("--allow-remote"), "{stderr}");
    let stderr = failed(&["--listen", "127.0.0.1:0", "--data", &data.display().to_string()]);
    assert!(stderr.contains(&server.pid().to_string()) && stderr.contains("--data"), "{stderr}");
}

#[test]
fn exits_when_its_parent_is_killed() {
    let directory = TempDir::new().unwrap();
    let mut parent = Command::new("sleep").arg("600").stdout(Stdio::piped()).spawn().unwrap();
    let mut child = Command::new(EXE)
        .args(["clickhouse", "--exit-with-stdin", "--listen", "127.0.0.1:0", "--data"])
        .arg(directory.path())
        .stdin(parent.stdout.take().unwrap())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 17];
    child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    assert_eq!(&ready, b"{\"event\":\"ready\",");
    parent.kill().unwrap();
    parent.wait().unwrap();
    let deadline = Instant::now() + EXIT_TIMEOUT;
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "not within {} s", EXIT_TIMEOUT.as_secs());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(child.wait().unwrap().success());
}

#[test]
fn clickhouse_connect_works() {
    let directory = TempDir::new().unwrap();
    let (_server, url, credentials) = start(&directory.path().join("data"));
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let python = variable("TIDEMARK_TEST_PYTHON").unwrap_or_else(|| {
        let cache = variable("XDG_CACHE_HOME")
            .unwrap_or_else(|| variable("HOME").expect("HOME is set").join(".cache"));
        cache.join("tidemark/test-python-1.12.0/bin/python")
    });
    assert!(python.exists(), "{} is missing: run scripts/install-test-python", python.display());
    let output = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/clickhouse_connect_check.py"))
        .args([&url, &credentials.user, &credentials.password])
        .args([&credentials.readonly_user, &credentials.readonly_password])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout == b"ok\n", "{stderr}");
}
