//! Rows of files, whose columns follow from the fields of a struct.

use super::field::{FieldType, FieldValue, ToField};
use super::gains::{Gains, Metrics};

/// Names and types of columns.
pub type Columns = Vec<(&'static str, FieldType)>;

/// A field of a row: a column under the field's name, or a struct of several columns.
pub trait FileColumns {
    fn add_columns(name: &'static str, columns: &mut Columns);
    fn add_values<'a>(&'a self, values: &mut Vec<FieldValue<'a>>);
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
    ($(#[$attribute:meta])* $visibility:vis struct $name:ident { $($field:ident: $type:ty,)* }) => {
        $(#[$attribute])*
        $visibility struct $name {
            $($field: $type,)*
        }

        $crate::model::file_row::file_row!($name { $($field),* });
    };
    ($name:ident { $($field:ident),* }) => {
        impl $crate::model::file_row::FileColumns for $name {
            fn add_columns(_: &'static str, columns: &mut $crate::model::file_row::Columns) {
                $($crate::model::file_row::add_columns(stringify!($field), |row: &Self| &row.$field, columns);)*
            }

            fn add_values<'a>(&'a self, values: &mut Vec<$crate::model::field::FieldValue<'a>>) {
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
