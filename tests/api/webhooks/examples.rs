//! The receivers of docs/events.md.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use harness::{http_client, report_skipped, wait_until};
use serde_json::json;
use tidemark::model::event::EventType;

use super::deliveries::Hooks;

const PAGE: &str = include_str!("../../../docs/events.md");

/// A receiver that ends with the test.
struct Example(Child);

impl Drop for Example {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// The code block of a language.
fn example(language: &str) -> &'static str {
    let (_, code) = PAGE.split_once(&format!("```{language}\n")).unwrap();
    code.split_once("```").unwrap().0
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Runs a receiver, which prints the type of a signed event and refuses another.
async fn check(mut command: Command) {
    let (hooks, port) = (Hooks::start_without_worker().await, free_port());
    let url = format!("http://127.0.0.1:{port}/");
    let (path, secret) = hooks.create(&url, json!({})).await;
    command.env("SECRET", secret).env("PORT", port.to_string()).stdout(Stdio::piped());
    let mut example = Example(command.spawn().unwrap());
    let mut output = BufReader::new(example.0.stdout.take().unwrap());
    let forged = || async {
        let request = http_client().post(&url).header("webhook-id", "1").header("webhook-timestamp", "1");
        request.header("webhook-signature", "v1,Zm9yZ2Vk").body("{}").send().await.ok()
    };
    assert_eq!(wait_until("the receiver answers", forged).await.status(), 401);
    hooks.record(EventType::AccountFailing).await;
    hooks.deliver();
    let delivery = hooks.wait_deliveries(&path, 1).await.remove(0);
    assert_eq!(delivery["response_code"], 204, "{delivery}");
    let line = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line
    });
    assert_eq!(line.await.unwrap(), "account.failing\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn python_receiver_verifies_events() {
    let python = std::env::var_os("TIDEMARK_TEST_PYTHON").expect("no Python to test with: run `make test`");
    let mut command = Command::new(python);
    command.args(["-c", example("python")]);
    check(command).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn node_receiver_verifies_events() {
    if Command::new("node").arg("--version").output().is_err() {
        return report_skipped("the receiver of docs/events.md in Node: there is no node");
    }
    let mut command = Command::new("node");
    command.args(["--input-type=module", "--eval", example("js")]);
    check(command).await;
}

#[test]
fn receivers_have_about_ten_lines() {
    for language in ["python", "js"] {
        assert!(example(language).lines().count() <= 12, "{language}");
    }
}
