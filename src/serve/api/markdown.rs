//! The little Markdown of our own documents as HTML: headings, paragraphs, lists, bold, code, links. What it does not know stays text.

use std::fmt::Write;

/// Appends a document. A heading's id is its text.
pub(super) fn to_html(text: &str, out: &mut String) {
    let (mut paragraph, mut listed) = (String::new(), false);
    for line in text.lines().chain([""]) {
        let heading = line.split_once(' ').filter(|(marks, _)| !marks.is_empty() && marks.bytes().all(|b| b == b'#'));
        let item = line.strip_prefix("* ");
        if line.is_empty() || heading.is_some() || item.is_some() {
            end(&mut paragraph, listed, out);
        }
        match (heading, item) {
            (Some((marks, title)), _) => {
                let level = marks.len().min(6);
                let title = escaped(title);
                let _ = writeln!(out, "<h{level} id=\"{title}\">{title}</h{level}>");
            }
            (None, Some(item)) => (paragraph, listed) = (item.to_owned(), true),
            (None, None) => {
                listed &= !line.is_empty();
                if !paragraph.is_empty() {
                    paragraph.push(' ');
                }
                paragraph.push_str(line.trim());
            }
        }
    }
}

fn end(paragraph: &mut String, listed: bool, out: &mut String) {
    let tag = if listed { "li" } else { "p" };
    if !paragraph.is_empty() {
        let _ = writeln!(out, "<{tag}>{}</{tag}>", inline(paragraph));
        paragraph.clear();
    }
}

/// Code first: nothing inside of it means anything else.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for (n, part) in text.split('`').enumerate() {
        if n % 2 == 1 {
            let _ = write!(out, "<code>{}</code>", escaped(part));
            continue;
        }
        for (n, part) in escaped(part).split("**").enumerate() {
            let (open, close) = if n % 2 == 1 { ("<b>", "</b>") } else { ("", "") };
            let _ = write!(out, "{open}{}{close}", unlinked(part));
        }
    }
    out
}

/// `[text](file)`: the node serves no other documents, so the text is what is left.
fn unlinked(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, name, after)) = rest.split_once('[').and_then(|(before, link)| {
        let (name, target) = link.split_once("](")?;
        Some((before, name, target.split_once(')')?.1))
    }) {
        out.push_str(before);
        out.push_str(name);
        rest = after;
    }
    out + rest
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_documents_are_read() {
        let mut out = String::new();
        to_html("# A & B\n\none\n**two** `<x> **y**`\n* see [c](c.md), d\n* e\n\nend", &mut out);
        assert_eq!(
            out,
            "<h1 id=\"A &amp; B\">A &amp; B</h1>\n<p>one <b>two</b> <code>&lt;x&gt; **y**</code></p>\n\
             <li>see c, d</li>\n<li>e</li>\n<p>end</p>\n"
        );
    }
}
