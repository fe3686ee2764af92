//! How deeply the flow collections (`[...]`, `{...}`) of a YAML text can be nested, found before the text is parsed.
//!
//! The YAML library looks at every open collection for each token, so a text of nested brackets costs the square of its length:
//! three texts of 300 KB kept two processors busy for 40 s. This scan is linear and refuses such a text first.
//!
//! It never counts too little: wherever a collection may begin, it counts from there, also when the text is only a comment or a
//! block scalar. It goes on only as long as the library would: what is a syntax error in a flow collection ends the count. So
//! ordinary text is not refused for its brackets, and no quote or comment can hide nesting.

/// Line and column (from 1) of the bracket that opens one level more than `most`; None when no collection is nested so deeply.
pub(super) fn too_deep(text: &str, most: u32) -> Option<(u64, u64)> {
    let mut scan = Scan { levels: [0; MODES] };
    let (mut line, mut column) = (1, 1);
    let mut before = ' ';
    for c in text.chars() {
        scan.step(c, before);
        if scan.levels.iter().any(|level| *level > most) {
            return Some((line, column));
        }
        (line, column) = if c == '\n' { (line + 1, 1) } else { (line, column + 1) };
        before = c;
    }
    None
}

/// What the scanner can be in the middle of, inside of a flow collection.
#[derive(Clone, Copy)]
enum Mode {
    /// A value may begin here.
    Token,
    /// Behind the mark `?` of a key. When a `]` follows, the library passes over it and goes on inside of the sequence.
    Key,
    /// A value has ended: only `,`, `:` or a closing bracket may follow.
    After,
    Plain,
    /// A tag or an anchor in front of a value.
    Property,
    Single,
    /// After a single quote inside of single quotes: a second one continues the string.
    SingleQuote,
    Double,
    DoubleEscape,
    /// A comment where a value may begin.
    CommentBefore,
    /// A comment behind the mark of a key.
    CommentKey,
    /// A comment behind a value.
    CommentAfter,
}

const MODES: usize = 12;

/// For each mode the deepest level that any reading of the text has reached in it; 0 = no reading is in it.
struct Scan {
    levels: [u32; MODES],
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_space(c: char) -> bool {
    is_break(c) || matches!(c, ' ' | '\t' | '\u{feff}')
}

impl Scan {
    fn step(&mut self, c: char, before: char) {
        let levels = std::mem::replace(&mut self.levels, [0; MODES]);
        // Outside of all collections: one may begin wherever a value may.
        if matches!(c, '[' | '{') && is_space(before) {
            self.reach(Mode::Token, 1);
        }
        for (mode, level) in MODES_IN_ORDER.into_iter().zip(levels) {
            if level > 0 {
                self.follow(mode, level, c, before);
            }
        }
    }

    fn reach(&mut self, mode: Mode, level: u32) {
        let known = &mut self.levels[mode as usize];
        *known = (*known).max(level);
    }

    fn follow(&mut self, mode: Mode, level: u32, c: char, before: char) {
        match mode {
            Mode::Token => self.token(level, c),
            Mode::Key => self.key(level, c),
            Mode::After => self.after(level, c),
            Mode::Plain => match c {
                ',' => self.reach(Mode::Token, level),
                ']' | '}' => self.close(level),
                // A syntax error: the library reads no further.
                '[' | '{' => {}
                '#' if is_space(before) => self.reach(Mode::CommentAfter, level),
                // The end of a key, or a part of the word.
                ':' => {
                    self.reach(Mode::Token, level);
                    self.reach(Mode::Plain, level);
                }
                '?' => {
                    self.reach(Mode::Key, level);
                    self.reach(Mode::Plain, level);
                }
                _ => self.reach(Mode::Plain, level),
            },
            Mode::Property => match c {
                '[' | '{' => self.reach(Mode::Property, level + 1),
                ',' => {
                    self.reach(Mode::Token, level);
                    self.reach(Mode::Property, level);
                }
                c if is_space(c) => self.reach(Mode::Token, level),
                _ => self.reach(Mode::Property, level),
            },
            Mode::Single if c == '\'' => self.reach(Mode::SingleQuote, level),
            Mode::Single => self.reach(Mode::Single, level),
            Mode::SingleQuote if c == '\'' => self.reach(Mode::Single, level),
            Mode::SingleQuote => self.after(level, c),
            Mode::Double => match c {
                '"' => self.reach(Mode::After, level),
                '\\' => self.reach(Mode::DoubleEscape, level),
                _ => self.reach(Mode::Double, level),
            },
            Mode::DoubleEscape => self.reach(Mode::Double, level),
            Mode::CommentBefore if is_break(c) => self.reach(Mode::Token, level),
            Mode::CommentBefore => self.reach(Mode::CommentBefore, level),
            Mode::CommentKey if is_break(c) => self.reach(Mode::Key, level),
            Mode::CommentKey => self.reach(Mode::CommentKey, level),
            Mode::CommentAfter if is_break(c) => self.reach(Mode::After, level),
            Mode::CommentAfter => self.reach(Mode::CommentAfter, level),
        }
    }

