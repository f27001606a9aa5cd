//! Ways in which platforms and pictures fail on command.

use serde::{Deserialize, Serialize};

/// A way in which a platform fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    RateLimit,
    Error,
    Hang,
    Html,
    Truncate,
    Unauthorized,
}

/// A way in which a picture is bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PictureFault {
    /// Its URL has expired.
    Expired,
    Missing,
    /// A byte per second.
    Slow,
    /// HTML with the content type of a picture.
    Html,
    /// A PNG of 50,000 x 50,000 pixels.
    Bomb,
    /// A body of 1 GiB.
    Huge,
    /// The first half of a JPEG.
    Truncated,
    /// SVG with a script, and the content type of a JPEG.
    Svg,
    /// A redirect to a private address.
    Redirect,
}
