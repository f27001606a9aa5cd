//! Reads one file: its tables are recognized, its rows validated and collected, and what it contains is reported.

use std::collections::BTreeSet;

use table_file::{Cells, Decision, Note, Sink, Table};

use super::admission::Admission;
use super::clock::TableClock;
use super::column::Column;
use super::distinct::DistinctCount;
use super::error::Error;
use super::file_reader::read_tables;
use super::file_report::FileReport;
use super::layout::Layout;
use super::monitor::Monitor;
use super::new_records::NewRecords;
use super::notes::Notes;
use super::raw_row::RawRow;
use super::report::RejectionReport;
use super::rounded_ids::TableIds;
use super::row::Row;
use super::row_buffer::RowBuffer;
use super::row_parser::{ParsedRow, Rejection, SurveyKind, parse};
use super::row_reader::RowState;
use super::row_sink::RowSink;
use super::sample::preview;
use super::survey_reader::{survey_ids, survey_times};
use super::table_rules::{TableDecision, TableRules, describe_unknown};

/// Rows of a preview.
const SAMPLE_ROWS: usize = 5;

/// What all files of an import share.
pub struct Shared<'a> {
    pub rows: &'a mut RowBuffer,
    pub new_records: &'a mut NewRecords,
    pub rejections: &'a mut RejectionReport,
    pub admission: &'a mut Admission,
    pub monitor: &'a Monitor,
    pub found_mappings: &'a mut BTreeSet<String>,
}

struct FileImport<'a, 's> {
    rules: TableRules<'a>,
    shared: Shared<'s>,
    report: FileReport,
    notes: Notes,
    formats: BTreeSet<&'static str>,
    /// Why tables are refused.
    refused_tables: Vec<(Option<String>, String)>,
    table: Option<CurrentTable>,
    tables: usize,
    accounts: DistinctCount,
    videos: DistinctCount,
    /// Columns of `--map` that only rows of the other kind could read.
    unread: BTreeSet<(String, &'static str)>,
    read_kinds: BTreeSet<Kind>,
}

/// The kind of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Post,
    Account,
}

struct CurrentTable {
    part: Option<String>,
    layout: Layout,
    clock: TableClock,
    ids: TableIds,
    number: usize,
}

/// Reads a file. An error that concerns the file alone is in the report, unless rows of it are already collected.
pub fn read_file(
    rules: TableRules<'_>,
    on_bytes: &dyn Fn(u64),
    shared: Shared<'_>,
) -> Result<FileReport, Error> {
    let mut import = FileImport {
        rules,
        shared,
        report: FileReport {
            file: rules.source.name.clone(),
            sample: rules.options.dry_run.then(Vec::new),
            ..FileReport::default()
        },
        notes: Notes::default(),
        formats: BTreeSet::new(),
        refused_tables: Vec::new(),
        table: None,
        tables: 0,
        accounts: DistinctCount::default(),
        videos: DistinctCount::default(),
        unread: BTreeSet::new(),
        read_kinds: BTreeSet::new(),
    };
    match read_tables(rules.source, rules.options, on_bytes, &mut import) {
        Ok(()) => import.finish(),
        Err(Error::Table(error)) if import.report.rows_read == 0 => {
            import.report.error = Some(error.to_string());
            Ok(import.into_report())
        }
        Err(Error::Table(error)) => Err(Error::Damaged(rules.source.name.clone(), error)),
        Err(error) => Err(error),
    }
}

impl Sink for FileImport<'_, '_> {
    type Error = Error;

