//! Reads a table once before its rows are: times without a zone or a year are completed by all of them.

use table_file::{Cells, Decision, Note, Sink, Table};

use super::clock::{MAX_PAIRS, Survey};
use super::column::Column;
use super::error::Error;
use super::file_reader::read_tables;
use super::formats::Dates;
use super::layout::Layout;
use super::raw_row::RawRow;
use super::row_reader::RowReader;
use super::row_sink::RowSink;
use super::table_rules::{TableDecision, TableRules};
use super::time::WrittenTime;
use super::zone::TimePair;

/// Collects the times of one table.
struct SurveyReader<'a> {
    rules: TableRules<'a>,
    /// The number of the table among those that are read.
    wanted: usize,
    tables: usize,
    layout: Option<Layout>,
    survey: Survey,
}

/// Surveys a table of a file.
pub fn survey(rules: TableRules<'_>, table: usize) -> Result<Survey, Error> {
    let mut reader =
        SurveyReader { rules, wanted: table, tables: 0, layout: None, survey: Survey::default() };
    match read_tables(rules.source, rules.options, &|_| {}, &mut reader) {
        Ok(()) | Err(Error::SurveyEnded) => Ok(reader.survey),
        Err(error) => Err(error),
    }
}

impl Sink for SurveyReader<'_> {
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

impl RowSink for SurveyReader<'_> {
    fn raw_row(&mut self, _line: u64, raw: Result<RawRow<'_>, String>) -> Result<(), Error> {
        let (Some(layout), Ok(raw)) = (&self.layout, raw) else { return Ok(()) };
        let context = self.rules.context(layout);
        let mut reader = RowReader::new(&raw, context);
        match reader.written_time(Column::OBSERVED_AT) {
            Some(WrittenTime::DayOfYear { month, day }) => self.survey.add_day(month, day),
            Some(WrittenTime::Local(_)) => self.survey.has_local_times = true,
            _ => {}
        }
        let posted = reader.written_time(Column::CREATE_TIME);
        self.survey.has_local_times |= matches!(posted, Some(WrittenTime::Local(_)));
        if let Some(WrittenTime::Local(posted)) = posted
            && let Some(id_time) = reader.id_time()
        {
            self.survey.pairs.push(TimePair::new(posted, id_time));
        }
        let has_enough = self.survey.pairs.len() >= MAX_PAIRS && context.format.dates != Dates::MonthAndDay;
        if has_enough { Err(Error::SurveyEnded) } else { Ok(()) }
    }

    fn columns(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }
}
