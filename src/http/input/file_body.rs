//! A body that is a file of any type, received into a folder without holding it in memory.

use std::time::Duration;

use http_body_util::BodyExt;
use salvo::http::header::EXPECT;
use salvo::http::{ReqBody, StatusCode};
use salvo::{Depot, Request};
use sha2::{Digest, Sha256};

use super::request_part::impl_extractible;
use crate::app::{IncomingFile, ReceiveError, UploadFolder};
use crate::http::deadline::Deadline;
use crate::http::middleware::drain_body::{declared_length, drain};
use crate::http::openapi::operation::set_file_body;
use crate::http::output::key_watch::KeyWatch;
use crate::http::output::problem::Problem;

/// How long a client may take in all.
const MAX_DURATION: Duration = Duration::from_secs(3_600);

/// The body of a request, not read yet.
pub struct FileBody {
    body: ReqBody,
    declared_length: Option<u64>,
    expects_continue: bool,
    key: KeyWatch,
}

impl FileBody {
    fn from_request(req: &mut Request, depot: &Depot) -> Result<Self, Problem> {
        Ok(FileBody {
            declared_length: declared_length(req),
            expects_continue: req.headers().contains_key(EXPECT),
            body: req.take_body(),
            key: KeyWatch::from_depot(depot)?,
        })
    }

    /// Receives the file, and returns it with its hash. The time that the client takes does not count against the deadline.
    /// The file is removed unless it is handed over.
    pub async fn receive(
        mut self,
        folder: &UploadFolder,
        deadline: &Deadline,
    ) -> Result<(IncomingFile, [u8; 32]), Problem> {
        let received = async {
            let mut file = folder.receive(self.declared_length).await?;
            let mut hash = Sha256::new();
            let idle_timeout = folder.limits().idle_timeout;
            while let Some(bytes) = next_bytes(&mut self.body, &mut self.key, idle_timeout).await? {
                file.write(&bytes).await?;
                hash.update(&bytes);
            }
            file.complete().await?;
            Ok((file, hash.finalize().into()))
        };
        let received = deadline.await_external(MAX_DURATION, received).await;
        match received.unwrap_or_else(|_| Err(too_slow(MAX_DURATION))) {
            // Of an upload that broke off, nothing more comes.
            Err(problem) if problem.status() != StatusCode::BAD_REQUEST => {
                Err(self.reject(problem, deadline).await)
            }
            received => received,
        }
    }

    /// Reads the rest of the file, without which a client that is still sending would miss the response.
    pub async fn reject(self, problem: Problem, deadline: &Deadline) -> Problem {
        if !self.expects_continue {
            // The response is the same if it times out.
            let _timeout = deadline.await_external(MAX_DURATION, drain(self.body, 0)).await;
        }
        problem
    }
}

async fn next_bytes(
    body: &mut ReqBody,
    key: &mut KeyWatch,
    idle_timeout: Duration,
) -> Result<Option<bytes::Bytes>, Problem> {
    let next = async {
        loop {
            let Ok(frame) = tokio::time::timeout(idle_timeout, body.frame()).await else {
                return Err(too_slow(idle_timeout));
            };
            let frame = frame.transpose();
            let frame =
                frame.map_err(|error| Problem::bad_request(format!("the file ended early: {error}")))?;
            match frame.map(|frame| frame.into_data()) {
                None => return Ok(None),
                Some(Ok(bytes)) => return Ok(Some(bytes)),
                // Trailers.
                Some(Err(_)) => {}
            }
        }
    };
    key.run(next).await
}

fn too_slow(timeout: Duration) -> Problem {
    let seconds = timeout.as_secs();
    Problem::bad_request(format!(
        "nothing of the file, or not all of it, arrived within {seconds} seconds: send it again"
    ))
}

impl From<ReceiveError> for Problem {
    fn from(error: ReceiveError) -> Self {
        match error {
            ReceiveError::TooLarge(max_bytes) => Problem::file_too_large(max_bytes),
            ReceiveError::NoSpace => Problem::no_space_for_files(),
            ReceiveError::Io(error) => Problem::files_unavailable(error),
        }
    }
}

impl_extractible!([] FileBody, |req, depot| FileBody::from_request(req, depot), |operation| set_file_body(operation));
