//! The workloads that come with the program, so that it runs without the repository.

/// Names and texts, in the order in which `workloads` lists them.
pub const WORKLOADS: [(&str, &str); 13] = [
    ("steady", include_str!("../../workloads/steady.toml")),
    ("herd", include_str!("../../workloads/herd.toml")),
    ("scale", include_str!("../../workloads/scale.toml")),
    ("restart", include_str!("../../workloads/restart.toml")),
    ("ceiling", include_str!("../../workloads/ceiling.toml")),
    ("retry-storm", include_str!("../../workloads/retry-storm.toml")),
    ("noisy", include_str!("../../workloads/noisy.toml")),
    ("backfill", include_str!("../../workloads/backfill.toml")),
    ("executors", include_str!("../../workloads/executors.toml")),
    ("long", include_str!("../../workloads/long.toml")),
    ("api", include_str!("../../workloads/api.toml")),
    ("history", include_str!("../../workloads/history.toml")),
    ("soak", include_str!("../../workloads/soak.toml")),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::read::read;

    #[test]
    fn every_workload_is_sound_in_both_forms_and_named_like_its_file() {
        for (name, text) in WORKLOADS {
            let forms = read(name, text).unwrap_or_else(|wrong| panic!("{wrong}"));
            assert_eq!((forms.full.name.as_str(), forms.short.name.as_str()), (name, name));
            assert!(forms.short.length_s() <= 15, "{name}: the short form is short");
            assert!(forms.full.length_s() >= 30, "{name}: the short form is short");
            assert_ne!(forms.full.expect, crate::scenario::Expect::default(), "{name} expects something");
            assert!(forms.short.checkable, "{name}: the history checker judges the short form");
        }
    }

    #[test]
    fn every_file_of_the_folder_comes_with_the_program() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/workloads");
        let files = std::fs::read_dir(folder).map(Iterator::count);
        assert_eq!(files.ok(), Some(WORKLOADS.len()));
    }
}
