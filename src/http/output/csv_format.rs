//! CSV files (RFC 4180).

use bytes::{BufMut, BytesMut};
use csv::{Terminator, WriterBuilder};
use salvo_oapi::Operation;

use super::export_file::{ExportFile, FileFormat, RowSource};
use super::problem::Problem;
use crate::http::openapi::operation::add_csv;
use crate::model::field::FieldValue;
use crate::model::file_row::{Columns, FileColumns};

/// First characters that make spreadsheets take a text for a formula.
const FORMULA_STARTS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Writes rows as CSV. It has no comment or blank that could be sent while filters match nothing or a batch takes long.
pub struct CsvFormat {
    /// Whether texts that look like formulas stay as they are.
    raw: bool,
}

/// A CSV file whose first rows are produced, unless they take long.
pub type CsvFile<S> = ExportFile<CsvFormat, S>;

impl<S: RowSource> CsvFile<S> {
    /// Produces the first rows, so that what fails at once is a problem.
    pub async fn begin(raw: bool, source: S) -> Result<Self, Problem> {
        ExportFile::begin_with(header(&S::Row::columns())?, CsvFormat { raw }, source).await
    }
}

fn column_names(columns: &Columns) -> Vec<&'static str> {
    columns.iter().map(|(name, _)| *name).collect()
}

fn header(columns: &Columns) -> Result<BytesMut, Problem> {
    let mut header = BytesMut::new();
    let names = column_names(columns).into_iter().map(FieldValue::Text);
    append_rows(&mut header, true, [names.collect()])?;
    Ok(header)
}

impl FileFormat for CsvFormat {
    const EXTENSION: &'static str = "csv";
    const CONTENT_TYPE: &'static str = "text/csv; charset=utf-8";
    // Every header is longer.
    const RESERVE_BYTES: usize = 64;
    const HAS_PADDING: bool = false;

    async fn add_rows<R: FileColumns + Send + 'static>(
        &mut self,
        rows: Vec<R>,
        file: &mut BytesMut,
    ) -> Result<(), Problem> {
        append_rows(file, self.raw, rows.iter().map(FileColumns::values))
    }

    fn add_padding(&mut self, _: &mut BytesMut) -> Result<(), Problem> {
        Ok(())
    }

    async fn finish(&mut self, _: &mut BytesMut) -> Result<(), Problem> {
        Ok(())
    }

    fn document(operation: &mut Operation, columns: &Columns) {
        add_csv(operation, &column_names(columns));
    }
}

/// Appends rows to a file. Unless they are raw, `'` is put before texts that look like formulas.
fn append_rows<'a>(
    file: &mut BytesMut,
    raw: bool,
    rows: impl IntoIterator<Item = Vec<FieldValue<'a>>>,
) -> Result<(), Problem> {
    let mut csv = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(file.writer());
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::export_file::PIECE_BYTES;
    use super::*;
    use crate::model::file_row::file_row;

    const RESERVE_BYTES: usize = CsvFormat::RESERVE_BYTES;

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

    impl RowSource for Numbers {
        const FILE_NAME: &'static str = "numbers";
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

    impl RowSource for Endless {
        const FILE_NAME: &'static str = "endless";
        type Row = NumberRow;

        async fn next_rows(&mut self) -> Result<Option<Vec<NumberRow>>, Problem> {
            std::future::pending().await
        }
    }

    #[tokio::test]
    async fn single_bytes_are_sent_while_rows_take_long() {
        let head = header(&NumberRow::columns()).unwrap();
        let mut file =
            ExportFile::begin_within(Duration::ZERO, head, CsvFormat { raw: false }, Endless).await.unwrap();
        file.max_silence = Duration::from_millis(1);
        let mut sent = Vec::new();
        for _ in 0..=RESERVE_BYTES {
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
        assert_eq!(sent[0].len(), HEADER.len() - RESERVE_BYTES);
        assert!(sent.len() == 1 + RESERVE_BYTES && sent[1..].iter().all(|piece| piece.len() == 1));
        assert_eq!(pieces(&none, false).await.len(), 2);
    }
}
