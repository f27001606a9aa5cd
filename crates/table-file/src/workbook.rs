//! Reads the sheets of Excel workbooks (.xlsx).

use std::borrow::Cow;
use std::io::{BufReader, Read, Seek};

use calamine::{CellErrorType, DataRef, Reader, Xlsx};
use zip::ZipArchive;

use crate::budget::Budget;
use crate::error::{Error, zip_error};
use crate::value::Value;
use crate::xml_check;
use crate::{Cells, Decision, MAX_COLUMNS, MAX_ROW_BYTES, MAX_TITLE_LINES, Note, Sink, Table};

/// Rows after the header that help to recognize it.
const SAMPLE_ROWS: usize = 20;
/// Days from 1899-12-30, from which Excel counts, to 1970.
const EPOCH_DAYS: f64 = 25_569.0;
/// In workbooks that count from 1904, days to 1970.
const EPOCH_1904_DAYS: f64 = 24_107.0;
const MILLISECONDS_PER_DAY: f64 = 86_400_000.0;

type Row<'v> = (u64, Vec<(usize, Value<'v>)>);

pub(crate) fn is_workbook<R: Read + Seek>(archive: &ZipArchive<R>) -> bool {
    archive.file_names().flatten().any(|name| name.eq_ignore_ascii_case("xl/workbook.xml"))
}

/// Reads every sheet that has a header, after a check that the workbook fits into memory.
pub(crate) fn read<R: Read + Seek, S: Sink>(
    mut archive: ZipArchive<R>,
    name: Option<&str>,
    budget: &Budget,
    sink: &mut S,
) -> Result<(), S::Error> {
    for index in 0..archive.len() {
        let member = archive.by_index(index).map_err(zip_error)?;
        let file = member.name().map_err(zip_error)?.to_ascii_lowercase();
        if file.ends_with(".xml") || file.ends_with(".rels") {
            // Its sheets are streamed.
            let is_in_memory = !file.contains("worksheets/sheet");
            xml_check::check(budget.meter(member), is_in_memory)?;
        }
    }
    let file = archive.into_inner();
    let mut workbook: Xlsx<_> = Xlsx::new(BufReader::new(file)).map_err(damaged)?;
    let is_1904 = workbook.has_1904_epoch();
    for sheet in workbook.sheet_names() {
        let part = match name {
            Some(name) => format!("{name}, {sheet}"),
            None => sheet.clone(),
        };
        let Ok(cells) = workbook.worksheet_cells_reader(&sheet) else {
            // A chart.
            sink.note(Note::Left(&part));
            continue;
        };
        let mut rows = Rows { cells, next: None, is_at_end: false, is_1904 };
        read_sheet(&mut rows, &part, sink)?;
    }
    Ok(())
}

fn damaged(error: impl std::fmt::Display) -> Error {
    Error::Workbook(error.to_string())
}

fn read_sheet<RS: Read + Seek, S: Sink>(
    rows: &mut Rows<'_, RS>,
    part: &str,
    sink: &mut S,
) -> Result<(), S::Error> {
    let mut first: Vec<Row<'_>> = Vec::new();
    while first.len() < MAX_TITLE_LINES + SAMPLE_ROWS
        && let Some(row) = rows.next()?
    {
        first.push(row);
    }
    let texts: Vec<Vec<String>> = first.iter().map(|(_, row)| row_texts(row)).collect();
    let mut header = None;
    for (n, columns) in texts.iter().enumerate().take(MAX_TITLE_LINES) {
        let sample = &texts[n + 1..texts.len().min(n + 1 + SAMPLE_ROWS)];
        match sink.table(&Table { part: Some(part), columns, has_all_columns: true, sample })? {
            Decision::Read => {
                header = Some(n);
                break;
            }
            Decision::Leave => return Ok(()),
            Decision::NoHeader => {}
        }
    }
    let Some(header) = header else {
        let columns = texts.iter().find(|columns| columns.len() > 1).or(texts.first());
        let columns = columns.map(Vec::as_slice).unwrap_or_default();
        return sink.unknown(&Table { part: Some(part), columns, has_all_columns: true, sample: &[] });
    };
    for row in first.drain(..).skip(header + 1) {
        pass_on(&row, sink)?;
    }
    while let Some(row) = rows.next()? {
        pass_on(&row, sink)?;
    }
    sink.end()
}

