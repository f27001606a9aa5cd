//! A query of records that runs alone, or within the statement that also reads the version of an organization's data
//! (`store::outbox::data_version`).

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::{Execute, FromRow, PgExecutor, PgPool, Postgres, QueryBuilder};

use crate::store::Error;

type ReadRows<T> = Box<dyn FnOnce(&[PgRow]) -> Result<T, Error> + Send>;

/// A query with what its rows mean. Their order is not part of it, because it may run within another statement.
pub struct RecordsQuery<T> {
    statement: QueryBuilder<Postgres>,
    read: ReadRows<T>,
}

/// The parts of a query.
pub(in crate::store) struct RecordsQueryParts<T> {
    pub sql: String,
    pub arguments: PgArguments,
    pub read: ReadRows<T>,
}

impl<R: for<'r> FromRow<'r, PgRow> + 'static> RecordsQuery<Vec<R>> {
    pub(in crate::store) fn rows(statement: QueryBuilder<Postgres>) -> Self {
        let read = |rows: &[PgRow]| Ok(rows.iter().map(R::from_row).collect::<Result<_, _>>()?);
        RecordsQuery { statement, read: Box::new(read) }
    }
}

impl<T: 'static> RecordsQuery<T> {
    /// A query that always returns one row.
    pub(in crate::store) fn row(statement: QueryBuilder<Postgres>) -> Self
    where
        T: for<'r> FromRow<'r, PgRow>,
    {
        let read = |rows: &[PgRow]| Ok(T::from_row(rows.first().ok_or(sqlx::Error::RowNotFound)?)?);
        RecordsQuery { statement, read: Box::new(read) }
    }

    pub(in crate::store) fn and_then<U>(
        self,
        convert: impl FnOnce(T) -> Result<U, Error> + Send + 'static,
    ) -> RecordsQuery<U> {
        let RecordsQuery { statement, read } = self;
        RecordsQuery { statement, read: Box::new(move |rows| convert(read(rows)?)) }
    }

    pub fn map<U>(self, convert: impl FnOnce(T) -> U + Send + 'static) -> RecordsQuery<U> {
        self.and_then(move |value| Ok(convert(value)))
    }

    /// The statement, for tests of its plan.
    pub fn statement(&mut self) -> &mut QueryBuilder<Postgres> {
        &mut self.statement
    }

    pub async fn fetch(self, pg: &PgPool) -> Result<T, Error> {
        self.fetch_from(pg).await
    }

    pub(in crate::store) async fn fetch_from(mut self, pg: impl PgExecutor<'_>) -> Result<T, Error> {
        let rows = self.statement.build().fetch_all(pg).await?;
        (self.read)(&rows)
    }

    pub(in crate::store) fn into_parts(mut self) -> Result<RecordsQueryParts<T>, Error> {
        let arguments = self.statement.build().take_arguments().map_err(sqlx::Error::Encode)?;
        Ok(RecordsQueryParts {
            sql: self.statement.into_string(),
            arguments: arguments.unwrap_or_default(),
            read: self.read,
        })
    }
}
