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

use super::problem::Problem;
use crate::http::openapi::operation::add_csv;
use crate::http::request_id::{RequestId, loggable_path};
use crate::model::field::FieldValue;
use crate::telemetry::trace;

/// A client that reads slower is disconnected, so that it does not hold a batch in memory for longer.
const MAX_SEND_TIME: Duration = Duration::from_secs(3600);
/// How much is handed to the connection at a time.
const PIECE_BYTES: usize = 64 << 10;
/// The end of the rows so far, which is held back until further rows are found. Less than any header.
const HELD_BACK_BYTES: usize = 64;
/// After a search of this time, one of the bytes held back is sent: neither the server nor a proxy on the way may take the
/// connection for idle.
const MAX_SILENCE: Duration = Duration::from_secs(5);
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
    fn new(raw: bool) -> Self {
        CsvRows { writer: append_to(Vec::new()), raw }
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
        let written = std::mem::replace(&mut self.writer, append_to(Vec::new())).into_inner();
        written.map(Bytes::from).map_err(|error| Problem::internal(error.error()))
    }
}

fn append_to(text: Vec<u8>) -> csv::Writer<Vec<u8>> {
    WriterBuilder::new().terminator(Terminator::CRLF).from_writer(text)
}

/// A file whose first rows are produced.
pub struct CsvFile<S> {
    source: S,
    rows: CsvRows,
    has_more: bool,
    unsent: Bytes,
    started: Instant,
    max_silence: Duration,
}

impl<S: CsvSource> CsvFile<S> {
    /// Produces the first rows, so that what fails at once is a problem.
    pub async fn begin(raw: bool, source: S) -> Result<Self, Problem> {
        let (mut rows, started, max_silence) = (CsvRows::new(raw), Instant::now(), MAX_SILENCE);
        rows.add_header(S::COLUMNS)?;
        let unsent = rows.take()?;
        let mut file = CsvFile { source, rows, has_more: true, unsent, started, max_silence };
        file.add_rows().await?;
        Ok(file)
    }

    /// Adds the next rows to what is not sent.
    async fn add_rows(&mut self) -> Result<(), Problem> {
        self.rows.writer = append_to(self.unsent.to_vec());
        self.has_more = self.source.add_rows(&mut self.rows).await?;
        self.unsent = self.rows.take()?;
        Ok(())
    }

    async fn next_piece(mut self) -> Result<Option<(Bytes, Self)>, Problem> {
        if self.started.elapsed() > MAX_SEND_TIME {
            return Err(Problem::internal("the client has not read the file within an hour"));
        }
        let search = Instant::now();
        while self.has_more && self.unsent.len() <= HELD_BACK_BYTES {
            if search.elapsed() >= self.max_silence && !self.unsent.is_empty() {
                return Ok(Some((self.unsent.split_to(1), self)));
            }
            self.add_rows().await?;
        }
        let held_back = if self.has_more { HELD_BACK_BYTES } else { 0 };
        let piece = self.unsent.split_to((self.unsent.len() - held_back).min(PIECE_BYTES));
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

    /// Batches of rows with a number each.
    struct Numbers(std::vec::IntoIter<std::ops::Range<i64>>);

    impl CsvSource for Numbers {
        const FILE_NAME: &'static str = "numbers.csv";
        const COLUMNS: &'static [&'static str] =
            &["a column whose name is longer than the bytes that are held back as all headers are"];

        async fn add_rows(&mut self, rows: &mut CsvRows) -> Result<bool, Problem> {
            for number in self.0.next().unwrap_or_default() {
                rows.add(&[FieldValue::Integer(number)])?;
            }
            Ok(self.0.len() > 0)
        }
    }

    /// The pieces of a file whose search for each batch takes longer than the silence or not.
    async fn pieces(batches: &[std::ops::Range<i64>], is_slow: bool) -> Vec<String> {
        let batches = batches.to_vec();
        let source = Numbers(batches.into_iter());
        let mut file = CsvFile::begin(false, source).await.unwrap();
        file.max_silence = if is_slow { Duration::ZERO } else { Duration::MAX };
        let mut pieces = Vec::new();
        let mut rest = Some(file);
        while let Some(file) = rest {
            let next = file.next_piece().await.unwrap();
            rest = next.map(|(piece, file)| {
                pieces.push(String::from_utf8(piece.to_vec()).unwrap());
                file
            });
        }
        pieces
    }

    #[tokio::test]
    async fn file_is_the_same_however_it_is_cut() {
        let batches = [0..0, 0..3, 0..0, 3..50_000, 0..0, 0..0, 50_000..50_001];
        let header = format!("{}\r\n", Numbers::COLUMNS[0]);
        let expected = (0..50_001).fold(header, |text, number| format!("{text}{number}\r\n"));
        assert!(pieces(&batches, false).await.iter().all(|piece| piece.len() <= PIECE_BYTES));
        for is_slow in [false, true] {
            assert_eq!(pieces(&batches, is_slow).await.concat(), expected);
        }
        assert_eq!(pieces(&[], true).await, [format!("{}\r\n", Numbers::COLUMNS[0])]);
    }

    #[tokio::test]
    async fn long_search_sends_single_bytes() {
        let none = vec![0..0; 200];
        let header = format!("{}\r\n", Numbers::COLUMNS[0]);
        let sent = pieces(&none, true).await;
        assert_eq!(sent.concat(), header);
        assert_eq!(sent[0].len(), header.len() - HELD_BACK_BYTES);
        assert!(sent.len() == 1 + HELD_BACK_BYTES && sent[1..].iter().all(|piece| piece.len() == 1));
        assert_eq!(pieces(&none, false).await.len(), 2);
    }
}
