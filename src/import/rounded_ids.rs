//! Tells ids that a spreadsheet or a script has rounded: they have the digits of a floating-point number, then zeros.
//!
//! One exact id in a thousand looks like that, so only what all ids of a table have in common proves it.

use std::collections::BTreeSet;

use super::notes::Notes;

/// Integers beyond are not all floating-point numbers.
const MAX_EXACT: u64 = 1 << 53;
/// Digits that spreadsheets keep.
pub const SPREADSHEET_DIGITS: usize = 15;
/// Digits that tell floating-point numbers apart.
const FLOAT_DIGITS: usize = 17;
/// Decimal places of the probability below which nothing is a coincidence.
const PROOF: f64 = 5.0;
/// One id proves nothing: some are round.
const MIN_IDS: usize = 2;
/// Decimal places of the probability below which an id looks rounded.
const SUSPICION: f64 = 2.0;
/// What one id can contribute: the first of a sequence may be round.
const MAX_PLACES: f64 = 4.0;
/// More of all ids than this share look rounded only for a reason.
const SUSPICIOUS_SHARE: u64 = 20;

/// What the digits of an id say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum IdDigits {
    /// Nothing: it is short, or is not the only id of its row.
    Few,
    Exact,
    /// The decimal places of the probability that an exact id looks so.
    Rounded(f64),
}

impl IdDigits {
    pub fn new(id: &str) -> Self {
        let number = id.parse::<u64>().ok().filter(|number| *number > MAX_EXACT);
        let Some(number) = number else { return IdDigits::Few };
        let shown = id.trim_end_matches('0').len();
        // The shortest decimal of the nearest floating-point number.
        if shown > FLOAT_DIGITS || (number as f64).to_string() != id {
            return IdDigits::Exact;
        }
        let spacing = f64::from(number.ilog2() - MAX_EXACT.ilog2() + 1) * std::f64::consts::LOG10_2;
        let zeros = if shown <= SPREADSHEET_DIGITS { (id.len() - shown) as f64 } else { 0.0 };
        match spacing.max(zeros) {
            SUSPICION.. => IdDigits::Rounded(spacing.max(zeros).min(MAX_PLACES)),
            _ => IdDigits::Exact,
        }
    }
}

/// Whether the ids of a table are rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Exact,
    Rounded,
    /// All look rounded, and are too few.
    Unclear,
}

/// The ids of a table in a first reading.
#[derive(Debug, Default)]
pub struct IdSurvey {
    ids: BTreeSet<String>,
    places: f64,
    has_exact: bool,
}

impl IdSurvey {
    /// Adds an id, and returns whether that is enough.
    pub fn add(&mut self, id: &str, digits: IdDigits) -> bool {
        match digits {
            IdDigits::Few => {}
            IdDigits::Exact => self.has_exact = true,
            IdDigits::Rounded(places) => {
                if self.ids.insert(id.to_owned()) {
                    self.places += places;
                }
            }
        }
        self.has_exact || self.is_proven()
    }

    fn is_proven(&self) -> bool {
        self.ids.len() >= MIN_IDS && self.places >= PROOF
    }

    pub fn verdict(&self) -> Verdict {
        if self.has_exact {
            Verdict::Exact
        } else if self.is_proven() {
            Verdict::Rounded
        } else {
            Verdict::Unclear
        }
    }
}

/// The ids of a table while its rows are read.
#[derive(Debug, Default)]
pub struct TableIds {
    /// `None` before the first long id.
    verdict: Option<Verdict>,
    long: u64,
    suspicious: u64,
    /// The first suspicious id, with its line.
    first: Option<(u64, String)>,
}

/// What to do with the id of a row.
#[derive(Debug, PartialEq, Eq)]
pub enum Judgement {
    Accept,
    Refuse,
    /// The table has to be read once before.
    Survey,
}

impl TableIds {
    pub const fn finish_survey(&mut self, verdict: Verdict) {
        self.verdict = Some(verdict);
    }

