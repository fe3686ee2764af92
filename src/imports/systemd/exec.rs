//! `ExecStart=` as the words of a command, by systemd's rules of quoting, and `Environment=` as variables.

use std::collections::BTreeMap;

/// A command of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exec {
    pub words: Vec<String>,
    /// Its exit code does not matter (`-` in front).
    pub ignores_failure: bool,
}

/// What names stand for.
pub struct Names<'a> {
    pub env: &'a BTreeMap<String, String>,
    /// The service, `backup@db.service`.
    pub unit: &'a str,
}

/// The commands of one setting: `;` alone stands between two.
pub fn commands(text: &str, names: &Names<'_>) -> Result<Vec<Exec>, String> {
    let mut found = Vec::new();
    for command in split(&words(text)?) {
        found.push(one(command, names)?);
    }
    if found.is_empty() { Err("has no command".to_owned()) } else { Ok(found) }
}

fn split(words: &[Word]) -> impl Iterator<Item = &[Word]> {
    words.split(|word| word.text == ";" && !word.is_quoted).filter(|command| !command.is_empty())
}

fn one(words: &[Word], names: &Names<'_>) -> Result<Exec, String> {
    let [program, arguments @ ..] = words else { return Err("has no command".to_owned()) };
    let (mut path, mut ignores_failure, mut expands) = (program.text.as_str(), false, true);
    while let Some(sign) = path.chars().next().filter(|c| "-@:+!|".contains(*c)) {
        match sign {
            '-' => ignores_failure = true,
            ':' => expands = false,
            '@' => return Err("'@' in front of the command gives it another name, which has no counterpart".to_owned()),
            other => {
                return Err(format!(
                    "'{other}' in front of the command changes its privileges, which has no counterpart"
                ));
            }
        }
        path = &path[1..];
    }
    let mut command = vec![specified(path, names.unit)?];
    for argument in arguments {
        let text = specified(&argument.text, names.unit)?;
        if expands {
            command.extend(expanded(&text, names.env)?);
        } else {
            command.push(text);
        }
    }
    if command[0].is_empty() {
        return Err("has no command".to_owned());
    }
    Ok(Exec { words: command, ignores_failure })
}

/// `%n`, `%p`, `%i` and `%%`; the others stand for what only systemd knows.
pub fn specified(text: &str, unit: &str) -> Result<String, String> {
    let base = unit.rsplit_once('.').map_or(unit, |(base, _)| base);
    let (prefix, instance) = base.split_once('@').unwrap_or((base, ""));
    let mut found = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            found.push(letter);
            continue;
        }
        match letters.next() {
            Some('%') => found.push('%'),
            Some('n') => found.push_str(unit),
            Some('N') => found.push_str(base),
            Some('p') => found.push_str(prefix),
            Some('i') if !instance.contains('\\') => found.push_str(instance),
            Some(other) => {
                return Err(format!("%{} stands for something that only systemd knows", other.escape_debug()));
            }
            None => found.push('%'),
        }
    }
    Ok(found)
}

/// `$NAME` as a word of its own becomes words, `${NAME}` becomes text, `$$` is a dollar sign. Quotes make no difference to systemd.
fn expanded(text: &str, env: &BTreeMap<String, String>) -> Result<Vec<String>, String> {
    let known = |name: &str| {
        env.get(name)
            .cloned()
            .ok_or_else(|| format!("${name} is not set by Environment=, and its value is not known here"))
    };
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if let Some(name) = text.strip_prefix('$').filter(|name| is_name(name)) {
        return Ok(known(name)?.split_whitespace().map(str::to_owned).collect());
    }
    let (mut found, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('$') {
        found.push_str(before);
        rest = match after.strip_prefix('$') {
            Some(after) => {
                found.push('$');
                after
            }
            None => match after.strip_prefix('{').and_then(|after| after.split_once('}')) {
                Some((name, after)) if is_name(name) => {
                    found.push_str(&known(name)?);
                    after
                }
                Some(_) | None => {
                    found.push('$');
                    after
                }
            },
        };
    }
    found.push_str(rest);
    Ok(vec![found])
}

/// `A=b "C=d e"`.
pub fn variables(text: &str, unit: &str) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    for word in words(text)? {
        let text = specified(&word.text, unit)?;
        let (name, value) =
            text.split_once('=').ok_or_else(|| format!("'{}' is not NAME=VALUE", text.escape_debug()))?;
        found.push((name.to_owned(), value.to_owned()));
    }
    Ok(found)
}