    fn key(&mut self, level: u32, c: char) {
        match c {
            ']' => {
                self.reach(Mode::After, level);
                self.close(level);
            }
            '#' => self.reach(Mode::CommentKey, level),
            c if is_space(c) => self.reach(Mode::Key, level),
            c => self.token(level, c),
        }
    }

    fn token(&mut self, level: u32, c: char) {
        match c {
            '[' | '{' => self.reach(Mode::Token, level + 1),
            ']' | '}' => self.close(level),
            '"' => self.reach(Mode::Double, level),
            '\'' => self.reach(Mode::Single, level),
            '#' => self.reach(Mode::CommentBefore, level),
            '&' | '!' => self.reach(Mode::Property, level),
            ',' | ':' => self.reach(Mode::Token, level),
            // The mark of a key or of an item, or a word that begins with it.
            '?' => {
                self.reach(Mode::Key, level);
                self.reach(Mode::Plain, level);
            }
            '-' => {
                self.reach(Mode::Token, level);
                self.reach(Mode::Plain, level);
            }
            c if is_space(c) => self.reach(Mode::Token, level),
            _ => self.reach(Mode::Plain, level),
        }
    }

    fn after(&mut self, level: u32, c: char) {
        match c {
            ',' | ':' => self.reach(Mode::Token, level),
            ']' | '}' => self.close(level),
            '#' => self.reach(Mode::CommentAfter, level),
            c if is_space(c) => self.reach(Mode::After, level),
            // A syntax error: the library reads no further.
            _ => {}
        }
    }