    pub fn judge(&mut self, id: &str, digits: IdDigits, line: u64) -> Judgement {
        match (digits, self.verdict) {
            (IdDigits::Few, _) => return Judgement::Accept,
            (IdDigits::Rounded(_), None) => return Judgement::Survey,
            (IdDigits::Rounded(_), Some(Verdict::Rounded)) => return Judgement::Refuse,
            (IdDigits::Exact, None) => self.verdict = Some(Verdict::Exact),
            _ => {}
        }
        self.long += 1;
        if matches!(digits, IdDigits::Rounded(_)) {
            self.suspicious += 1;
            self.first.get_or_insert_with(|| (line, id.to_owned()));
        }
        Judgement::Accept
    }

    /// Reports ids that may be rounded.
    pub fn report(self, notes: &mut Notes) {
        let is_reported =
            self.verdict == Some(Verdict::Unclear) || self.suspicious * SUSPICIOUS_SHARE > self.long;
        let Some((line, id)) = self.first.filter(|_| is_reported) else { return };
        let rows =
            if self.suspicious == 1 { "1 row".to_owned() } else { format!("{} rows", self.suspicious) };
        notes.assume(format!(
            "`external_id` of {rows} ends as if a spreadsheet had rounded it: `{id}` in line {line}; compare it with the \
             post, or add `url`"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(ids: &[&str]) -> Verdict {
        let mut survey = IdSurvey::default();
        for id in ids {
            if survey.add(id, IdDigits::new(id)) {
                break;
            }
        }
        survey.verdict()
    }

    #[test]
    fn digits_of_floating_point_numbers_look_rounded() {
        let places = |id: &str| match IdDigits::new(id) {
            IdDigits::Rounded(places) => Some((places * 10.0) as u32),
            _ => None,
        };
        for (id, expected) in [
            // A spreadsheet, and JavaScript.
            ("7507934733892860000", Some(40)),
            ("7507934733892865000", Some(30)),
            ("3830305993766470000", Some(40)),
            ("3830305993766474000", Some(27)),
            ("17900000500000000", Some(40)),
            ("17900000500000100", Some(20)),
            ("7507934733892865323", None),
            ("17900000500000002", None),
            ("17900000500000001", None),
        ] {
            assert_eq!(places(id), expected, "{id}");
        }
        for short in ["1", "9007199254740992", "x", "", "7.5E+18", "99999999999999999999"] {
            assert_eq!(IdDigits::new(short), IdDigits::Few, "{short}");
        }
    }

    #[test]
    fn all_ids_of_a_table_prove_a_rounding() {
        for (ids, expected) in [
            (&["7507934733892860000", "7507934733892990000"][..], Verdict::Rounded),
            (&["7507934733892865000", "7507934733892999000"], Verdict::Rounded),
            (&["17900000500000100", "17900000500000200", "17900000500000300"], Verdict::Rounded),
            (&["17900000500000100", "17900000500000200"], Verdict::Unclear),
            (&["7507934733892860000", "7507934733892860000"], Verdict::Unclear),
            (&["7300000000000000000"], Verdict::Unclear),
            (&["7300000000000000000", "7300000000000000001"], Verdict::Exact),
            (&["17900000000000000", "17900000000000002"], Verdict::Exact),
            (&[], Verdict::Unclear),
        ] {
            assert_eq!(verdict(ids), expected, "{ids:?}");
        }
    }

    #[test]
    fn few_round_ids_among_exact_ones_are_not_reported() {
        let report = |exact: u64, round: u64| {
            let (mut ids, mut notes) = (TableIds::default(), Notes::default());
            for n in 1..=exact {
                let id = (7_507_934_733_892_865_321 + n * 1_000_000).to_string();
                assert_eq!(ids.judge(&id, IdDigits::new(&id), n), Judgement::Accept);
            }
            for line in 0..round {
                let id = "7507934733892860000";
                assert_eq!(ids.judge(id, IdDigits::new(id), line), Judgement::Accept);
            }
            ids.report(&mut notes);
            notes.into_sentences().len()
        };
        assert_eq!((report(100, 1), report(100, 4), report(100, 7), report(1, 1)), (0, 0, 1, 1));
        let (mut undecided, id) = (TableIds::default(), "7507934733892860000");
        assert_eq!(undecided.judge(id, IdDigits::new(id), 2), Judgement::Survey);
        undecided.finish_survey(Verdict::Rounded);
        assert_eq!(undecided.judge(id, IdDigits::new(id), 2), Judgement::Refuse);
    }
}
