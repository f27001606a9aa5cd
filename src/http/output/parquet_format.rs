//! Parquet files.

use bytes::{BufMut, BytesMut, buf::Writer};
use parquet::errors::ParquetError;
use salvo_oapi::Operation;

use super::export_file::{ExportFile, FileFormat, RowSource};
use super::problem::Problem;
use crate::http::openapi::operation::add_parquet;
use crate::model::file_row::{Columns, FileColumns};
use crate::parquet_writer::{ParquetWriter, RowGroupLimits, type_name};

/// An export holds one row group in memory.
const ROW_GROUPS: RowGroupLimits = RowGroupLimits { rows: 8_192, text_bytes: 4 << 20 };

type GroupWriter = ParquetWriter<Writer<BytesMut>>;

/// Writes rows as Parquet, on another thread, because compressing a row group takes tens of milliseconds.
pub struct ParquetFormat {
    /// `None` while a thread has it, and after the end.
    writer: Option<GroupWriter>,
}

/// A Parquet file whose first rows are produced, unless they take long.
pub type ParquetFile<S> = ExportFile<ParquetFormat, S>;

impl<S: RowSource> ParquetFile<S> {
    /// Produces the first rows, so that what fails at once is a problem.
    pub async fn begin(source: S) -> Result<Self, Problem> {
        let (head, format) = ParquetFormat::begin(&S::Row::columns())?;
        ExportFile::begin_with(head, format, source).await
    }
}

impl ParquetFormat {
    /// Returns the head of a file, and what writes the rest.
    fn begin(columns: &Columns) -> Result<(BytesMut, Self), Problem> {
        let output = BytesMut::new().writer();
        let mut writer = ParquetWriter::new(output, columns, ROW_GROUPS).map_err(Problem::internal)?;
        let head = take_written(&mut writer)?;
        Ok((head, ParquetFormat { writer: Some(writer) }))
    }

    fn take_writer(&mut self) -> Result<GroupWriter, Problem> {
        self.writer.take().ok_or_else(|| Problem::internal("the file has ended"))
    }
}

/// Takes what was written out of the writer.
fn take_written(writer: &mut GroupWriter) -> Result<BytesMut, Problem> {
    Ok(writer.flush().map_err(Problem::internal)?.get_mut().split())
}

async fn on_other_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ParquetError> + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(Problem::internal)?.map_err(Problem::internal)
}

impl FileFormat for ParquetFormat {
    const EXTENSION: &'static str = "parquet";
    const CONTENT_TYPE: &'static str = "application/vnd.apache.parquet";
    const RESERVE_BYTES: usize = 0;
    const HAS_PADDING: bool = true;

