//! The `%` rule of cron: the first bare `%` ends the command and begins its standard input, further ones are newlines,
//! `\%` is a `%`.

/// The command for the shell and, when there is a bare `%`, its standard input.
pub(super) fn split(written: &str) -> (String, Option<String>) {
    let mut command = String::with_capacity(written.len());
    let mut input: Option<String> = None;
    let mut escaped = false;
    for c in written.chars() {
        let at = input.as_mut().unwrap_or(&mut command);
        match c {
            '%' if escaped => {
                // The backslash before it was taken literally at first.
                at.pop();
                at.push('%');
                escaped = false;
            }
            '%' => match &mut input {
                Some(input) => input.push('\n'),
                None => input = Some(String::new()),
            },
            c => {
                at.push(c);
                escaped = c == '\\' && !escaped;
            }
        }
    }
    // cron ends the input with a newline.
    if let Some(input) = input.as_mut().filter(|i| !i.is_empty() && !i.ends_with('\n')) {
        input.push('\n');
    }
    (command, input)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn the_table() {
        for (written, command, input) in [
            ("echo hi", "echo hi", None),
            ("date +\\%F", "date +%F", None),
            ("mail joe%Joe,%%Where?%", "mail joe", Some("Joe,\n\nWhere?\n")),
            ("cat%a", "cat", Some("a\n")),
            ("cat%", "cat", Some("")),
            ("cat%50\\%", "cat", Some("50%\n")),
            // The first backslash escapes the second: the percent sign is bare.
            ("printf \\\\%x", "printf \\\\", Some("x\n")),
            ("a\\b", "a\\b", None),
            ("é\\%é", "é%é", None),
            ("%only", "", Some("only\n")),
        ] {
            assert_eq!(split(written), (command.to_owned(), input.map(str::to_owned)), "{written:?}");
        }
    }
}
