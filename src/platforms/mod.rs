//! Where data about accounts and posts comes from: the sources behind one trait, chosen per platform.

pub mod lenient;
pub mod outbound;
pub mod secret;
pub mod source;
