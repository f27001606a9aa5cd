//! The commands of the documentation, run as a reader would.

mod harness;

use std::process::{Command, Stdio};

use harness::Stack;

/// All commands of a page, in their order; the reader's two variables come from outside.
fn commands(page: &str) -> String {
    let blocks = page.split("```sh\n").skip(1);
    blocks.filter_map(|block| block.split("```").next()).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn every_command_of_the_page_about_the_api_works() {
    let organization = Stack::shared().organization().await;
    let script = commands(include_str!("../docs/api.md"));
    assert!(script.matches("api ").count() > 10, "{script}");
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &format!("{script}\ntrue")])
        .env("BASE", &organization.stack.connection.base_url)
        .env("KEY", &organization.key)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (out, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{told}");
    assert!(out.contains("must be from 1 to 200") && out.contains("304\n"), "{out}");
}
