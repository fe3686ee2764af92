//! What is done to a seed: changes that keep most of it, so that what comes behind is reached too.

use bolero::TypeGenerator;

/// One change; positions and lengths are taken modulo what there is.
#[derive(Clone, Debug, TypeGenerator)]
pub enum Change {
    Set {
        at: u16,
        byte: u8,
    },
    Flip {
        at: u16,
        bit: u8,
    },
    Insert {
        at: u16,
        byte: u8,
        times: u8,
    },
    /// What is meant to hurt: largest lengths, ends of numbers, odd characters.
    Nasty {
        at: u16,
        which: u8,
    },
    Remove {
        at: u16,
        bytes: u16,
    },
    Repeat {
        at: u16,
        bytes: u16,
        times: u8,
    },
    /// A part of another seed.
    Graft {
        at: u16,
        other: u16,
        from: u16,
        bytes: u16,
    },
    Truncate {
        at: u16,
    },
}

const NASTY: &[&[u8]] = &[
    // Lengths of MessagePack that nothing follows.
    b"\xdd\xff\xff\xff\xff",
    b"\xdf\xff\xff\xff\xff",
    b"\xc6\xff\xff\xff\xff",
    b"\xdb\xff\xff\xff\xff",
    b"\xdc\xff\xff",
    b"\xde\xff\xff",
    b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\xd3\x80\x00\x00\x00\x00\x00\x00\x00",
    b"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00",
    b"\x91\x91\x91\x91\x91\x91\x91\x91",
    // Of text.
    b"[[[[[[[[[[[[[[[[",
    b"{\"a\":{\"a\":{\"a\":",
    b"- - - - - - - -",
    b"&a [*a,*a,*a,*a]",
    b"<<: *a\n",
    b"18446744073709551616",
    b"-9223372036854775808",
    b"1e999",
    b"\0",
    b"\r\n",
    b"\xff\xfe",
    "\u{202e}\u{0661}\u{1F514}".as_bytes(),
    b"*/0",
    b"L-31",
    b"31W",
    b"SUN#5",
    b"H/1",
    b"%",
    b"\\",
    b"CRON_TZ=",
    b"2026-02-30T25:61:61Z",
];

/// A seed with the changes, cut at a length.
pub fn damaged(seeds: &[Vec<u8>], pick: usize, changes: &[Change], longest: usize) -> Vec<u8> {
    let mut bytes = seeds[pick % seeds.len()].clone();
    for change in changes {
        apply(&mut bytes, seeds, change);
        bytes.truncate(longest);
    }
    bytes
}

fn place(at: u16, length: usize) -> usize {
    usize::from(at) % (length + 1)
}

fn part(bytes: &[u8], at: u16, count: u16) -> std::ops::Range<usize> {
    let begin = place(at, bytes.len());
    begin..(begin + usize::from(count % 512)).min(bytes.len())
}

fn apply(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], change: &Change) {
    let mut insert = |at: u16, what: &[u8]| {
        let at = place(at, bytes.len());
        bytes.splice(at..at, what.iter().copied());
    };
    match *change {
        Change::Insert { at, byte, times } => insert(at, &vec![byte; usize::from(times)]),
        Change::Nasty { at, which } => insert(at, NASTY[usize::from(which) % NASTY.len()]),
        Change::Graft { at, other, from, bytes: count } => {
            let other = &seeds[usize::from(other) % seeds.len()];
            insert(at, &other[part(other, from, count)]);
        }
        Change::Repeat { at, bytes: count, times } => {
            let repeated = bytes[part(bytes, at, count)].repeat(usize::from(times % 64));
            let at = place(at, bytes.len());
            bytes.splice(at..at, repeated);
        }
        Change::Remove { at, bytes: count } => drop(bytes.drain(part(bytes, at, count))),
        Change::Truncate { at } => bytes.truncate(place(at, bytes.len())),
        Change::Set { at, byte } => {
            let at = usize::from(at) % bytes.len().max(1);
            if let Some(found) = bytes.get_mut(at) {
                *found = byte;
            }
        }
        Change::Flip { at, bit } => {
            let at = usize::from(at) % bytes.len().max(1);
            if let Some(found) = bytes.get_mut(at) {
                *found ^= 1 << (bit % 8);
            }
        }
    }
}
