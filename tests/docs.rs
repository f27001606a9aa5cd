//! The commands of the documentation, run as a reader would: in bash, and in the plain shell of the system. And its links.

mod harness;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use harness::{Organization, Stack};
use serde_json::Value;
use tempfile::TempDir;

/// The shells, told to end at the first failure.
const SHELLS: [&[&str]; 2] = [&["bash", "-euo", "pipefail", "-c"], &["sh", "-eu", "-c"]];

/// All commands of a page, in their order; the reader's two variables come from outside.
fn commands(page: &str) -> String {
    let blocks = page.split("```sh\n").skip(1);
    blocks.filter_map(|block| block.split("```").next()).collect::<Vec<_>>().join("\n")
}

/// Runs commands as one script, none of which may complain, and returns what they print.
#[track_caller]
fn run(shell: &[&str], script: &str, folder: &Path, organization: &Organization) -> String {
    let output = Command::new(shell[0])
        .args(&shell[1..])
        .arg(format!("{script}\ntrue"))
        .env("BASE", &organization.stack.connection.base_url)
        .env("KEY", &organization.key)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (out, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && told.is_empty(), "{shell:?}: {out}\n{told}");
    out.into_owned()
}

#[tokio::test]
async fn every_command_of_the_page_about_the_api_works() {
    let script = commands(include_str!("../docs/api.md"));
    assert!(script.matches("api ").count() > 10, "{script}");
    for shell in SHELLS {
        let organization = Stack::shared().organization().await;
        let out = run(shell, &script, Path::new("."), &organization);
        assert!(out.contains("must be from 1 to 200") && out.contains("304\n"), "{shell:?}: {out}");
    }
}

/// A folder with what a demo says of itself in it, as if it were the organization's.
fn demo_of(organization: &Organization) -> TempDir {
    let told = std::env::var("TIDEMARK_TEST_STACK").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let demo = folder.path().join(".tidemark");
    std::fs::create_dir(&demo).unwrap();
    std::fs::copy(Path::new(&told).with_extension("env"), demo.join("demo.env")).unwrap();
    let mut told: Value = serde_json::from_slice(&std::fs::read(&told).unwrap()).unwrap();
    told["api_key"] = organization.key.as_str().into();
    told["organization_id"] = organization.id.to_string().into();
    std::fs::write(demo.join("demo.json"), serde_json::to_vec_pretty(&told).unwrap()).unwrap();
    folder
}

#[tokio::test]
async fn data_teams_connect_to_a_demo_and_to_an_installation_as_the_page_says() {
    let stack = Stack::shared();
    let state = std::env::var("TIDEMARK_TEST_STACK").unwrap();
    let credentials = Path::new(&state).with_file_name("clickhouse").join("credentials.json");
    for shell in SHELLS {
        let organization = stack.organization().await;
        let mut script = commands(include_str!("../docs/data-access.md"));
        for (said, here) in [
            ("/var/lib/tidemark/clickhouse/credentials.json", credentials.to_str().unwrap()),
            ("http://127.0.0.1:8123", &stack.connection.clickhouse_url),
            ("param_org=ID", &format!("param_org={}", organization.id)),
        ] {
            assert_eq!(script.matches(said).count(), 1, "{said}: {script}");
            script = script.replace(said, here);
        }
        let folder = demo_of(&organization);
        // Nothing was observed yet: the day of which ClickHouse says so.
        assert_eq!(run(shell, &script, folder.path(), &organization), "1970-01-01\n1970-01-01\n");
    }
}

#[tokio::test]
async fn the_first_requests_of_the_readme_work_beside_a_demo() {
    let stack = Stack::shared();
    let section = include_str!("../README.md").split("## What to try next").nth(1).unwrap();
    let lines = section.lines().filter_map(|line| line.strip_prefix("    "));
    let script: Vec<_> = lines.take_while(|line| !line.starts_with("PATH=")).collect();
    // What a reader fills in.
    let account = format!("\"{}\"", stack.sandbox_account("tiktok").username);
    let script = script.join("\n").replacen("\"…\"", &account, 1).replacen("\"…\"", "\"C9xYzAbCdEf\"", 1);
    assert!(script.matches("\napi ").count() == 5 && !script.contains('…'), "{script}");
    for shell in SHELLS {
        let organization = stack.organization().await;
        let folder = demo_of(&organization);
        let out = run(shell, &script, folder.path(), &organization);
        let (data, errors) = (out.matches("{\"data\":").count(), out.matches("urn:tidemark:error").count());
        assert!(data == 5 && errors == 0 && out.contains(&account), "{shell:?}: {out}");
    }
}

/// All Markdown files in a folder, and below it when `deep`.
fn pages(folder: &Path, deep: bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() && deep {
            found.extend(pages(&path, deep));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found
}

/// The anchors of a page's headings, as GitHub derives them.
fn anchors(page: &str) -> Vec<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let letters = heading.trim_start_matches('#').trim().to_lowercase();
        let letters = letters.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        letters.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_between_pages_lead_to_files_and_headings() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = pages(root, false);
    all.extend(["docs", "loadtest", "crates"].iter().flat_map(|folder| pages(&root.join(folder), true)));
    let mut links = 0;
    for page in all {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            if link.starts_with("https://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            assert!(target.exists(), "{page:?} links to {link}");
            let known = anchor.is_empty()
                || anchors(&std::fs::read_to_string(&target).unwrap()).contains(&anchor.into());
            assert!(known, "{page:?} links to {link}, which is no heading");
            links += 1;
        }
    }
    assert!(links > 50, "{links}");
}
