//! `docs/errors.md` in parts.

/// A section of one code.
pub struct Section {
    pub code: String,
    /// The line with HTTP status and exit code.
    pub numbers: String,
    /// Name and text of each part.
    pub parts: Vec<(String, String)>,
}

pub fn sections() -> Vec<Section> {
    let text = include_str!("../../../docs/errors.md");
    text.split("\n## ").skip(1).map(section).collect()
}

fn section(text: &str) -> Section {
    let mut paragraphs = text.trim().split("\n\n");
    let mut next = || paragraphs.next().unwrap_or_default().to_owned();
    let (code, numbers) = (next(), next());
    let parts = paragraphs
        .map(|paragraph| {
            let (name, text) =
                paragraph.strip_prefix("**").and_then(|p| p.split_once(".**")).unwrap_or(("?", paragraph));
            (name.to_owned(), text.trim().to_owned())
        })
        .collect();
    Section { code, numbers, parts }
}
