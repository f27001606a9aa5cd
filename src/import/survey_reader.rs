//! Reads a table once before its rows are: what one row does not tell, all of them may.

use table_file::{Cells, Decision, Note, Sink, Table};

use super::clock::{MAX_PAIRS, Survey};
use super::column::Column;
use super::error::Error;
use super::file_reader::read_tables;
use super::formats::Dates;
use super::layout::Layout;
use super::raw_row::RawRow;
use super::rounded_ids::{IdSurvey, Verdict};
use super::row_reader::RowReader;
use super::row_sink::RowSink;
use super::table_rules::{TableDecision, TableRules};
use super::time::WrittenTime;
use super::zone::TimePair;

/// Reads the rows of one table until `add` has enough.
struct SurveyReader<'a, F> {
    rules: TableRules<'a>,
    /// The number of the table among those that are read.
    wanted: usize,
    tables: usize,
    layout: Option<Layout>,
    add: F,
}

/// Collects the times of a table: those without a zone or a year are completed by all of them.
pub fn survey_times(rules: TableRules<'_>, table: usize) -> Result<Survey, Error> {
    let mut survey = Survey::default();
    survey_rows(rules, table, |reader| add_times(&mut survey, reader))?;
    Ok(survey)
}

/// Tells whether the ids of a table are rounded.
pub fn survey_ids(rules: TableRules<'_>, table: usize) -> Result<Verdict, Error> {
    let mut survey = IdSurvey::default();
    survey_rows(rules, table, |reader| {
        let identity = reader.identity();
        identity.is_some_and(|identity| survey.add(identity.external_id(), identity.digits))
    })?;
    Ok(survey.verdict())
}

fn survey_rows(
    rules: TableRules<'_>,
    table: usize,
    add: impl FnMut(&mut RowReader<'_, '_>) -> bool,
) -> Result<(), Error> {
    let mut reader = SurveyReader { rules, wanted: table, tables: 0, layout: None, add };
    match read_tables(rules.source, rules.options, &|_| {}, &mut reader) {
        Ok(()) | Err(Error::SurveyEnded) => Ok(()),
        Err(error) => Err(error),
    }
}

fn add_times(survey: &mut Survey, reader: &mut RowReader<'_, '_>) -> bool {
    match reader.written_time(Column::OBSERVED_AT) {
        Some(WrittenTime::DayOfYear { month, day }) => survey.add_day(month, day),
        Some(WrittenTime::Local(_)) => survey.has_local_times = true,
        _ => {}
    }
    if let Some(WrittenTime::Local(posted)) = reader.written_time(Column::CREATE_TIME) {
        survey.has_local_times = true;
        if let Some(id_time) = reader.id_time() {
            survey.pairs.push(TimePair::new(posted, id_time));
        }
    }
    survey.pairs.len() >= MAX_PAIRS && reader.context.format.dates != Dates::MonthAndDay
}

impl<F: FnMut(&mut RowReader<'_, '_>) -> bool> Sink for SurveyReader<'_, F> {
    type Error = Error;

    fn table(&mut self, table: &Table<'_>) -> Result<Decision, Error> {
        Ok(match self.rules.decide(table) {
            TableDecision::Read(layout) => {
                self.layout = (self.tables == self.wanted).then_some(layout);
                self.tables += 1;
                Decision::Read
            }
            TableDecision::Unknown => Decision::NoHeader,
            TableDecision::Refuse(..) => Decision::Leave,
        })
    }

    fn column(&mut self, name: &str) {
        if let Some(layout) = &mut self.layout {
            layout.add(name);
        }
    }

    fn row(&mut self, line: u64, cells: Result<Cells<'_>, String>) -> Result<(), Error> {
        if let (Some(layout), Ok(cells)) = (&self.layout, cells) {
            let raw = layout.assign(cells);
            return self.raw_row(line, raw);
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        if self.layout.is_some() { Err(Error::SurveyEnded) } else { Ok(()) }
    }

    fn unknown(&mut self, _table: &Table<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn note(&mut self, _note: Note<'_>) {}
}

impl<F: FnMut(&mut RowReader<'_, '_>) -> bool> RowSink for SurveyReader<'_, F> {
    fn raw_row(&mut self, _line: u64, raw: Result<RawRow<'_>, String>) -> Result<(), Error> {
        let (Some(layout), Ok(raw)) = (&self.layout, raw) else { return Ok(()) };
        let mut reader = RowReader::new(&raw, self.rules.context(layout));
        if (self.add)(&mut reader) { Err(Error::SurveyEnded) } else { Ok(()) }
    }

    fn columns(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }
}
