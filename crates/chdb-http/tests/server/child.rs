//! The server as a child process, which exits when it is dropped.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use chdb_http::Credentials;

use crate::EXE;

pub struct ChildServer {
    pub url: String,
    pub credentials: Credentials,
    /// Holds the server's standard input open.
    child: Child,
}

impl ChildServer {
    /// Starts the server on a free port, and waits until it is ready.
    pub fn start(data: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(EXE)
            .args(["--exit-with-stdin", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: serde_json::Value = serde_json::from_str(&line).expect("the server starts");
        assert_eq!(ready["event"], "ready");
        let url = ready["url"].as_str().unwrap().to_owned();
        ChildServer { url, credentials: Credentials::read(data).unwrap(), child }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Shuts the server down gracefully.
    pub fn stop(mut self) -> ExitStatus {
        drop(self.child.stdin.take());
        self.child.wait().unwrap()
    }

    /// Kills the server, as a crash would.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