/// Several commands, or one whose failure does not matter, as a line for a shell.
pub fn shell(commands: &[Exec]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-=:,@%+".contains(c);
    let quoted = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    let line = |command: &Exec| {
        let words = command.words.iter().map(quoted).collect::<Vec<_>>().join(" ");
        if command.ignores_failure { format!("{{ {words} || true; }}") } else { words }
    };
    commands.iter().map(line).collect::<Vec<_>>().join(" && ")
}

struct Word {
    text: String,
    is_quoted: bool,
}

fn words(text: &str) -> Result<Vec<Word>, String> {
    let mut found = Vec::new();
    let (mut word, mut is_quoted, mut is_open) = (String::new(), false, false);
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None, c) if c.is_whitespace() => {
                if is_open {
                    found.push(Word { text: std::mem::take(&mut word), is_quoted });
                }
                (is_open, is_quoted) = (false, false);
                continue;
            }
            (None, '\'' | '"') => (quote, is_quoted) = (Some(letter), true),
            (Some(open), c) if c == open => quote = None,
            (_, '\\') => word.push(escaped(&mut letters)?),
            (_, c) => word.push(c),
        }
        is_open = true;
    }
    if quote.is_some() {
        return Err("a quotation mark has no end".to_owned());
    }
    if is_open {
        found.push(Word { text: word, is_quoted });
    }
    Ok(found)
}

fn escaped(letters: &mut std::str::Chars<'_>) -> Result<char, String> {
    match letters.next() {
        Some('n') => Ok('\n'),
        Some('t') => Ok('\t'),
        Some('r') => Ok('\r'),
        Some('s') => Ok(' '),
        Some(mark @ ('\\' | '"' | '\'' | ';')) => Ok(mark),
        Some('x') => {
            let digits: String = letters.by_ref().take(2).collect();
            let code = u8::from_str_radix(&digits, 16).ok().filter(u8::is_ascii);
            code.map(char::from).ok_or_else(|| format!("'\\x{}' is not a character", digits.escape_debug()))
        }
        Some(other) => Err(format!("'\\{}' is not a known escape", other.escape_debug())),
        None => Err("it ends in a backslash".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(text: &str) -> Result<Vec<Exec>, String> {
        let env = BTreeMap::from([("DIR".to_owned(), "/srv".to_owned()), ("OPTS".to_owned(), "-a -b".to_owned())]);
        commands(text, &Names { env: &env, unit: "backup@db.service" })
    }
    fn words_of(text: &str) -> Vec<String> {
        read(text).unwrap().remove(0).words
    }

    #[test]
    fn words_variables_and_specifiers() {
        assert_eq!(words_of(r#"/bin/a 'b c' "d\"e" f\x20g h'i'"#), ["/bin/a", "b c", "d\"e", "f g", "hi"]);
        assert_eq!(
            words_of("/bin/a ${DIR}/x $OPTS 'x $OPTS' $$HOME 100%%"),
            ["/bin/a", "/srv/x", "-a", "-b", "x $OPTS", "$HOME", "100%"]
        );
        assert_eq!(words_of("/bin/a %i %p %n"), ["/bin/a", "db", "backup", "backup@db.service"]);
        assert_eq!(words_of(":/bin/a $NOT"), ["/bin/a", "$NOT"]);
        let two = read("-/bin/a x ; /bin/b 'y z'").unwrap();
        assert_eq!(shell(&two), "{ /bin/a x || true; } && /bin/b 'y z'");
        let env = variables(r#"A=b "C=d e" F="#, "x.service").unwrap();
        assert_eq!(env.len(), 3);
        assert_eq!(env[1], ("C".to_owned(), "d e".to_owned()));
    }

    #[test]
    fn what_has_no_counterpart_is_refused_by_name() {
        for (text, told) in [
            ("+/bin/a", "privileges"),
            ("@/bin/a b", "another name"),
            ("/bin/a $HOME", "$HOME is not set"),
            ("/bin/a ${X}", "$X is not set"),
            ("/bin/a %h", "%h stands for"),
            ("/bin/a 'b", "no end"),
            ("", "has no command"),
            (r"/bin/a \q", "not a known escape"),
        ] {
            let why = read(text).unwrap_err();
            assert!(why.contains(told), "{text}: {why}");
        }
        assert!(variables("A", "x.service").is_err());
    }
}