    fn close(&mut self, level: u32) {
        if level > 1 {
            self.reach(Mode::After, level - 1);
        }
    }
}

/// As their numbers.
const MODES_IN_ORDER: [Mode; MODES] = [
    Mode::Token,
    Mode::Key,
    Mode::After,
    Mode::Plain,
    Mode::Property,
    Mode::Single,
    Mode::SingleQuote,
    Mode::Double,
    Mode::DoubleEscape,
    Mode::CommentBefore,
    Mode::CommentKey,
    Mode::CommentAfter,
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nesting_cannot_be_hidden() {
        for unit in [
            "[",
            "{a: [",
            "[\"]\", ",
            "['it''s ]', ",
            "[\"\\\"]\",",
            "[# ]\n",
            "[a, ",
            "[!<]> ",
            "[&a ",
            "[? ",
            "[a:",
            "[?]: ",
            "[a, ?  ]: ",
            "[? #]\n]: ",
            "[]: [",
            "{\"a\":[",
            "{'a' : {",
            "[a #]\n, [",
        ] {
            let text = unit.repeat(70);
            assert!(too_deep(&text, 64).is_some(), "{unit}");
        }
        // In front: what could hide what follows.
        for head in ["a: \"", "# \"\n", "a: it's [ \"\nb: ", "a: |\n  \"[\n", "a: > \n  '\nb: ", "%YAML 1.1\n--- "] {
            let text = format!("{head} {}", "[".repeat(100));
            assert!(too_deep(&text, 64).is_some(), "{head}");
        }
        assert_eq!(too_deep("a:\n  [[[]]]", 2), Some((2, 5)));
        assert_eq!(too_deep("a:\n  [[[]]]", 3), None);
    }

    #[test]
    fn ordinary_text_is_not_nested() {
        let script = "      if [ \"$x\" = \"{\" ]; then echo \"it's [\" # {\n      case $y in [a-z]*) awk '{ print $1 }';; esac; }\n";
        let text = format!("spec:\n  command:\n    - sh\n    - -c\n    - |\n{}", script.repeat(500));
        assert_eq!(too_deep(&text, 64), None);
        let many = format!("[{}]", "{\"a\": [1, \"[\", '{', [{b: c}]]},\n".repeat(2_000));
        assert_eq!(too_deep(&many, 5), None);
        assert!(too_deep(&many, 4).is_some());
        let prose = "# note [see below {and above: it isn't closed\n".repeat(1_000);
        assert_eq!(too_deep(&prose, 64), None);
    }

    /// Deepest nesting of collections that the library finds before its first error.
    fn depth(text: &str) -> u32 {
        use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
        use std::cell::Cell;
        /// The level, whether a sequence is around it, and the deepest level so far.
        struct Deep<'a>(u32, bool, &'a Cell<u32>);
        impl<'de> DeserializeSeed<'de> for Deep<'_> {
            type Value = ();
            fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
                from.deserialize_any(self)
            }
        }
        impl<'de> Visitor<'de> for Deep<'_> {
            type Value = ();
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("anything")
            }
            fn visit_bool<E>(self, _: bool) -> Result<(), E> {
                Ok(())
            }
            fn visit_i64<E>(self, _: i64) -> Result<(), E> {
                Ok(())
            }
            fn visit_u64<E>(self, _: u64) -> Result<(), E> {
                Ok(())
            }
            fn visit_f64<E>(self, _: f64) -> Result<(), E> {
                Ok(())
            }
            fn visit_str<E>(self, _: &str) -> Result<(), E> {
                Ok(())
            }
            fn visit_unit<E>(self) -> Result<(), E> {
                Ok(())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
                self.2.set(self.2.get().max(self.0 + 1));
                while items.next_element_seed(Deep(self.0 + 1, true, self.2))?.is_some() {}
                Ok(())
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
                // `[a: b]` has a mapping without a bracket.
                let level = self.0 + u32::from(!self.1);
                self.2.set(self.2.get().max(level));
                while entries.next_key_seed(Deep(level, false, self.2))?.is_some() {
                    entries.next_value_seed(Deep(level, false, self.2))?;
                }
                Ok(())
            }
            fn visit_enum<A: serde::de::EnumAccess<'de>>(self, data: A) -> Result<(), A::Error> {
                use serde::de::VariantAccess;
                let (_, variant) = data.variant::<String>()?;
                variant.newtype_variant_seed(self)
            }
        }
        let deepest = Cell::new(0);
        for document in serde_yaml_ng::Deserializer::from_str(text) {
            if Deep(0, false, &deepest).deserialize(document).is_err() {
                break;
            }
        }
        deepest.get()
    }

    proptest! {
        #![proptest_config(ProptestConfig { max_global_rejects: 1_000_000, ..ProptestConfig::with_cases(20_000) })]
        /// On one line: flow collections as deep as the library finds them, or deeper.
        #[test]
        fn never_less_than_the_library_finds(parts in prop::collection::vec(
            prop::sample::select(vec![
                "[", "]", "{", "}", ",", ":", " ", "\"", "'", "#", "a", "\\", "?", "-", "&x", "!t", "!<]>", "*x", ": ", ", ", " #", "[[", "]]",
            ]), 0..14))
        {
            let text = format!("[{}", parts.concat());
            // An alias of what is around it is deeper each time that the library follows it; the scan is about brackets.
            prop_assume!(!(text.contains("&x") && text.contains("*x")));
            // One block mapping at most is around them, as in `[]: 1`.
            let found = depth(&text);
            if found > 1 {
                prop_assert!(too_deep(&text, found - 2).is_some(), "{found} {text:?}");
            }
        }
    }
}
