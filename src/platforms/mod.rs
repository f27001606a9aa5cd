//! Where data about accounts and posts comes from: the sources behind one trait, chosen per platform.

pub mod source;
