/// Defines a struct with named fields, and a list of their names, from which stores build the statements that read it.
macro_rules! record {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident {
            $($(#[$field_attribute:meta])* pub $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$attribute])*
        pub struct $name {
            $($(#[$field_attribute])* pub $field: $type,)*
        }

        impl $name {
            pub const FIELDS: &[&str] = &[$(stringify!($field)),*];
        }
    };
}
pub(super) use record;
