//! Counts the bytes that all streams of a file unpack to.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use crate::error::BudgetExceeded;

#[derive(Clone)]
pub(crate) struct Budget {
    limit: u64,
    left: Rc<Cell<u64>>,
}

impl Budget {
    pub(crate) fn new(limit: u64) -> Self {
        Budget { limit, left: Rc::new(Cell::new(limit)) }
    }

    pub(crate) fn meter<R>(&self, inner: R) -> Metered<R> {
        Metered { inner, budget: self.clone() }
    }
}

/// A stream that fails once the budget is used up.
pub(crate) struct Metered<R> {
    inner: R,
    budget: Budget,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        match self.budget.left.get().checked_sub(read as u64) {
            Some(left) => self.budget.left.set(left),
            None => return Err(io::Error::other(BudgetExceeded(self.budget.limit))),
        }
        Ok(read)
    }
}