    async fn add_rows<R: FileColumns + Send + 'static>(
        &mut self,
        rows: Vec<R>,
        file: &mut BytesMut,
    ) -> Result<(), Problem> {
        let mut writer = self.take_writer()?;
        let work = move || rows.iter().try_for_each(|row| writer.add(row.values())).map(|()| writer);
        let added = self.writer.insert(on_other_thread(work).await?);
        file.unsplit(take_written(added)?);
        Ok(())
    }

    fn add_padding(&mut self, file: &mut BytesMut) -> Result<(), Problem> {
        let writer = self.writer.as_mut().ok_or_else(|| Problem::internal("the file has ended"))?;
        writer.pad().map_err(Problem::internal)?;
        file.unsplit(take_written(writer)?);
        Ok(())
    }

    async fn finish(&mut self, file: &mut BytesMut) -> Result<(), Problem> {
        let writer = self.take_writer()?;
        let rest = on_other_thread(|| writer.finish()).await?;
        file.unsplit(rest.into_inner());
        Ok(())
    }

    fn document(operation: &mut Operation, columns: &Columns) {
        let columns: Vec<_> = columns.iter().map(|(name, kind)| (*name, type_name(*kind))).collect();
        add_parquet(operation, &columns);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::time::Duration;

    use bytes::Bytes;
    use chrono::{DateTime, NaiveDate, Utc};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use uuid::Uuid;

    use super::*;
    use crate::model::field::FieldType;
    use crate::model::file_row::file_row;

    file_row! {
        struct EveryType {
            number: i64,
            text: Option<String>,
            rate: Option<f64>,
            flag: bool,
            at: Option<DateTime<Utc>>,
            day: Option<NaiveDate>,
            id: Uuid,
        }
    }

    /// Batches of these sizes; their rows are numbered from 0.
    struct Numbered {
        sizes: VecDeque<i64>,
        next_number: i64,
    }

    impl RowSource for Numbered {
        const FILE_NAME: &'static str = "numbered";
        type Row = EveryType;

        async fn next_rows(&mut self) -> Result<Option<Vec<EveryType>>, Problem> {
            let Some(size) = self.sizes.pop_front() else { return Ok(None) };
            let first = self.next_number;
            self.next_number += size;
            Ok(Some((first..self.next_number).map(row).collect()))
        }
    }

    /// Every third row has unknown values.
    fn row(number: i64) -> EveryType {
        let is_known = number % 3 > 0;
        let at = DateTime::from_timestamp_micros(number * 1_000_001);
        EveryType {
            number,
            text: is_known.then(|| format!("=\"{number}\"\n🌊")),
            rate: is_known.then_some(number as f64 / 4.0),
            flag: number % 2 == 0,
            at: at.filter(|_| is_known),
            day: at.map(|at| at.date_naive()).filter(|_| is_known),
            id: Uuid::from_u128(number as u128),
        }
    }

    /// The pieces of a file whose search for each batch takes longer than the silence or not.
    async fn pieces(sizes: &[i64], is_slow: bool) -> Vec<Bytes> {
        let numbered = Numbered { sizes: sizes.iter().copied().collect(), next_number: 0 };
        let mut file = ParquetFile::begin(numbered).await.unwrap();
        file.max_silence = if is_slow { Duration::ZERO } else { Duration::MAX };
        let mut pieces = Vec::new();
        while let Some((piece, rest)) = file.next_piece().await.unwrap() {
            pieces.push(piece);
            file = rest;
        }
        pieces
    }

    /// The numbers of rows of the groups of a file, and its rows.
    fn read(pieces: &[Bytes]) -> (Vec<i64>, Vec<String>) {
        let file = SerializedFileReader::new(Bytes::from(pieces.concat())).unwrap();
        let groups = file.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
        let rows = file.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string());
        (groups, rows.collect())
    }

    #[tokio::test]
    async fn file_is_the_same_however_it_is_cut() {
        let sizes = [0, 3, 0, 39_997, 0, 0, 1];
        let (groups, expected) = read(&pieces(&[40_001], false).await);
        assert_eq!(groups, [8_192, 8_192, 8_192, 8_192, 7_233]);
        assert_eq!(expected.len(), 40_001);
        for is_slow in [false, true] {
            let (cut_groups, rows) = read(&pieces(&sizes, is_slow).await);
            assert_eq!(cut_groups, groups);
            assert!(rows == expected, "is_slow={is_slow}");
        }
        assert_eq!(read(&pieces(&[], false).await), (vec![], vec![]));
    }

    #[tokio::test]
    async fn values_have_their_types() {
        let (_, rows) = read(&pieces(&[2], false).await);
        let expected = [
            "{number: 0, text: null, rate: null, flag: true, at: null, day: null, \
             id: \"00000000-0000-0000-0000-000000000000\"}",
            "{number: 1, text: \"=\"1\"\n🌊\", rate: 0.25, flag: false, at: 1970-01-01 00:00:01.000001 +00:00, \
             day: 1970-01-01, id: \"00000000-0000-0000-0000-000000000001\"}",
        ];
        assert_eq!(rows, expected);
    }

    #[tokio::test]
    async fn long_search_sends_single_bytes() {
        let sent = pieces(&[0; 200], true).await;
        assert_eq!(sent[0], "PAR1");
        assert!(sent.len() > 200 && sent[1..200].iter().all(|piece| *piece == [0][..]), "{sent:?}");
        assert_eq!(read(&sent).1, Vec::<String>::new());
        assert_eq!(pieces(&[0; 200], false).await.len(), 2);
    }

    #[tokio::test]
    async fn long_texts_make_small_groups() {
        let (mut file, mut format) = ParquetFormat::begin(&vec![("text", FieldType::Text)]).unwrap();
        let texts = vec!["x".repeat(1 << 20); 20];
        format.add_rows(texts, &mut file).await.unwrap();
        format.finish(&mut file).await.unwrap();
        assert_eq!(read(&[file.freeze()]).0, [4; 5]);
    }
}
