//! The progress bar of an import: bytes while files are read, then rows while they are saved.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

pub fn progress_bar(is_shown: bool, bytes: u64) -> ProgressBar {
    if !is_shown {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(bytes);
    style(&bar, "{bar:40} {bytes}/{total_bytes} {elapsed} {msg}");
    bar.set_message("reading");
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Switches from bytes to rows.
pub fn show_rows(bar: &ProgressBar, rows: u64) {
    style(bar, "{bar:40} {human_pos}/{human_len} rows {elapsed} {msg}");
    bar.set_length(rows);
    bar.set_position(0);
    bar.set_message("saving");
}

fn style(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}