fn pass_on<S: Sink>((line, row): &Row<'_>, sink: &mut S) -> Result<(), S::Error> {
    if row.iter().all(|(_, value)| value.is_blank()) {
        return Ok(());
    }
    let bytes: usize =
        row.iter().map(|(_, value)| if let Value::Text(text) = value { text.len() } else { 0 }).sum();
    if bytes > MAX_ROW_BYTES {
        return sink.row(*line, Err(format!("has more than {MAX_ROW_BYTES} bytes of text: shorten it")));
    }
    sink.row(*line, Ok(Cells::Sparse(row)))
}

fn row_texts(row: &[(usize, Value<'_>)]) -> Vec<String> {
    let mut texts = vec![String::new(); row.last().map_or(0, |(column, _)| column + 1)];
    for (column, value) in row {
        texts[*column] = value.to_text();
    }
    texts
}

/// The row and the column of a cell, and its value.
type Cell<'a> = ((u32, u32), Value<'a>);

/// Groups the cells of a sheet by row.
struct Rows<'a, RS: Read + Seek> {
    cells: calamine::XlsxCellReader<'a, RS>,
    /// The first cell of the next row.
    next: Option<Cell<'a>>,
    is_at_end: bool,
    is_1904: bool,
}

impl<'a, RS: Read + Seek> Rows<'a, RS> {
    fn next_cell(&mut self) -> Result<Option<Cell<'a>>, Error> {
        if let Some(cell) = self.next.take() {
            return Ok(Some(cell));
        }
        if self.is_at_end {
            return Ok(None);
        }
        let Some(cell) = self.cells.next_cell().map_err(damaged)? else {
            self.is_at_end = true;
            return Ok(None);
        };
        if cell.get_position().1 as usize >= MAX_COLUMNS {
            return Err(Error::TooManyColumns);
        }
        let is_1904 = self.is_1904;
        Ok(Some((cell.get_position(), convert(cell.get_value().clone(), is_1904))))
    }

    fn next(&mut self) -> Result<Option<Row<'a>>, Error> {
        let mut row: Vec<(usize, Value<'a>)> = Vec::new();
        let mut line = None;
        while let Some(((cell_row, column), value)) = self.next_cell()? {
            if *line.get_or_insert(cell_row) != cell_row {
                self.next = Some(((cell_row, column), value));
                break;
            }
            if row.len() == MAX_COLUMNS {
                return Err(Error::TooManyColumns);
            }
            if value != Value::Empty {
                row.push((column as usize, value));
            }
        }
        row.sort_by_key(|(column, _)| *column);
        Ok(line.map(|line| (u64::from(line) + 1, row)))
    }
}

fn convert(value: DataRef<'_>, is_1904: bool) -> Value<'_> {
    match value {
        DataRef::Int(number) => Value::Integer(number),
        // A cell has a number, of which programs show integers without a fraction.
        DataRef::Float(number) => Value::Decimal(number),
        DataRef::String(text) => Value::Text(Cow::Owned(text)),
        DataRef::SharedString(text) => Value::Text(Cow::Borrowed(text)),
        DataRef::Bool(flag) => Value::Boolean(flag),
        DataRef::DateTime(time) if time.is_datetime() => {
            let epoch = if is_1904 { EPOCH_1904_DAYS } else { EPOCH_DAYS };
            Value::LocalTime(((time.as_f64() - epoch) * MILLISECONDS_PER_DAY).round() as i64)
        }
        DataRef::DateTime(duration) => Value::Decimal(duration.as_f64()),
        DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => Value::Text(Cow::Owned(text)),
        DataRef::Error(CellErrorType::NA) | DataRef::Empty => Value::Empty,
        DataRef::Error(_) => Value::Invalid("is an error of the spreadsheet"),
    }
}
