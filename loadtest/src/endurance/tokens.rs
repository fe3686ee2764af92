//! The node's token file, and how a credential in it is replaced while the node runs.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

/// A token file that the node's own program writes.
pub struct Tokens {
    binary: PathBuf,
    file: PathBuf,
}

impl Tokens {
    pub fn new(binary: &Path, file: PathBuf) -> Self {
        Self { binary: binary.to_owned(), file }
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Appends a line as an operator does; the token.
    pub fn add(&self, name: &str, role: &[&str]) -> io::Result<String> {
        let made = Command::new(&self.binary)
            .args(["token", "new", "--name", name, "--role"])
            .args(role)
            .arg("--append")
            .arg(&self.file)
            .output()?;
        if !made.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&made.stderr).trim().to_owned()));
        }
        Ok(String::from_utf8_lossy(&made.stdout).trim().to_owned())
    }

    /// Takes the line of this name away; the file is replaced in one moment.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        let new = self.file.with_extension("new");
        // A copy keeps the permissions.
        fs::copy(&self.file, &new)?;
        fs::write(&new, without(&fs::read_to_string(&self.file)?, name))?;
        fs::rename(&new, &self.file)
    }
}

fn without(text: &str, name: &str) -> String {
    text.lines().filter(|line| line.split_whitespace().next() != Some(name)).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_is_taken_away_and_the_others_stay() {
        let text = "# for people\nme operator sha256:1\nexecutors-1 executor pools=default sha256:2\nexecutors-10 executor sha256:3\n";
        let left = without(text, "executors-1");
        assert_eq!(left, "# for people\nme operator sha256:1\nexecutors-10 executor sha256:3\n");
        assert_eq!(without(text, "nobody"), text);
    }
}
