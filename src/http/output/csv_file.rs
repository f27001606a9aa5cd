//! A CSV file (RFC 4180) that is sent while it is produced. If producing it fails, the connection breaks off, so that a
//! client never takes a part of a file for the whole.
//!
//! Rows are produced as the client reads them. Between batches nothing is held but their text.

use std::time::{Duration, Instant};

use bytes::Bytes;
use csv::{Terminator, WriterBuilder};
use futures_util::TryStreamExt;
use futures_util::stream::try_unfold;
use salvo::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use salvo::http::{HeaderValue, StatusCode};
use salvo::{Depot, Request, Response, Writer, async_trait};
use salvo_oapi::{Components, EndpointOutRegister, Operation};
use uuid::Uuid;

use super::problem::Problem;
use crate::app::{ExportGuard, OpenExports};
use crate::http::openapi::operation::add_csv;
use crate::http::request_id::{RequestId, loggable_path};
use crate::model::field::FieldValue;
use crate::telemetry::trace;

/// A client that reads slower is disconnected, so that it does not hold a batch in memory for longer.
const MAX_SEND_TIME: Duration = Duration::from_secs(3600);
/// How much is handed to the connection at a time.
const PIECE_BYTES: usize = 64 << 10;
/// How a text begins that spreadsheets take for a formula.
const FORMULA_STARTS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Produces the rows of a file, batch by batch.
pub trait CsvSource: Send + 'static {
    const FILE_NAME: &'static str;
    const COLUMNS: &'static [&'static str];

    /// Adds the next rows, maybe none. Returns whether there may be more.
    fn add_rows(&mut self, rows: &mut CsvRows) -> impl Future<Output = Result<bool, Problem>> + Send;
}

/// Rows that are not sent yet.
pub struct CsvRows {
    writer: csv::Writer<Vec<u8>>,
    /// Whether texts that look like formulas stay as they are.
    raw: bool,
}

impl CsvRows {
    pub fn new(raw: bool) -> Self {
        CsvRows { writer: empty_writer(), raw }
    }

    /// Adds a row with a value for each column.
    pub fn add(&mut self, values: &[FieldValue<'_>]) -> Result<(), Problem> {
        for value in values {
            match value {
                FieldValue::Text(text) if !self.raw && text.starts_with(FORMULA_STARTS) => {
                    self.writer.write_field(format!("'{text}"))
                }
                value => self.writer.write_field(value.to_text().as_bytes()),
            }
            .map_err(Problem::internal)?;
        }
        self.writer.write_record(None::<&[u8]>).map_err(Problem::internal)
    }

    fn add_header(&mut self, columns: &[&str]) -> Result<(), Problem> {
        self.writer.write_record(columns).map_err(Problem::internal)
    }

    fn take(&mut self) -> Result<Bytes, Problem> {
        let written = std::mem::replace(&mut self.writer, empty_writer()).into_inner();
        written.map(Bytes::from).map_err(|error| Problem::internal(error.error()))
    }
}

fn empty_writer() -> csv::Writer<Vec<u8>> {
    WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new())
}

/// A file whose first rows are produced.
pub struct CsvFile<S> {
    source: S,
    rows: CsvRows,
    has_more: bool,
    unsent: Bytes,
    started: Instant,
    _guard: ExportGuard,
}

impl<S: CsvSource> CsvFile<S> {
    /// Produces the first rows, so that what fails at once is a problem.
    pub async fn begin(
        exports: &OpenExports,
        organization: Uuid,
        raw: bool,
        source: S,
    ) -> Result<Self, Problem> {
        let guard = exports.begin(organization).ok_or_else(Problem::too_many_exports)?;
        let (rows, unsent, started) = (CsvRows::new(raw), Bytes::new(), Instant::now());
        let mut file = CsvFile { source, rows, has_more: true, unsent, started, _guard: guard };
        file.rows.add_header(S::COLUMNS)?;
        file.produce().await?;
        Ok(file)
    }

    /// Produces rows until there are some to send.
    async fn produce(&mut self) -> Result<(), Problem> {
        while self.unsent.is_empty() && self.has_more {
            self.has_more = self.source.add_rows(&mut self.rows).await?;
            self.unsent = self.rows.take()?;
        }
        Ok(())
    }

    async fn next_piece(mut self) -> Result<Option<(Bytes, Self)>, Problem> {
        if self.started.elapsed() > MAX_SEND_TIME {
            return Err(Problem::internal("the client has not read the file within an hour"));
        }
        self.produce().await?;
        let piece = self.unsent.split_to(self.unsent.len().min(PIECE_BYTES));
        Ok((!piece.is_empty()).then_some((piece, self)))
    }
}

#[async_trait]
impl<S: CsvSource> Writer for CsvFile<S> {
    async fn write(self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        res.status_code(StatusCode::OK);
        let headers = res.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        let disposition = format!("attachment; filename=\"{}\"", S::FILE_NAME);
        headers.extend(HeaderValue::from_str(&disposition).ok().map(|value| (CONTENT_DISPOSITION, value)));
        let (request_id, path) = (RequestId::from_depot(depot).to_owned(), req.uri().path().to_owned());
        let route = trace::current_route();
        let pieces = try_unfold(self, move |file| trace::with_route(route.clone(), file.next_piece()));
        res.stream(pieces.map_err(move |problem| {
            let (path, cause) = (&*loggable_path(&path), problem.cause());
            tracing::error!(request_id, cause, path, "export broke off");
            std::io::Error::other("the export failed")
        }));
    }
}

impl<S: CsvSource> EndpointOutRegister for CsvFile<S> {
    fn register(_components: &mut Components, operation: &mut Operation) {
        add_csv(operation, S::COLUMNS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(raw: bool, values: &[FieldValue<'_>]) -> String {
        let mut rows = CsvRows::new(raw);
        rows.add(values).unwrap();
        String::from_utf8(rows.take().unwrap().to_vec()).unwrap()
    }

    #[test]
    fn fields_are_quoted_where_needed() {
        let values = ["plain 🌊", "a,b", "say \"hi\"", "two\nlines", "two\rlines", ""].map(FieldValue::Text);
        assert_eq!(
            text(false, &values),
            "plain 🌊,\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",\"two\rlines\",\r\n"
        );
        assert_eq!(text(false, &[FieldValue::Null]), "\"\"\r\n");
    }

    #[test]
    fn only_texts_are_guarded_against_formulas() {
        let formulas = ["=1", "+1", "-1", "@x", "\tx", "\rx", "x=1", " =1"].map(FieldValue::Text);
        assert_eq!(text(false, &formulas), "'=1,'+1,'-1,'@x,'\tx,\"'\rx\",x=1, =1\r\n");
        assert_eq!(text(true, &formulas), "=1,+1,-1,@x,\tx,\"\rx\",x=1, =1\r\n");
        assert_eq!(text(false, &[FieldValue::Integer(-5), FieldValue::Decimal(-0.25)]), "-5,-0.25\r\n");
    }
}
