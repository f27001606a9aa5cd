//! Runs the commands of the documentation in bash and sh, and checks links between pages.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use harness::{Organization, Stack};
use serde_json::Value;
use tempfile::TempDir;
use tidemark::model::payout::{Bonus, Payout, PayoutCount};

/// Exiting at the first failure.
const SHELLS: [&[&str]; 2] = [&["bash", "-euo", "pipefail", "-c"], &["sh", "-eu", "-c"]];

/// The `sh` blocks of a page.
fn commands(page: &str) -> String {
    let blocks = page.split("```sh\n").skip(1);
    blocks.filter_map(|block| block.split("```").next()).collect::<Vec<_>>().join("\n")
}

/// Runs a script that must write nothing to standard error; returns its output.
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
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && stderr.is_empty(), "{shell:?}: {stdout}\n{stderr}");
    stdout.into_owned()
}

#[tokio::test]
async fn commands_of_api_md_work() {
    let script = commands(include_str!("../docs/api.md"));
    assert!(script.matches("api ").count() > 10, "{script}");
    for shell in SHELLS {
        let organization = Stack::shared().organization().await;
        let out = run(shell, &script, Path::new("."), &organization);
        assert!(out.contains("must be from 1 to 200") && out.contains("304\n"), "{shell:?}: {out}");
    }
}

#[tokio::test]
async fn commands_of_campaigns_md_work() {
    let script = commands(include_str!("../docs/campaigns.md"));
    for shell in SHELLS {
        let organization = Stack::shared().organization().await;
        let folder = tempfile::tempdir().unwrap();
        let out = run(shell, &script, folder.path(), &organization);
        assert!(out.contains("\"eligible_videos\":") && out.contains("Summer for Acme"), "{shell:?}: {out}");
    }
}

#[tokio::test]
async fn commands_of_events_md_work() {
    let (_, rest) = include_str!("../docs/api.md").split_once("api() {").unwrap();
    let (function, _) = rest.split_once("\n}\n").unwrap();
    let script = format!("api() {{{function}\n}}\n{}", commands(include_str!("../docs/events.md")));
    for shell in SHELLS {
        let organization = Stack::shared().organization().await;
        let out = run(shell, &script, Path::new("."), &organization);
        assert!(out.contains("\"pagination\":") && out.contains("\"secret\":\"whsec_"), "{shell:?}: {out}");
    }
}

#[test]
fn payouts_of_campaigns_md_are_right() {
    let optional = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let mut cases = 0;
    for line in include_str!("../docs/campaigns.md").lines() {
        let columns: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [currency, rate, bonuses, minimum, maximum, views, amount, _] = columns[..] else { continue };
        let Ok(views) = views.parse::<i64>() else { continue };
        let bonus = |text: &str| {
            let (views, amount) = text.split_once(": ").unwrap();
            Bonus { views: views.parse().unwrap(), amount: amount.to_owned() }
        };
        let payout = Payout {
            currency: currency.to_owned(),
            count: PayoutCount::Lifetime,
            per_thousand_views: optional(rate),
            bonuses: bonuses.split(", ").filter(|text| !text.is_empty()).map(bonus).collect(),
            minimum_views: minimum.parse().ok(),
            maximum_per_video: optional(maximum),
        };
        assert_eq!(payout.violations(), [], "{line}");
        let terms = payout.terms().unwrap();
        let is_paid = terms.unpaid_reason(false, false, views).is_none();
        let paid = if is_paid { terms.amount(views) } else { terms.zero() };
        assert_eq!(paid.to_string(), amount, "{line}");
        cases += 1;
    }
    assert_eq!(cases, 20);
}

/// A folder with the files of a demo, for the organization.
fn demo_folder(organization: &Organization) -> TempDir {
    let path = std::env::var("TIDEMARK_TEST_STACK").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let demo = folder.path().join(".tidemark");
    std::fs::create_dir(&demo).unwrap();
    std::fs::copy(Path::new(&path).with_extension("env"), demo.join("demo.env")).unwrap();
    let mut connection: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    connection["api_key"] = organization.key.as_str().into();
    connection["organization_id"] = organization.id.to_string().into();
    std::fs::write(demo.join("demo.json"), serde_json::to_vec_pretty(&connection).unwrap()).unwrap();
    folder
}

#[tokio::test]
async fn commands_of_data_access_md_work() {
    let stack = Stack::shared();
    let state = std::env::var("TIDEMARK_TEST_STACK").unwrap();
    let credentials = Path::new(&state).with_file_name("clickhouse").join("credentials.json");
    for shell in SHELLS {
        let organization = stack.organization().await;
        let mut script = commands(include_str!("../docs/data-access.md"));
        for (original, replacement) in [
            ("/var/lib/tidemark/clickhouse/credentials.json", credentials.to_str().unwrap()),
            ("http://127.0.0.1:8123", &stack.connection.clickhouse_url),
            ("param_org=ID", &format!("param_org={}", organization.id)),
        ] {
            assert_eq!(script.matches(original).count(), 1, "{original}: {script}");
            script = script.replace(original, replacement);
        }
        let folder = demo_folder(&organization);
        // ClickHouse's default for a date, as there are no observations.
        assert_eq!(run(shell, &script, folder.path(), &organization), "1970-01-01\n1970-01-01\n");
    }
}

#[tokio::test]
async fn first_requests_of_readme_work() {
    let stack = Stack::shared();
    let section = include_str!("../README.md").split("## What to try next").nth(1).unwrap();
    let lines = section.lines().filter_map(|line| line.strip_prefix("    "));
    let script: Vec<_> = lines.take_while(|line| !line.starts_with("PATH=")).collect();
    // The reader fills in the dots.
    let account = format!("\"{}\"", stack.sandbox_account("tiktok").username);
    let script = script.join("\n").replacen("\"…\"", &account, 1).replacen("\"…\"", "\"C9xYzAbCdEf\"", 1);
    assert!(script.matches("\napi ").count() == 6 && !script.contains('…'), "{script}");
    for shell in SHELLS {
        let organization = stack.organization().await;
        let folder = demo_folder(&organization);
        let out = run(shell, &script, folder.path(), &organization);
        let (data, errors) = (out.matches("{\"data\":").count(), out.matches("urn:tidemark:error").count());
        assert!(data == 6 && errors == 0 && out.contains(&account), "{shell:?}: {out}");
    }
}

/// The Markdown files of a folder, recursively if `deep`.
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
fn links_between_pages_resolve() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = pages(root, false);
    all.extend(
        ["docs", "loadtest", "crates", "clients"].iter().flat_map(|folder| pages(&root.join(folder), true)),
    );
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
            let resolves = anchor.is_empty()
                || anchors(&std::fs::read_to_string(&target).unwrap()).contains(&anchor.into());
            assert!(resolves, "{page:?} links to {link}, which is no heading");
            links += 1;
        }
    }
    assert!(links > 50, "{links}");
}
