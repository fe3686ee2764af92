//! Rules with names, so that tests, and a node that its environment tells to, can break each one and see that its defect is found.

/// Makes an enum of rules, with `Rule::ALL`, and beside it `kept(rule)`: whether the rule is kept, which without the feature `faults` is
/// always so. With it, `break_rule` breaks one for the thread of a test, and `break_by_name` breaks one for the whole process.
macro_rules! breakable {
    ($(#[$about:meta])* pub enum $rules:ident { $($(#[$doc:meta])+ $rule:ident,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum $rules { $($(#[$doc])+ $rule,)+ }

        impl $rules {
            pub const ALL: [Self; [$(stringify!($rule)),+].len()] = [$(Self::$rule),+];
        }

        /// Whether a rule is kept: always, but where a test breaks it on purpose.
        #[cfg(not(feature = "faults"))]
        pub const fn kept(_: $rules) -> bool {
            true
        }

        #[cfg(feature = "faults")]
        pub use broken::{break_by_name, break_rule, kept};

        #[cfg(feature = "faults")]
        mod broken {
            use super::$rules;
            use std::{
                cell::Cell,
                sync::atomic::{AtomicU64, Ordering},
            };

            // Each rule has a bit.
            const _: () = assert!($rules::ALL.len() <= 64);

            thread_local! {
                static BROKEN: Cell<Option<$rules>> = const { Cell::new(None) };
            }

            /// Rules that the whole process breaks.
            static BROKEN_BY_ALL: AtomicU64 = AtomicU64::new(0);

            /// Breaks the rule of this name in the whole process. False: there is none.
            pub fn break_by_name(name: &str) -> bool {
                let Some(rule) = $rules::ALL.into_iter().find(|rule| format!("{rule:?}") == name) else { return false };
                BROKEN_BY_ALL.fetch_or(1 << rule as u32, Ordering::Relaxed);
                true
            }

            /// Breaks one rule, for this thread only: tests of different rules run side by side.
            pub fn break_rule(rule: Option<$rules>) {
                BROKEN.set(rule);
            }

            /// Whether a rule is kept: always, but where a test or a node's environment breaks it on purpose.
            pub fn kept(rule: $rules) -> bool {
                BROKEN.get() != Some(rule) && BROKEN_BY_ALL.load(Ordering::Relaxed) & (1 << rule as u32) == 0
            }
        }
    };
}

pub(crate) use breakable;
