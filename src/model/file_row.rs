//! Rows of files, whose columns follow from the fields of a struct.

use super::field::{FieldType, FieldValue, ToField};
use super::gains::{Gains, Metrics};

/// Names and types of columns.
pub type Columns = Vec<(&'static str, FieldType)>;

/// A row, or a field of a row: a column under the field's name, or a struct of several columns.
pub trait FileColumns {
    fn add_columns(name: &'static str, columns: &mut Columns);
    fn add_values<'a>(&'a self, values: &mut Vec<FieldValue<'a>>);

    /// Returns the columns of a row.
    fn columns() -> Columns {
        let mut columns = Vec::new();
        Self::add_columns("", &mut columns);
        columns
    }

    /// Returns a row's value for each column.
    fn values(&self) -> Vec<FieldValue<'_>> {
        let mut values = Vec::new();
        self.add_values(&mut values);
        values
    }
}

impl<T: ToField> FileColumns for T {
    fn add_columns(name: &'static str, columns: &mut Columns) {
        columns.push((name, T::TYPE));
    }

    fn add_values<'a>(&'a self, values: &mut Vec<FieldValue<'a>>) {
        values.push(self.to_field());
    }
}

/// Defines a row, or makes an existing struct one.
macro_rules! file_row {
    ($(#[$attribute:meta])* $visibility:vis struct $name:ident $(<$lifetime:lifetime>)? { $($field:ident: $type:ty,)* }) => {
        $(#[$attribute])*
        $visibility struct $name $(<$lifetime>)? {
            $($field: $type,)*
        }

        $crate::model::file_row::file_row!($name $(<$lifetime>)? { $($field),* });
    };
    ($name:ident $(<$lifetime:lifetime>)? { $($field:ident),* }) => {
        impl $(<$lifetime>)? $crate::model::file_row::FileColumns for $name $(<$lifetime>)? {
            fn add_columns(_: &'static str, columns: &mut $crate::model::file_row::Columns) {
                $($crate::model::file_row::add_columns(stringify!($field), |row: &Self| &row.$field, columns);)*
            }

            fn add_values<'v>(&'v self, values: &mut Vec<$crate::model::field::FieldValue<'v>>) {
                let Self { $($field),* } = self;
                $($crate::model::file_row::FileColumns::add_values($field, values);)*
            }
        }
    };
}
pub(crate) use file_row;

/// Adds the columns of the field that a function returns.
pub fn add_columns<R, F: FileColumns>(name: &'static str, _: fn(&R) -> &F, columns: &mut Columns) {
    F::add_columns(name, columns);
}

file_row!(Gains { views, plays, likes, comments, shares, engagement });
file_row!(Metrics { gains, engagement_rate });
