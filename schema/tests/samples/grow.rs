//! MessagePack as a newer writer of the same format would write it: each map of short names has one more field.

/// Which maps have one more field.
#[derive(Clone, Copy)]
enum Rule {
    /// Those of fixed names. Not maps of callers' keys (labels, env: longer names) and not one-entry maps, which tell an enum's
    /// variant.
    ShortNames,
    /// All but what stands under these names.
    NotUnder(&'static [&'static str]),
    /// All but what stands under these names and one-entry maps, which tell an enum's variant.
    Forms(&'static [&'static str]),
}

/// What is stored: a value's bytes with an unknown field in every map of fixed names.
#[allow(dead_code)] // Two test programs share this file, each with its own rule.
pub fn grown(bytes: &[u8]) -> Vec<u8> {
    by(bytes, Rule::ShortNames)
}

/// What is sent: with an unknown field in every map but those under these names.
#[allow(dead_code)]
pub fn grown_but(bytes: &[u8], under: &'static [&'static str]) -> Vec<u8> {
    by(bytes, Rule::NotUnder(under))
}

/// What nodes send each other: with an unknown field in every map of several fields but those under these names.
#[allow(dead_code)]
pub fn grown_forms(bytes: &[u8], under: &'static [&'static str]) -> Vec<u8> {
    by(bytes, Rule::Forms(under))
}

fn by(bytes: &[u8], rule: Rule) -> Vec<u8> {
    let (mut rest, mut out) = (bytes, Vec::new());
    value(&mut rest, &mut out, true, rule);
    assert!(rest.is_empty());
    out
}

fn take<'b>(rest: &mut &'b [u8], count: usize) -> &'b [u8] {
    let (taken, left) = rest.split_at(count);
    *rest = left;
    taken
}

fn length(rest: &mut &[u8], bytes: usize) -> usize {
    take(rest, bytes).iter().fold(0, |n, b| n << 8 | usize::from(*b))
}

fn value(rest: &mut &[u8], out: &mut Vec<u8>, top: bool, rule: Rule) {
    let start = *rest;
    let marker = take(rest, 1)[0];
    let plain = match marker {
        0x80..=0x8f => return map(rest, out, usize::from(marker & 0x0f), top, rule),
        0xde => {
            let count = length(rest, 2);
            return map(rest, out, count, top, rule);
        }
        0x90..=0x9f => return array(rest, out, usize::from(marker & 0x0f), rule),
        0xdc => {
            let count = length(rest, 2);
            return array(rest, out, count, rule);
        }
        0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => 0,
        0xcc | 0xd0 => 1,
        0xcd | 0xd1 => 2,
        0xca | 0xce | 0xd2 => 4,
        0xcb | 0xcf | 0xd3 => 8,
        0xa0..=0xbf => usize::from(marker & 0x1f),
        0xc4 | 0xd9 => length(rest, 1),
        0xc5 | 0xda => length(rest, 2),
        other => panic!("marker {other:x} is not in the samples"),
    };
    take(rest, plain);
    out.extend_from_slice(&start[..start.len() - rest.len()]);
}

fn array(rest: &mut &[u8], out: &mut Vec<u8>, count: usize, rule: Rule) {
    head(out, count, 0x90, 0xdc);
    for _ in 0..count {
        value(rest, out, false, rule);
    }
}

fn map(rest: &mut &[u8], out: &mut Vec<u8>, count: usize, top: bool, rule: Rule) {
    let (mut entries, mut short) = (Vec::new(), true);
    for _ in 0..count {
        let before = entries.len();
        value(rest, &mut entries, false, rule);
        // The key's marker and at most two letters.
        short &= entries.len() - before <= 3;
        let theirs = match rule {
            Rule::ShortNames => false,
            Rule::NotUnder(names) | Rule::Forms(names) => {
                names.iter().any(|name| entries[before + 1..] == *name.as_bytes())
            }
        };
        let start = *rest;
        let at = entries.len();
        value(rest, &mut entries, false, rule);
        if theirs {
            entries.truncate(at);
            entries.extend_from_slice(&start[..start.len() - rest.len()]);
        }
    }
    let grows = match rule {
        Rule::ShortNames => top || (short && count != 1),
        Rule::NotUnder(_) => true,
        Rule::Forms(_) => count > 1,
    };
    head(out, count + usize::from(grows), 0x80, 0xde);
    out.extend(entries);
    if grows {
        // "zzz": [200, nil].
        out.extend([0xa3, b'z', b'z', b'z', 0x92, 0xcc, 200, 0xc0]);
    }
}

/// The beginning of a list or a map, in its short form or with a length of two bytes.
fn head(out: &mut Vec<u8>, count: usize, short: u8, long: u8) {
    if count < 16 {
        out.push(short | count as u8);
    } else {
        out.push(long);
        out.extend((count as u16).to_be_bytes());
    }
}
