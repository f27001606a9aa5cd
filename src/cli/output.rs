//! Standard output of a command: a table for people, JSON for programs.

use std::io::{self, IsTerminal, Write};
use std::iter;

use serde::Serialize;
use serde_json::Value;

use super::error::CommandError;

#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct OutputArgs {
    /// Print JSON instead of a table
    #[arg(long, env = "TIDEMARK_JSON")]
    pub(super) json: bool,
}

impl OutputArgs {
    pub(super) fn print(self, record: &impl Serialize, columns: &[&str]) -> Result<(), CommandError> {
        let record = serde_json::to_value(record)?;
        if self.json {
            print_json(&record)
        } else {
            write(&format_table(std::slice::from_ref(&record), columns))
        }
    }

    pub(super) fn print_list(self, records: &[impl Serialize], columns: &[&str]) -> Result<(), CommandError> {
        let records: Vec<Value> = records.iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
        if self.json { print_json(&Value::Array(records)) } else { write(&format_table(&records, columns)) }
    }
}

fn print_json(value: &Value) -> Result<(), CommandError> {
    write(&format!("{}\n", serde_json::to_string_pretty(value)?))
}

pub(super) fn print_lines(lines: impl Iterator<Item: AsRef<str>>) -> Result<(), CommandError> {
    write(&lines.map(|line| replace_control_characters(line.as_ref()) + "\n").collect::<String>())
}

/// Whether to show progress on standard error.
pub(super) fn shows_progress() -> bool {
    io::stderr().is_terminal()
}

/// Writes to standard output. A closed pipe, as of `head`, is not an error.
fn write(text: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}

/// Formats records in columns as wide as their widest value.
fn format_table(records: &[Value], columns: &[&str]) -> String {
    let header = columns.iter().map(|column| column.to_uppercase().replace('_', " ")).collect();
    let format_cells = |record: &Value| columns.iter().map(|column| format_cell(&record[*column])).collect();
    let rows: Vec<Vec<String>> = iter::once(header).chain(records.iter().map(format_cells)).collect();
    let max_width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(max_width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn format_cell(value: &Value) -> String {
    let text = match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(format_cell).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    };
    replace_control_characters(&text)
}

/// Replaces characters that would move the terminal's cursor.
fn replace_control_characters(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_value() {
        let records = [
            json!({"name": "Åse", "rate_limit": null, "scopes": ["read", "write"]}),
            json!({"name": "a\u{1b}[2Jb", "rate_limit": 600, "scopes": ["read"]}),
        ];
        let lines =
            ["NAME     RATE LIMIT  SCOPES", "Åse      -           read,write", "a [2Jb   600         read"];
        let table = format_table(&records, &["name", "rate_limit", "scopes"]);
        let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(table.lines().map(squeeze).collect::<Vec<_>>(), lines.map(squeeze));
        let column = table.lines().map(|line| line.chars().collect::<Vec<_>>()).collect::<Vec<_>>();
        assert_eq!(column[0][8], 'R', "{table}");
        assert_eq!(column[1][8], '-', "{table}");
        assert_eq!(column[2][8], '6', "{table}");
    }
}
