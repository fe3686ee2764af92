//! Debug output without secrets. Whole calls and attempts are printed when something goes wrong, and logs keep what is
//! printed. Types that hold a secret therefore leave it out of their debug output.

use std::{collections::BTreeMap, fmt};

/// Something whose content is not shown.
pub trait Secret {
    /// What may be shown of it.
    fn redacted(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

impl Secret for String {
    fn redacted(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "\"\"" } else { "***" })
    }
}

impl Secret for BTreeMap<String, String> {
    /// The names, without values.
    fn redacted(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.keys()).finish()
    }
}

impl<T: Secret> Secret for Option<T> {
    fn redacted(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Some(secret) => secret.redacted(f),
            None => f.write_str("None"),
        }
    }
}

/// Shows what may be shown.
pub struct Redacted<'a, T>(pub &'a T);

impl<T: Secret> fmt::Debug for Redacted<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.redacted(f)
    }
}

/// `Debug` as it would be derived, with these fields redacted. It names every field, so that a new one stops the compiler.
#[macro_export]
macro_rules! redacted_debug {
    ($name:ident { $($field:ident),* $(,)? } hides { $($secret:ident),+ $(,)? }) => {
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let Self { $($field,)* $($secret,)+ } = self;
                f.debug_struct(stringify!($name))
                    $(.field(stringify!($field), $field))*
                    $(.field(stringify!($secret), &$crate::redact::Redacted($secret)))+
                    .finish()
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::{
        job::{JobSpec, Trigger},
        rpc::hello::{ConnectionRole, Hello},
    };

    #[test]
    fn secrets_and_tokens_are_not_in_debug_output() {
        let mut spec = JobSpec::new("fin", "report", Trigger::Manual {});
        spec.secret_params.insert("api-key".to_owned(), "hunter2".to_owned());
        let token = "cmp_hunter2".to_owned();
        let hello = Hello { protocol: 1, token, role: ConnectionRole::Caller, client: "test".to_owned() };
        let shown = format!("{spec:?} {spec:#?} {hello:?} {:?}", Some(&spec));
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("api-key"), "{shown}");
        assert!(shown.contains("report"), "{shown}");
        assert!(shown.contains("token: ***"), "{shown}");
    }
}
