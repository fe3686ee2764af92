//! Where something stands in a file: line and column of a path.

pub(super) use campanile_schema::shape::{Step, shown};

/// Where a value and its parts stand: line and column from 1; (0, 0) = that is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spot {
    at: (u64, u64),
    fields: Vec<(String, Spot)>,
    items: Vec<Spot>,
}

const UNKNOWN: (u64, u64) = (0, 0);

impl Spot {
    /// The same, at this place when its own is not known.
    pub fn or_at(mut self, at: (u64, u64)) -> Self {
        if self.at == UNKNOWN {
            self.at = at;
        }
        self
    }

    /// The same, beginning there if that is known.
    pub fn begins(mut self, at: Option<(u64, u64)>) -> Self {
        self.at = at.unwrap_or(self.at);
        self
    }

    /// The next item. A collection begins where its first part does.
    pub fn item(&mut self, item: Self) {
        if self.at == UNKNOWN {
            self.at = item.at;
        }
        self.items.push(item);
    }

    /// A field stands where its name does.
    pub fn field(&mut self, name: &str, at: (u64, u64), value: Self) {
        if self.at == UNKNOWN {
            self.at = at;
        }
        self.fields.push((name.to_owned(), Self { at, ..value }));
    }

    fn step(&self, step: &Step) -> Option<&Self> {
        match step {
            Step::Field(name) => self.fields.iter().find(|(known, _)| known == name).map(|(_, spot)| spot),
            Step::Item(index) => self.items.get(*index),
        }
    }
}

/// Line and column, from 1, of a path's last field or item in a document; of the nearest one around it when it is not there.
pub(super) fn locate(document: &Spot, path: &[Step]) -> (u64, u64) {
    let mut nearest = (1, 1);
    let mut spot = Some(document);
    let mut steps = path.iter();
    while let Some(here) = spot {
        if here.at != UNKNOWN {
            nearest = here.at;
        }
        spot = steps.next().and_then(|step| here.step(step));
    }
    nearest
}

#[cfg(test)]
mod tests {
    use super::{super::document::documents, *};

    fn located(text: &str, document: usize, path: &[Step]) -> (u64, u64) {
        locate(&documents(text, &|| true).0[document].spot, path)
    }

    #[test]
    fn places_of_fields_and_items() {
        let text = "a: 1\n---\nspec:\n  command: [x,\n    yy, z]\n  env:\n    - name: k\n      value: 7\nlast: ~\n";
        let field = |name: &str| Step::Field(name.to_owned());
        let command = [field("spec"), field("command"), Step::Item(1)];
        let value = [field("spec"), field("env"), Step::Item(0), field("value")];
        for (document, path, expected) in [
            (0, &[field("a")][..], (1, 1)),
            (1, &[], (3, 1)),
            (1, &[field("spec")], (3, 1)),
            (1, &command, (5, 5)),
            (1, &value, (8, 7)),
            (1, &[field("last")], (9, 1)),
            // What is missing stands where it would belong.
            (1, &[field("spec"), field("schedule")], (3, 1)),
            (1, &[field("nowhere")], (3, 1)),
        ] {
            assert_eq!(located(text, document, path), expected, "{document} {}", shown(path));
        }
        assert_eq!(shown(&value), "spec.env[0].value");
        assert_eq!(located("{\"a\":\n {\"b\": 1}}", 0, &[field("a"), field("b")]), (2, 3));
        assert_eq!(located("a: []\nb: [[], 1]\n", 0, &[field("b"), Step::Item(0)]), (2, 1));
    }
}
