//! Violations of a request, field by field.

use schemars::JsonSchema;
use serde::Serialize;

/// A field that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Violation {
    /// Dotted path of the field, such as `metadata.team` or `instagram_post_ids[3]`.
    #[schemars(example = &"limit")]
    pub field: String,
    /// Requirement on the field.
    #[schemars(example = &"must be from 1 to 200")]
    pub message: String,
}

/// Everything that is wrong with a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

/// How messages begin: with the field before it, each is a sentence.
const PREDICATES: [&str; 5] = ["must ", "is ", "was ", "cannot ", "as a key must "];

impl Violations {
    /// Adds a violation. Its message is what follows the name of the field in a sentence.
    pub fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        let (field, message) = (field.into(), message.into());
        debug_assert!(PREDICATES.iter().any(|begin| message.starts_with(begin)), "{field} {message}");
        self.0.push(Violation { field, message });
    }

    /// Returns the violations of a nested object, with their paths from the outside.
    pub fn within(self, path: &str) -> Self {
        let nest =
            |violation: Violation| Violation { field: format!("{path}.{}", violation.field), ..violation };
        Violations(self.0.into_iter().map(nest).collect())
    }

    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    pub fn contains_field(&self, field: &str) -> bool {
        self.0.iter().any(|violation| violation.field == field)
    }

    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Sorts the violations from the `start`-th on by their fields, each named without its path inside.
    pub fn sort_from(&mut self, start: usize, position: impl Fn(&str) -> Option<usize>) {
        let field = |violation: &Violation| {
            let name = violation.field.split(['.', '[']).next().unwrap_or_default();
            position(&violation.field).or_else(|| position(name)).unwrap_or(usize::MAX)
        };
        self.0[start..].sort_by_cached_key(field);
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn into_vec(self) -> Vec<Violation> {
        self.0
    }
}