    fn table(&mut self, table: &Table<'_>) -> Result<Decision, Error> {
        match self.rules.decide(table) {
            TableDecision::Read(layout) => {
                for sentence in self.rules.assumptions(&layout, table) {
                    self.notes.assume(sentence);
                }
                self.formats.insert(layout.format.name);
                let zone = self.rules.options.time_zone.unwrap_or(layout.format.zone);
                self.table = Some(CurrentTable {
                    part: table.part.map(str::to_owned),
                    layout,
                    clock: TableClock::new(zone),
                    ids: TableIds::default(),
                    number: self.tables,
                });
                self.tables += 1;
                Ok(Decision::Read)
            }
            TableDecision::Unknown => Ok(Decision::NoHeader),
            TableDecision::Refuse(format, reason) => {
                self.formats.insert(format);
                self.refused_tables.push((table.part.map(str::to_owned), reason));
                Ok(Decision::Leave)
            }
        }
    }

    fn column(&mut self, name: &str) {
        if let Some(table) = &mut self.table {
            table.layout.add(name);
        }
    }

    fn row(&mut self, line: u64, cells: Result<Cells<'_>, String>) -> Result<(), Error> {
        let Some(table) = &self.table else { return Ok(()) };
        let raw = cells.and_then(|cells| table.layout.assign(cells));
        self.raw_row(line, raw)
    }

    fn end(&mut self) -> Result<(), Error> {
        let Some(table) = self.table.take() else { return Ok(()) };
        for mapping in table.layout.found_mappings() {
            self.shared.found_mappings.insert(mapping.theirs.clone());
            self.unread.insert((mapping.theirs.clone(), mapping.ours.name()));
        }
        table.ids.report(&mut self.notes);
        Ok(())
    }

    fn unknown(&mut self, table: &Table<'_>) -> Result<(), Error> {
        match table.part {
            Some(part) => self.notes.leave_part(part),
            None => self.refused_tables.push((None, describe_unknown(table))),
        }
        Ok(())
    }

    fn note(&mut self, note: Note<'_>) {
        match note {
            Note::Windows1252 => self.notes.assume("the text is not UTF-8: read as Windows-1252"),
            Note::WrappedLines => self.notes.assume("a spreadsheet wrapped lines into one field: unwrapped"),
            Note::Left(part) => self.notes.leave_part(part),
        }
    }
}

impl RowSink for FileImport<'_, '_> {
    fn raw_row(&mut self, line: u64, raw: Result<RawRow<'_>, String>) -> Result<(), Error> {
        if self.shared.monitor.is_cancelled() {
            return Err(Error::Cancelled);
        }
        self.report.rows_read += 1;
        self.shared.monitor.count_row();
        let raw = match raw {
            Ok(raw) => raw,
            Err(reason) => return self.refuse(line, &reason),
        };
        loop {
            match self.parse(line, &raw) {
                Ok(parsed) => return self.collect(line, parsed),
                Err(Rejection::Creator(name)) => {
                    self.shared.new_records.creators.insert(name);
                    return Ok(());
                }
                Err(Rejection::Invalid(reason)) => return self.refuse(line, &reason),
                Err(Rejection::NeedsSurvey(kind)) => self.survey(kind)?,
            }
        }
    }

    fn columns(&self) -> Option<&Layout> {
        self.table.as_ref().map(|table| &table.layout)
    }
}

impl FileImport<'_, '_> {
    fn parse(&mut self, line: u64, raw: &RawRow<'_>) -> Result<ParsedRow, Rejection> {
        let Some(table) = &mut self.table else { return Err(Rejection::Invalid(String::new())) };
        let context = self.rules.context(&table.layout);
        let (clock, ids) = (&mut table.clock, &mut table.ids);
        parse(raw, context, &mut RowState { clock, ids, notes: &mut self.notes, line })
    }

    /// Reads the current table once before.
    fn survey(&mut self, kind: SurveyKind) -> Result<(), Error> {
        let Some(table) = &mut self.table else { return Ok(()) };
        match kind {
            SurveyKind::Ids => table.ids.finish_survey(survey_ids(self.rules, table.number)?),
            SurveyKind::Times => {
                let survey = survey_times(self.rules, table.number)?;
                let zone = self.rules.options.time_zone;
                for sentence in table.clock.finish_survey(survey, zone, self.rules.times.now) {
                    self.notes.assume(sentence);
                }
            }
        }
        Ok(())
    }

