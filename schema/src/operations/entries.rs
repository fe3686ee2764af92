//! The macros that make operations of the entries of the table.

/// The form of an operation in HTTP: the body of its request, unless the row names another.
macro_rules! form {
    ($request:ty) => {
        <$request as Request>::Body
    };
    ($request:ty, $form:ty) => {
        $form
    };
}

/// The name of the field in RPC that has the caller's key.
macro_rules! key_field {
    () => {
        None
    };
    ($field:literal) => {
        Some($field)
    };
}

/// Makes the unit type of an operation, its [`Operation`] and its row from each entry of an area:
///
/// `Trait, ROWS, visit:`, then `Name = "rpc.name": Request => Answer [, form HttpForm] [, key path.to.field as "rpcField"] { column: value, ... }`
///
/// The first line names the trait of those who carry out every operation of the area.
/// The columns are those of [`Row`]; the comment of the entry becomes [`Row::doc`].
macro_rules! operations {
    ($handlers:ident; $(
        $(#[doc = $doc:literal])+
        $name:ident = $text:literal: $request:ty => $answer:ty $(, form $form:ty)? $(, key $($key:ident).+ as $field:literal)? {
            $($column:ident: $value:expr),+ $(,)?
        }
    )+) => {
        $(
            $(#[doc = $doc])+
            #[derive(Clone, Copy, Debug)]
            pub struct $name;

            impl $name {
                pub const NAME: &'static str = $text;
                /// Its path in HTTP; empty where HTTP does not have it.
                pub const PATH: &'static str = <Self as Operation>::ROW.path();
            }

            impl Operation for $name {
                type Request = $request;
                type Answer = $answer;
                type Form = form!($request $(, $form)?);
                const ROW: &'static Row = &Row {
                    name: $text,
                    doc: concat!($($doc),+),
                    rpc: Ok(()),
                    python: Ok(()),
                    subject: <$request as Request>::SUBJECT,
                    key: key_field!($($field)?),
                    $($column: $value),+
                };
                $(fn keyed(request: &mut $request, key: String) {
                    request.$($key).+.get_or_insert(key);
                })?
            }
        )+

        /// The rows of this area, in the order of the table.
        pub(super) const ROWS: &[&Row] = &[$(<$name as Operation>::ROW),+];

        /// Whoever carries out every operation of this area.
        pub trait $handlers: $(Handle<$name> +)+ {}
        impl<H> $handlers for H where $(H: Handle<$name>),+ {}

        /// Shows every operation of this area to the visitor, in the order of the table.
        pub(super) fn visit_area<H: $handlers, V: Visit<H>>(visitor: &mut V) {
            $(visitor.visit::<$name>();)+
        }
    };
}

pub(super) use {form, key_field, operations};
