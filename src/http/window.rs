//! How a request names a window of days, in a query and in a body; what it means is in `model::period`.

use chrono::NaiveDate;

use super::fields::{Object, Params, Violations, Word};
use super::problem::Problem;
use crate::model::period::{Period, Window, WindowRequest};

impl Word for Period {
    const WORDS: &'static [(&'static str, Self)] =
        &[("7d", Period::Week), ("30d", Period::Month), ("90d", Period::Quarter), ("custom", Period::Custom)];
}

/// Reads `period`, `start_date`, `end_date` and `include_today` of a GET, and notes what makes the window impossible.
pub fn from_query(query: &mut Params<'_>) -> WindowRequest {
    let before = query.violations.len();
    let request = WindowRequest {
        period: query.word("period"),
        start_date: query.date("start_date"),
        end_date: query.date("end_date"),
        include_today: query.boolean("include_today").unwrap_or(true),
        dates_imply_custom: true,
    };
    check(request, before, query.violations);
    request
}

/// Reads `period`, `start_date` and `end_date` of a batch body, and notes what makes the window impossible.
pub fn from_body(body: &mut Object<'_>) -> WindowRequest {
    let before = body.violations.len();
    let request = WindowRequest {
        period: body.word("period"),
        start_date: body.date("start_date"),
        end_date: body.date("end_date"),
        include_today: true,
        dates_imply_custom: false,
    };
    check(request, before, body.violations);
    request
}

/// Says what is wrong with a window whose parts are sound by themselves; that does not depend on the day.
fn check(request: WindowRequest, before: usize, violations: &mut Violations) {
    if violations.len() > before {
        return;
    }
    for bad in Window::resolve(request, NaiveDate::default()).err().into_iter().flatten() {
        violations.add(bad.field, bad.message);
    }
}

/// Resolves a checked request on the given day.
pub fn resolve(request: WindowRequest, today: NaiveDate) -> Result<Window, Problem> {
    Window::resolve(request, today).map_err(|bad| {
        let mut violations = Violations::default();
        for bad in bad {
            violations.add(bad.field, bad.message);
        }
        Problem::invalid(violations)
    })
}