    fn collect(&mut self, line: u64, parsed: ParsedRow) -> Result<(), Error> {
        let ParsedRow { row, account } = parsed;
        if let Err(reason) = self.shared.admission.admit(row.platform(), row.username()) {
            return self.refuse(line, &reason);
        }
        if let Some(samples) = self.report.sample.as_mut().filter(|samples| samples.len() < SAMPLE_ROWS) {
            samples.push(preview(&row));
        }
        self.add(row)?;
        account.map_or(Ok(()), |account| self.add(Row::Account(account)))
    }

    fn add(&mut self, row: Row) -> Result<(), Error> {
        if let Some(username) = row.username() {
            self.accounts.add((row.platform(), username));
        }
        self.read_kinds.insert(match &row {
            Row::Video(video) => {
                self.videos.add((video.platform, video.ids.key()));
                Kind::Post
            }
            Row::Account(_) => Kind::Account,
        });
        if let Some(time) = row.observation() {
            self.report.snapshots += 1;
            let first = self.report.first_observed_at.get_or_insert(time);
            *first = time.min(*first);
            let last = self.report.last_observed_at.get_or_insert(time);
            *last = time.max(*last);
        }
        if self.rules.options.dry_run {
            return Ok(());
        }
        self.shared.new_records.add(&row);
        self.shared.rows.add(row).map_err(Error::TemporaryFile)
    }

    fn refuse(&mut self, line: u64, reason: &str) -> Result<(), Error> {
        let part = self.table.as_ref().and_then(|table| table.part.as_deref());
        let located = part.map(|part| format!("{part}: {reason}"));
        let reason = located.as_deref().unwrap_or(reason);
        self.report.refuse(line, reason);
        self.shared.monitor.count_refusal();
        self.shared.rejections.add(self.rules.source, line, reason)
    }

    /// Reports refused tables: a file without others is refused whole.
    fn finish(mut self) -> Result<FileReport, Error> {
        let refused = std::mem::take(&mut self.refused_tables);
        if self.tables == 0 && !refused.is_empty() {
            let sentences: Vec<_> = refused
                .into_iter()
                .map(|(part, reason)| part.map_or_else(|| reason.clone(), |part| format!("{part}: {reason}")))
                .collect();
            self.report.error = Some(sentences.join("; "));
            return Ok(self.into_report());
        }
        for (part, reason) in refused {
            let sentence = part.map_or_else(|| reason.clone(), |part| format!("{part}: {reason}"));
            self.refuse(0, &sentence)?;
        }
        if self.tables == 0 && self.notes.has_left_parts() {
            self.report.error =
                Some("has no table that is known: `tidemark import --formats` lists them".to_owned());
        }
        self.report_unread_mappings();
        Ok(self.into_report())
    }

    /// Says which columns of `--map` no row of this file could read.
    fn report_unread_mappings(&mut self) {
        let kinds = &self.read_kinds;
        let reads = |column: Column| {
            let of_accounts = column.is_of_accounts() && kinds.contains(&Kind::Account);
            of_accounts || column.is_of_posts() && kinds.contains(&Kind::Post)
        };
        if kinds.is_empty() {
            return;
        }
        for (theirs, ours) in &self.unread {
            if Column::from_name(ours).is_some_and(|column| !reads(column)) {
                let kind = if kinds.contains(&Kind::Post) { "posts" } else { "accounts" };
                self.notes.assume(format!("`{theirs}` is not read: rows of {kind} have no `{ours}`"));
            }
        }
    }

    fn into_report(mut self) -> FileReport {
        let formats: Vec<_> = self.formats.into_iter().collect();
        self.report.format = (!formats.is_empty()).then(|| formats.join(", "));
        self.report.assumed = self.notes.into_sentences();
        self.report.accounts = self.accounts.finish();
        self.report.videos = self.videos.finish();
        self.report
    }
}
