//! A CSV file (RFC 4180) that is sent while it is produced. If producing it fails, the connection is closed early, so that
//! a client never takes a part of a file for the whole.
//!
//! Rows are produced as the client reads them. Between batches nothing is held but their text.

use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use csv::{Terminator, WriterBuilder};
use futures_util::TryStreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::try_unfold;
use salvo::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use salvo::http::{HeaderValue, StatusCode};
use salvo::{Depot, Request, Response, Writer, async_trait};
use salvo_oapi::{Components, EndpointOutRegister, Operation};

use super::key_watch::KeyWatch;
use super::problem::Problem;
use crate::http::openapi::operation::add_csv;
use crate::http::request_id::{RequestId, loggable_path};
use crate::model::field::FieldValue;
use crate::model::file_row::FileColumns;
use crate::telemetry::trace;

/// A client that reads slower is disconnected, so that it does not hold a batch in memory for longer.
const MAX_SEND_TIME: Duration = Duration::from_secs(3600);
/// Text handed to the connection at a time.
const PIECE_BYTES: usize = 64 << 10;
/// Text that waits for further rows, because CSV has no comment or blank that could be sent to keep a connection alive while
/// filters match nothing or a batch takes long: one of these bytes is sent instead, every [`MAX_SILENCE`]. Every header is
/// longer.
const KEEPALIVE_RESERVE_BYTES: usize = 64;
/// Neither the server nor a proxy on the way takes a connection for idle after this time.
const MAX_SILENCE: Duration = Duration::from_secs(10);
/// After this time the response begins without rows, before its request would time out. More than a query waits for a permit.
const FIRST_ROWS_TIMEOUT: Duration = Duration::from_millis(3500);
/// First characters that make spreadsheets take a text for a formula.
const FORMULA_STARTS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Produces the rows of a file, batch by batch.
pub trait CsvSource: Send + 'static {
    const FILE_NAME: &'static str;
    type Row: FileColumns + Send;

    /// Returns the next rows, maybe none; `None` after the last.
    fn next_rows(&mut self) -> impl Future<Output = Result<Option<Vec<Self::Row>>, Problem>> + Send;
}

fn column_names<R: FileColumns>() -> Vec<&'static str> {
    R::columns().into_iter().map(|(name, _)| name).collect()
}

/// The source and its next rows.
type NextRows<S> = BoxFuture<'static, (S, Result<Option<Vec<<S as CsvSource>::Row>>, Problem>)>;

fn next_rows<S: CsvSource>(mut source: S) -> NextRows<S> {
    Box::pin(async move {
        let rows = source.next_rows().await;
        (source, rows)
    })
}

/// A file whose first rows are produced, unless they take long.
pub struct CsvFile<S: CsvSource> {
    /// None after the last rows.
    next_rows: Option<NextRows<S>>,
    /// Whether texts that look like formulas stay as they are.
    raw: bool,
    unsent: BytesMut,
    started: Instant,
    max_silence: Duration,
}

impl<S: CsvSource> CsvFile<S> {
    /// Produces the first rows, so that what fails at once is a problem.
    pub async fn begin(raw: bool, source: S) -> Result<Self, Problem> {
        Self::begin_within(FIRST_ROWS_TIMEOUT, raw, source).await
    }

    async fn begin_within(timeout: Duration, raw: bool, source: S) -> Result<Self, Problem> {
        let (unsent, started, max_silence) = (BytesMut::new(), Instant::now(), MAX_SILENCE);
        let mut file = CsvFile { next_rows: Some(next_rows(source)), raw, unsent, started, max_silence };
        let header = column_names::<S::Row>().into_iter().map(FieldValue::Text).collect();
        append_rows(&mut file.unsent, true, [header])?;
        file.add_rows(timeout).await?;
        Ok(file)
    }

    /// Adds the next rows to the unsent text, unless they take longer.
    async fn add_rows(&mut self, timeout: Duration) -> Result<(), Problem> {
        let Some(pending) = &mut self.next_rows else { return Ok(()) };
        let Ok((source, rows)) = tokio::time::timeout(timeout, pending).await else { return Ok(()) };
        let rows = rows?;
        self.next_rows = rows.is_some().then(|| next_rows(source));
        append_rows(&mut self.unsent, self.raw, rows.iter().flatten().map(FileColumns::values))
    }

    fn waits_for_rows(&self) -> bool {
        self.next_rows.is_some() && self.unsent.len() <= KEEPALIVE_RESERVE_BYTES
    }

    async fn next_piece(mut self) -> Result<Option<(Bytes, Self)>, Problem> {
        if self.started.elapsed() > MAX_SEND_TIME {
            return Err(Problem::internal("the client has not read the file within an hour"));
        }
        let silent_since = Instant::now();
        while self.waits_for_rows() {
            let max_silence = if self.unsent.is_empty() { Duration::MAX } else { self.max_silence };
            self.add_rows(max_silence.saturating_sub(silent_since.elapsed())).await?;
            if self.waits_for_rows() && silent_since.elapsed() >= max_silence {
                return Ok(Some((self.unsent.split_to(1).freeze(), self)));
            }
        }
        let reserve = if self.next_rows.is_some() { KEEPALIVE_RESERVE_BYTES } else { 0 };
        let piece = self.unsent.split_to((self.unsent.len() - reserve).min(PIECE_BYTES)).freeze();
        Ok((!piece.is_empty()).then_some((piece, self)))
    }
}

