//! The dashboard in a real browser: starts what ui/browser/*.spec.ts test, and runs them.
//!
//! `TIDEMARK_TEST_BROWSER_ARGS` adds arguments of `playwright test`, as in `-g palette`.

mod control;
mod history;
mod pictures;
mod world;

use std::path::Path;

use tokio::process::Command;

use self::world::World;

/// Runs the browser's tests with these arguments.
async fn run_browser_tests(arguments: &[&str]) {
    let world = World::start().await;
    let ui = Path::new(env!("CARGO_MANIFEST_DIR")).join("ui");
    let chosen = std::env::var("TIDEMARK_TEST_BROWSER_ARGS").unwrap_or_default();
    let output = Command::new(ui.join("node_modules/.bin/playwright"))
        .args(["test", "--project", "tests"])
        .args(arguments)
        .args(chosen.split_whitespace())
        .current_dir(&ui)
        .env("TIDEMARK_BROWSER_WORLD", world.description().to_string())
        .env("TIDEMARK_BROWSER_OUTPUT", Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser"))
        .kill_on_drop(true)
        .output()
        .await
        .expect("Playwright is installed (scripts/install-ui)");
    let text = [output.stdout, output.stderr].concat();
    println!("{}", String::from_utf8_lossy(&text));
    assert!(output.status.success(), "tests in the browser failed: see above");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_work_in_a_browser() {
    run_browser_tests(&["--grep-invert", "@deep"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes: make test-deep"]
async fn pages_work_in_a_browser_at_length() {
    run_browser_tests(&["--grep", "@deep"]).await;
}
