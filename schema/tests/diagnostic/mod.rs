//! MessagePack in words, for people who read golden files: JSON, with `h'..'` for binaries that are not text and `b".."` for
//! those that are.

/// One value.
pub fn of(bytes: &[u8]) -> String {
    let mut reader = Reader { bytes, pos: 0 };
    let mut out = String::new();
    reader.value(&mut out);
    assert_eq!(reader.pos, bytes.len(), "bytes after the value");
    out
}

struct Reader<'a> {
    bytes: &'a [u8],
    pos: usize,
}

impl Reader<'_> {
    fn take(&mut self, count: usize) -> &[u8] {
        self.pos += count;
        &self.bytes[self.pos - count..self.pos]
    }

    fn number(&mut self, width: usize) -> u64 {
        self.take(width).iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
    }

    fn value(&mut self, out: &mut String) {
        let marker = self.number(1) as u8;
        match marker {
            0x00..=0x7f => out.push_str(&marker.to_string()),
            0xe0..=0xff => out.push_str(&(marker as i8).to_string()),
            0xc0 => out.push_str("nil"),
            0xc2 => out.push_str("false"),
            0xc3 => out.push_str("true"),
            0xcc..=0xcf => {
                let n = self.number(1 << (marker - 0xcc));
                out.push_str(&n.to_string());
            }
            0xd0..=0xd3 => {
                let width = 1 << (marker - 0xd0);
                let shift = 64 - 8 * width;
                let n = (self.number(width) << shift) as i64 >> shift;
                out.push_str(&n.to_string());
            }
            0xca => {
                let n = f32::from_bits(self.number(4) as u32);
                out.push_str(&format!("{n:?}"));
            }
            0xcb => {
                let n = f64::from_bits(self.number(8));
                out.push_str(&format!("{n:?}"));
            }
            0xa0..=0xbf => self.text(usize::from(marker & 0x1f), "", out),
            0xd9..=0xdb => {
                let bytes = self.number(1 << (marker - 0xd9)) as usize;
                self.text(bytes, "", out);
            }
            0xc4..=0xc6 => {
                let bytes = self.number(1 << (marker - 0xc4)) as usize;
                self.text(bytes, "b", out);
            }
            0x90..=0x9f => self.list(u64::from(marker & 0x0f), out),
            0xdc | 0xdd => {
                let items = self.number(2 << (marker - 0xdc));
                self.list(items, out);
            }
            0x80..=0x8f => self.map(u64::from(marker & 0x0f), out),
            0xde | 0xdf => {
                let entries = self.number(2 << (marker - 0xde));
                self.map(entries, out);
            }
            other => panic!("marker {other:02x} is not used by this protocol"),
        }
    }

    fn text(&mut self, count: usize, prefix: &str, out: &mut String) {
        let bytes = self.take(count);
        match std::str::from_utf8(bytes) {
            Ok(text) => out.push_str(&format!("{prefix}{text:?}")),
            Err(_) => {
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                out.push_str(&format!("h'{hex}'"));
            }
        }
    }

    fn list(&mut self, items: u64, out: &mut String) {
        out.push('[');
        for n in 0..items {
            out.push_str(if n > 0 { ", " } else { "" });
            self.value(out);
        }
        out.push(']');
    }

    fn map(&mut self, entries: u64, out: &mut String) {
        out.push('{');
        for n in 0..entries {
            out.push_str(if n > 0 { ", " } else { "" });
            self.value(out);
            out.push_str(": ");
            self.value(out);
        }
        out.push('}');
    }
}