/// Appends rows to a text. Unless they are raw, `'` is put before texts that look like formulas.
fn append_rows<'a>(
    buffer: &mut BytesMut,
    raw: bool,
    rows: impl IntoIterator<Item = Vec<FieldValue<'a>>>,
) -> Result<(), Problem> {
    let mut csv = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(buffer.writer());
    for row in rows {
        for value in row {
            match value {
                FieldValue::Text(text) if !raw && text.starts_with(FORMULA_STARTS) => {
                    csv.write_field(format!("'{text}"))
                }
                value => csv.write_field(value.to_text().as_bytes()),
            }
            .map_err(Problem::internal)?;
        }
        csv.write_record(None::<&[u8]>).map_err(Problem::internal)?;
    }
    csv.flush().map_err(Problem::internal)
}

#[async_trait]
impl<S: CsvSource> Writer for CsvFile<S> {
    async fn write(self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        let key_watch = match KeyWatch::from_depot(depot) {
            Ok(key_watch) => key_watch,
            Err(problem) => return problem.write(req, depot, res).await,
        };
        res.status_code(StatusCode::OK);
        let headers = res.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        let disposition = format!("attachment; filename=\"{}\"", S::FILE_NAME);
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

impl<S: CsvSource> EndpointOutRegister for CsvFile<S> {
    fn register(_components: &mut Components, operation: &mut Operation) {
        add_csv(operation, &column_names::<S::Row>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::file_row::file_row;

    fn text(raw: bool, values: &[FieldValue<'_>]) -> String {
        let mut text = BytesMut::new();
        append_rows(&mut text, raw, [values.to_vec()]).unwrap();
        String::from_utf8(text.to_vec()).unwrap()
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

    file_row! {
        struct NumberRow {
            longer_than_the_reserve_as_every_header_is_because_it_has_many_columns: i64,
        }
    }

    const HEADER: &str = "longer_than_the_reserve_as_every_header_is_because_it_has_many_columns\r\n";

    /// Batches of rows with a number each.
    struct Numbers(std::vec::IntoIter<std::ops::Range<i64>>);

    impl CsvSource for Numbers {
        const FILE_NAME: &'static str = "numbers.csv";
        type Row = NumberRow;

        async fn next_rows(&mut self) -> Result<Option<Vec<NumberRow>>, Problem> {
            let row = |number| NumberRow {
                longer_than_the_reserve_as_every_header_is_because_it_has_many_columns: number,
            };
            Ok(self.0.next().map(|numbers| numbers.map(row).collect()))
        }
    }

    /// The pieces of a file whose search for each batch takes longer than the silence or not.
    async fn pieces(batches: &[std::ops::Range<i64>], is_slow: bool) -> Vec<String> {
        let batches = batches.to_vec();
        let source = Numbers(batches.into_iter());
        let mut file = CsvFile::begin(false, source).await.unwrap();
        file.max_silence = if is_slow { Duration::ZERO } else { Duration::MAX };
        let mut pieces = Vec::new();
        while let Some((piece, rest)) = file.next_piece().await.unwrap() {
            pieces.push(String::from_utf8(piece.to_vec()).unwrap());
            file = rest;
        }
        pieces
    }

    #[tokio::test]
    async fn file_is_the_same_however_it_is_cut() {
        let batches = [0..0, 0..3, 0..0, 3..50_000, 0..0, 0..0, 50_000..50_001];
        let expected = (0..50_001).fold(HEADER.to_owned(), |text, number| format!("{text}{number}\r\n"));
        assert!(pieces(&batches, false).await.iter().all(|piece| piece.len() <= PIECE_BYTES));
        for is_slow in [false, true] {
            assert_eq!(pieces(&batches, is_slow).await.concat(), expected);
        }
        assert_eq!(pieces(&[], true).await, [HEADER]);
    }

    /// The first rows never come.
    struct Endless;

    impl CsvSource for Endless {
        const FILE_NAME: &'static str = "endless.csv";
        type Row = NumberRow;

        async fn next_rows(&mut self) -> Result<Option<Vec<NumberRow>>, Problem> {
            std::future::pending().await
        }
    }

    #[tokio::test]
    async fn single_bytes_are_sent_while_rows_take_long() {
        let mut file = CsvFile::begin_within(Duration::ZERO, false, Endless).await.unwrap();
        file.max_silence = Duration::from_millis(1);
        let mut sent = Vec::new();
        for _ in 0..=KEEPALIVE_RESERVE_BYTES {
            let (piece, rest) = file.next_piece().await.unwrap().unwrap();
            sent.extend_from_slice(&piece);
            file = rest;
        }
        assert_eq!(sent, HEADER.as_bytes());
    }

    #[tokio::test]
    async fn long_search_sends_single_bytes() {
        let none = vec![0..0; 200];
        let sent = pieces(&none, true).await;
        assert_eq!(sent.concat(), HEADER);
        assert_eq!(sent[0].len(), HEADER.len() - KEEPALIVE_RESERVE_BYTES);
        assert!(sent.len() == 1 + KEEPALIVE_RESERVE_BYTES && sent[1..].iter().all(|piece| piece.len() == 1));
        assert_eq!(pieces(&none, false).await.len(), 2);
    }
}
