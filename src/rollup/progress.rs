use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

pub(super) fn progress_bar(is_shown: bool, subjects: usize) -> ProgressBar {
    if !is_shown {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(subjects as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} subjects {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
