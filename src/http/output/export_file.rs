//! A file of rows that is sent while it is produced. If producing it fails, the connection is closed early, so that a client
//! never takes a part of a file for the whole.
//!
//! Rows are produced as the client reads them. Between batches nothing is held but what their format has not sent.

use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::try_unfold;
use salvo::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use salvo::http::{HeaderValue, StatusCode};
use salvo::{Depot, Request, Response, Writer, async_trait};
use salvo_oapi::{Components, EndpointOutRegister, Operation};

use super::key_watch::KeyWatch;
use super::problem::Problem;
use crate::http::request_id::{RequestId, loggable_path};
use crate::model::file_row::{Columns, FileColumns};
use crate::telemetry::trace;

/// A client that reads slower is disconnected, so that it does not hold a batch in memory for longer.
const MAX_SEND_TIME: Duration = Duration::from_secs(3600);
/// Bytes handed to the connection at a time.
pub(super) const PIECE_BYTES: usize = 64 << 10;
/// Neither the server nor a proxy on the way takes a connection for idle after this time.
const MAX_SILENCE: Duration = Duration::from_secs(10);
/// After this time the response begins without rows, before its request would time out. More than a query waits for a permit.
const FIRST_ROWS_TIMEOUT: Duration = Duration::from_millis(3500);

/// Produces the rows of a file, batch by batch.
pub trait RowSource: Send + 'static {
    /// The name of the file without its extension.
    const FILE_NAME: &'static str;
    type Row: FileColumns + Send + 'static;

    /// Returns the next rows, maybe none; `None` after the last.
    fn next_rows(&mut self) -> impl Future<Output = Result<Option<Vec<Self::Row>>, Problem>> + Send;
}

/// Makes rows the bytes of a file.
pub trait FileFormat: Send + 'static {
    const EXTENSION: &'static str;
    const CONTENT_TYPE: &'static str;
    /// Bytes that wait for further rows, so that single ones of them can be sent while there are none.
    const RESERVE_BYTES: usize;
    /// Whether a byte that has no meaning can be sent.
    const HAS_PADDING: bool;

    /// Appends rows to the file, maybe later with others.
    fn add_rows<R: FileColumns + Send + 'static>(
        &mut self,
        rows: Vec<R>,
        file: &mut BytesMut,
    ) -> impl Future<Output = Result<(), Problem>> + Send;

    /// Appends a byte that has no meaning, if there are such.
    fn add_padding(&mut self, file: &mut BytesMut) -> Result<(), Problem>;

    /// Appends what follows the last rows.
    fn finish(&mut self, file: &mut BytesMut) -> impl Future<Output = Result<(), Problem>> + Send;

    /// Documents the response.
    fn document(operation: &mut Operation, columns: &Columns);
}

/// The source and its next rows.
type NextRows<S> = BoxFuture<'static, (S, Result<Option<Vec<<S as RowSource>::Row>>, Problem>)>;

fn next_rows<S: RowSource>(mut source: S) -> NextRows<S> {
    Box::pin(async move {
        let rows = source.next_rows().await;
        (source, rows)
    })
}

/// A file whose first rows are produced, unless they take long.
pub struct ExportFile<F, S: RowSource> {
    format: F,
    /// None after the last rows.
    next_rows: Option<NextRows<S>>,
    unsent: BytesMut,
    started: Instant,
    pub(super) max_silence: Duration,
}

impl<F: FileFormat, S: RowSource> ExportFile<F, S> {
    /// Begins a file with a head, and produces the first rows, so that what fails at once is a problem.
    pub(super) async fn begin_with(head: BytesMut, format: F, source: S) -> Result<Self, Problem> {
        Self::begin_within(FIRST_ROWS_TIMEOUT, head, format, source).await
    }

    pub(super) async fn begin_within(
        timeout: Duration,
        head: BytesMut,
        format: F,
        source: S,
    ) -> Result<Self, Problem> {
        let (started, max_silence) = (Instant::now(), MAX_SILENCE);
        let next_rows = Some(next_rows(source));
        let mut file = ExportFile { format, next_rows, unsent: head, started, max_silence };
        file.add_rows(timeout).await?;
        Ok(file)
    }

    /// Adds the next rows to what is unsent, unless they take longer.
    async fn add_rows(&mut self, timeout: Duration) -> Result<(), Problem> {
        let Some(pending) = &mut self.next_rows else { return Ok(()) };
        let Ok((source, rows)) = tokio::time::timeout(timeout, pending).await else { return Ok(()) };
        if let Some(rows) = rows? {
            self.next_rows = Some(next_rows(source));
            self.format.add_rows(rows, &mut self.unsent).await
        } else {
            self.next_rows = None;
            self.format.finish(&mut self.unsent).await
        }
    }

    fn waits_for_rows(&self) -> bool {
        self.next_rows.is_some() && self.unsent.len() <= F::RESERVE_BYTES
    }

    pub(super) async fn next_piece(mut self) -> Result<Option<(Bytes, Self)>, Problem> {
        if self.started.elapsed() > MAX_SEND_TIME {
            return Err(Problem::internal("the client has not read the file within an hour"));
        }
        let silent_since = Instant::now();
        while self.waits_for_rows() {
            let has_byte = F::HAS_PADDING || !self.unsent.is_empty();
            let max_silence = if has_byte { self.max_silence } else { Duration::MAX };
            self.add_rows(max_silence.saturating_sub(silent_since.elapsed())).await?;
            if self.waits_for_rows() && silent_since.elapsed() >= max_silence {
                self.format.add_padding(&mut self.unsent)?;
                return Ok(Some((self.unsent.split_to(1).freeze(), self)));
            }
        }
        let reserve = if self.next_rows.is_some() { F::RESERVE_BYTES } else { 0 };
        let piece = self.unsent.split_to((self.unsent.len() - reserve).min(PIECE_BYTES)).freeze();
        Ok((!piece.is_empty()).then_some((piece, self)))
    }
}

#[async_trait]
impl<F: FileFormat, S: RowSource> Writer for ExportFile<F, S> {
    async fn write(self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        let key_watch = match KeyWatch::from_depot(depot) {
            Ok(key_watch) => key_watch,
            Err(problem) => return problem.write(req, depot, res).await,
        };
        res.status_code(StatusCode::OK);
        let headers = res.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(F::CONTENT_TYPE));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        let disposition = format!("attachment; filename=\"{}.{}\"", S::FILE_NAME, F::EXTENSION);
        headers.extend(HeaderValue::from_str(&disposition).ok().map(|value| (CONTENT_DISPOSITION, value)));
        let (request_id, path) = (RequestId::from_depot(depot).to_owned(), req.uri().path().to_owned());
        let route = trace::current_route();
        let pieces = try_unfold((self, key_watch), move |(file, mut watch)| {
            trace::with_route(route.clone(), async move {
                let next = watch.run(file.next_piece()).await?;
                Ok(next.map(|(piece, rest)| (piece, (rest, watch))))
            })
        });
        res.stream(pieces.map_err(move |problem: Problem| {
            let (path, cause) = (&*loggable_path(&path), problem.cause());
            tracing::error!(request_id, cause, path, "export broke off");
            std::io::Error::other("the export failed")
        }));
    }
}

impl<F: FileFormat, S: RowSource> EndpointOutRegister for ExportFile<F, S> {
    fn register(_components: &mut Components, operation: &mut Operation) {
        F::document(operation, &S::Row::columns());
    }
}
