//! Runs the example collector of the documentation.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// The running example, with its sample accounts.
pub struct Example {
    pub url: String,
    process: Child,
}

impl Example {
    /// Starts it on a free port. With `token` it requires that.
    pub fn start(token: Option<&str>) -> Example {
        let python = std::env::var("TIDEMARK_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let mut process = Command::new(python)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/http-source-example.py"))
            .args(["--port", "0"])
            .env("COLLECTOR_TOKEN", token.unwrap_or_default())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Python starts");
        let mut url = String::new();
        BufReader::new(process.stdout.take().expect("its output")).read_line(&mut url).expect("its URL");
        Example { url: url.trim().to_owned(), process }
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        // Fails if it has exited.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
