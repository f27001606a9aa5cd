//! The sandbox: its population, its history files, its control API and its injected faults.

mod control;
mod history;

use chrono::{DateTime, NaiveDate, Utc};
use clap::Parser;
use sandbox::history::{HistoryOptions, InstagramCounters, write_rows};
use sandbox::population::Population;
use sandbox::{SandboxArgs, run};

fn time(text: &str) -> DateTime<Utc> {
    text.parse().expect("a valid time")
}

fn options(size: usize, days: u32) -> HistoryOptions {
    let until = NaiveDate::from_ymd_opt(2026, 11, 20).expect("a valid day");
    let accounts = (0..size).collect();
    HistoryOptions { accounts, single_posts: Vec::new(), days, until, instagram: InstagramCounters::Graph }
}

fn write_history(population: &Population, options: &HistoryOptions) -> (Vec<u8>, Vec<u8>) {
    let (mut accounts, mut videos) = (Vec::new(), Vec::new());
    write_rows(population, options, &mut accounts, &mut videos).expect("writing to a vector");
    (accounts, videos)
}

#[derive(Debug, Parser)]
struct CommandLine {
    #[command(flatten)]
    sandbox: SandboxArgs,
}

fn command(line: &[&str]) -> Result<SandboxArgs, clap::Error> {
    let line = ["sandbox"].into_iter().chain(line.iter().copied());
    CommandLine::try_parse_from(line).map(|parsed| parsed.sandbox)
}

#[tokio::test]
async fn used_port_is_a_clear_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let listen = format!("--listen={}", taken.local_addr().expect("an address"));
    let error =
        run(command(&[&listen, "--size=2"]).expect("a command")).await.expect_err("the port is taken");
    let message = error.to_string();
    assert!(message.starts_with("the sandbox cannot listen on 127.0.0.1:"), "{message}");
    assert!(message.ends_with("with --listen"), "{message}");
    for line in [&["--listen=nowhere"] as &[&str], &["--size=0"], &["--size=9000"], &["--start=tomorrow"]] {
        assert!(command(line).is_err(), "{line:?}");
    }
}

#[tokio::test]
async fn history_command_writes_the_history_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let out = format!("--out={}", directory.path().join("past").display());
    let line = ["history", "--accounts=4", "--days=30", "--until=2026-11-20", "--seed=7", "--size=10", &out];
    run(command(&line).expect("a command")).await.expect("the history is written");
    let (accounts, videos) = write_history(&Population::new(7, 10), &options(4, 30));
    let too_many = command(&["history", "--accounts=11", "--size=10", &out]).expect("a command");
    assert!(run(too_many).await.expect_err("too few accounts").to_string().contains("--size"));
    assert_eq!(std::fs::read(directory.path().join("past/accounts.csv")).expect("the file"), accounts);
    assert_eq!(std::fs::read(directory.path().join("past/videos.csv")).expect("the file"), videos);
}
