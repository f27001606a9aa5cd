//! Files of every container, encoding and shape, and hostile ones.

mod archives;
mod csv;
mod hostile;
mod json;
mod recorder;
mod workbooks;
