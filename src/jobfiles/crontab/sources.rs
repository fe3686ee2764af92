//! Which files are read, and whether their lines have a user column.

use super::{Format, Import, ImportError, Refused, file_name};
use campanile_schema::limits::CRONTAB_FILE_BYTES;
use std::{
    io::Read,
    path::{Path, PathBuf},
};

/// A crontab to read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Source {
    pub path: PathBuf,
    pub kind: SourceKind,
    /// Named by the caller, not found in a directory.
    pub explicit: bool,
}

/// What the place of a file tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SourceKind {
    System,
    /// A user's crontab; the spool names the owner.
    User {
        owner: Option<String>,
    },
    /// Somewhere else: its lines decide.
    Unknown,
}

/// Directories whose scripts are started by lines of `/etc/crontab`.
const RUN_PARTS: [&str; 5] = ["cron.hourly", "cron.daily", "cron.weekly", "cron.monthly", "cron.yearly"];

/// Absolute and without links, so that the label is the same from wherever the import is called.
pub(super) fn shown(path: &Path) -> String {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned()
}

/// Adds the files that `path` stands for.
pub(super) fn gather(
    path: &Path,
    format: Format,
    files: &mut Vec<Source>,
    import: &mut Import,
) -> Result<(), ImportError> {
    let data =
        std::fs::metadata(path).map_err(|error| ImportError::Unreadable { path: path.display().to_string(), error })?;
    if data.is_file() && file_name(path) == "anacrontab" {
        import.refused.push(Refused {
            file: shown(path),
            line: 0,
            text: String::new(),
            reason: "anacron's lines have a period in days and no time of day".into(),
            advice: "create a job for each line, with a time and misfirePolicy FIRE_ONCE_NOW".into(),
        });
        return Ok(());
    }
    if data.is_file() {
        files.push(Source { path: path.to_owned(), kind: kind(path, format), explicit: true });
        return Ok(());
    }
    if !data.is_dir() {
        return Err(ImportError::NotAFile { path: path.display().to_string() });
    }
    let shown = shown(path);
    if RUN_PARTS.contains(&file_name(Path::new(&shown)).as_str()) {
        import.refused.push(Refused {
            file: shown,
            line: 0,
            text: String::new(),
            reason: "its scripts have no schedule of their own: a line of /etc/crontab starts them all by run-parts"
                .into(),
            advice: "import /etc/crontab; or create a job for each script".into(),
        });
        return Ok(());
    }
    // A directory like /etc: what cron reads in it.
    let (table, tables) = (path.join("crontab"), path.join("cron.d"));
    if tables.is_dir() || table.is_file() {
        if table.is_file() {
            files.push(Source { kind: kind(&table, format), path: table, explicit: false });
        }
        if tables.is_dir() {
            directory(&tables, format, files, import)?;
        }
        return Ok(());
    }
    directory(path, format, files, import)
}

fn directory(path: &Path, format: Format, files: &mut Vec<Source>, import: &mut Import) -> Result<(), ImportError> {
    let unreadable = |error| ImportError::Unreadable { path: path.display().to_string(), error };
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        entries.push(entry.map_err(unreadable)?.path());
    }
    entries.sort();
    import.covered.insert(shown(path));
    for entry in entries.into_iter().filter(|e| e.is_file()) {
        let name = file_name(&entry);
        let kind = kind(&entry, format);
        if name.starts_with('.') {
            // Hidden files (.placeholder) are nobody's crontab.
            continue;
        }
        if !cron_reads(&name) {
            let why = "cron reads only names of letters, digits, - and _ in such a directory";
            import.notes.push(format!("{}: skipped: {why}", entry.display()));
            continue;
        }
        files.push(Source { path: entry, kind, explicit: false });
    }
    Ok(())
}

/// The names that cron takes in `/etc/cron.d`: no dots, so that backups and packaging leftovers stay out.
fn cron_reads(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

fn kind(path: &Path, format: Format) -> SourceKind {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let parent = path.parent().unwrap_or(Path::new("/"));
    let directory = file_name(parent);
    let above = parent.parent().map(file_name).unwrap_or_default();
    let in_spool = (directory == "crontabs" || directory == "tabs") || (directory == "cron" && above == "spool");
    let owner = in_spool.then(|| file_name(&path));
    match format {
        Format::System => SourceKind::System,
        Format::User => SourceKind::User { owner },
        Format::Auto if in_spool => SourceKind::User { owner },
        Format::Auto if directory == "cron.d" || (directory == "etc" && file_name(&path) == "crontab") => {
            SourceKind::System
        }
        Format::Auto => SourceKind::Unknown,
    }
}

/// The bytes of a file, unless there are too many.
pub(super) fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(CRONTAB_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > CRONTAB_FILE_BYTES {
        return Err(std::io::Error::other(format!("it is larger than {CRONTAB_FILE_BYTES} bytes: no crontab")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_file_tells_its_format() {
        let owner = |name: &str| SourceKind::User { owner: Some(name.to_owned()) };
        for (path, format, expected) in [
            ("/etc/crontab", Format::Auto, SourceKind::System),
            ("/x/etc/crontab", Format::Auto, SourceKind::System),
            ("/x/etc/cron.d/php", Format::Auto, SourceKind::System),
            ("/x/var/spool/cron/crontabs/ada", Format::Auto, owner("ada")),
            ("/x/var/spool/cron/ada", Format::Auto, owner("ada")),
            ("/x/var/spool/cron/tabs/ada", Format::Auto, owner("ada")),
            ("/home/ada/my.cron", Format::Auto, SourceKind::Unknown),
            ("/home/ada/my.cron", Format::System, SourceKind::System),
            ("/x/etc/cron.d/php", Format::User, SourceKind::User { owner: None }),
        ] {
            assert_eq!(kind(Path::new(path), format), expected, "{path}");
        }
    }

    #[test]
    fn names_that_cron_reads() {
        for (name, read) in
            [("php", true), ("e2scrub_all", true), ("0-x", true), ("php.dpkg-old", false), ("x~", false)]
        {
            assert_eq!(cron_reads(name), read, "{name}");
        }
    }
}
