//! The codec against what a network can bring: any cut, any bytes, any claim.

use campanile_schema::{
    error::{ApiError, ErrorCode},
    limits::RPC_DEPTH,
    rpc::{
        codec::{AFTER_HELLO, BEFORE_HELLO, Decoder, FrameError, FrameLimits, Message},
        encode,
    },
};
use proptest::prelude::*;
use std::{collections::BTreeMap, time::Duration};

/// A message without borrows, to compare.
#[derive(Clone, Debug, PartialEq)]
enum Owned {
    Request(u32, String, Vec<u8>),
    Response(u32, Vec<u8>, Vec<u8>),
    Notification(String, Vec<u8>),
}
fn own(message: Message<'_>) -> Owned {
    match message {
        Message::Request { id, method, params } => Owned::Request(id, method.to_owned(), params.0.to_vec()),
        Message::Response { id, error, result } => Owned::Response(id, error.to_vec(), result.to_vec()),
        Message::Notification { method, params } => Owned::Notification(method.to_owned(), params.0.to_vec()),
    }
}
fn drain(decoder: &mut Decoder, into: &mut Vec<Owned>) -> Result<(), FrameError> {
    while let Some(message) = decoder.next_message()? {
        into.push(own(message));
    }
    Ok(())
}

fn stream() -> Vec<u8> {
    let mut out = Vec::new();
    let params = BTreeMap::from([("name", "a".repeat(300)), ("b", String::new())]);
    encode::request(&mut out, 7, "job.create", &params).unwrap();
    encode::notification(&mut out, "executor.credit", &BTreeMap::from([("slots", 70_000u32)])).unwrap();
    encode::result(&mut out, u32::MAX, &vec![1.5f64, -1.0]).unwrap();
    encode::error(&mut out, 0, &ApiError::new(ErrorCode::NotFound, "no such job")).unwrap();
    // Forms that our encoder does not use: array16 as outer array, bin as method, array32, map16, ext, int16 as id.
    out.extend_from_slice(&[
        0xdc, 0, 4, 0xd1, 0, 0, 0xd1, 0, 9, 0xc4, 1, b'm', 0xdd, 0, 0, 0, 1, 0xde, 0, 1, 0xa1, b'k', 0xd6,
    ]);
    out.extend_from_slice(&[1, 2, 3, 4, 5]);
    out
}

#[test]
fn every_cut_gives_the_same_messages() {
    let bytes = stream();
    let mut whole = Vec::new();
    let mut decoder = Decoder::new(AFTER_HELLO);
    decoder.push(&bytes);
    drain(&mut decoder, &mut whole).unwrap();
    assert_eq!(whole.len(), 5);
    assert_eq!(whole[4], Owned::Request(9, "m".into(), bytes[bytes.len() - 16..].to_vec()));
    for cut in 0..=bytes.len() {
        let mut seen = Vec::new();
        let mut decoder = Decoder::new(AFTER_HELLO);
        decoder.push(&bytes[..cut]);
        drain(&mut decoder, &mut seen).unwrap();
        decoder.push(&bytes[cut..]);
        drain(&mut decoder, &mut seen).unwrap();
        assert_eq!(seen, whole, "cut at {cut}");
        assert_eq!(decoder.unfinished(), 0);
    }
    let mut seen = Vec::new();
    let mut decoder = Decoder::new(AFTER_HELLO);
    for byte in &bytes {
        decoder.push(&[*byte]);
        drain(&mut decoder, &mut seen).unwrap();
    }
    assert_eq!(seen, whole);
}

#[test]
fn claims_are_refused_at_their_header() {
    let claims: &[(&[u8], FrameError)] = &[
        (&[0x94, 0, 1, 0xdb, 0xff, 0xff, 0xff, 0xff], FrameError::TooLarge { limit: BEFORE_HELLO.bytes }),
        (&[0x94, 0, 1, 0xc6, 0, 0x10, 0, 0], FrameError::TooLarge { limit: BEFORE_HELLO.bytes }),
        (&[0x94, 0, 1, 0xa1, b'm', 0xdd, 0xff, 0xff, 0xff, 0xff], FrameError::TooLarge { limit: BEFORE_HELLO.bytes }),
        (&[0x94, 0, 1, 0xa1, b'm', 0xdf, 0xff, 0xff, 0xff, 0xff], FrameError::TooLarge { limit: BEFORE_HELLO.bytes }),
        (&[0x94, 0, 1, 0xa1, b'm', 0xdc, 0x20, 0], FrameError::TooManyValues { limit: BEFORE_HELLO.values }),
        (&[0xdd, 0xff, 0xff, 0xff, 0xff], FrameError::NotAMessage("a message is an array of three or four items")),
        (b"GET / HTTP/1.1\r\n", FrameError::NotAMessage("a message is an array of three or four items")),
        (&[0x93, 2, 0xc1], FrameError::NotAMessage("byte 0xc1 is never used in MessagePack")),
    ];
    for (bytes, error) in claims {
        let mut decoder = Decoder::new(BEFORE_HELLO);
        decoder.push(bytes);
        assert_eq!(decoder.next_message(), Err(*error), "{bytes:02x?}");
        decoder.push(&stream());
        assert_eq!(decoder.next_message(), Err(*error), "an error stays");
    }
}

#[test]
fn many_empty_arrays_are_refused_before_anything_is_built() {
    let mut decoder = Decoder::new(AFTER_HELLO);
    let mut bytes = vec![0x93, 2, 0xa1, b'm', 0x91, 0x91, 0xdd, 0, 0x30, 0, 0];
    bytes.resize(4 << 20, 0x90);
    decoder.push(&bytes);
    assert_eq!(decoder.next_message(), Err(FrameError::TooManyValues { limit: AFTER_HELLO.values }));
}

#[test]
fn nesting_is_bounded() {
    let nested = |levels: usize| {
        let mut bytes = vec![0x93, 2, 0xa1, b'm'];
        bytes.resize(4 + levels, 0x91);
        bytes.push(0xc0);
        let mut decoder = Decoder::new(AFTER_HELLO);
        decoder.push(&bytes);
        decoder.next_message().map(|m| m.map(own))
    };
    assert!(nested(RPC_DEPTH - 1).unwrap().is_some());
    assert_eq!(nested(RPC_DEPTH), Err(FrameError::TooDeep { limit: RPC_DEPTH }));
}

#[test]
fn a_frame_of_the_largest_size_passes_and_one_byte_more_does_not() {
    let limits = FrameLimits { bytes: 1000, values: 100 };
    for (payload, fits) in [(1000 - 4 - 1 - 3, true), (1000 - 4 - 1 - 3 + 1, false)] {
        let mut bytes = vec![0x93, 2, 0xa1, b'm', 0x91, 0xc5];
        bytes.extend_from_slice(&(payload as u16).to_be_bytes());
        bytes.resize(bytes.len() + payload, 0);
        let mut decoder = Decoder::new(limits);
        decoder.push(&bytes);
        assert_eq!(decoder.next_message().is_ok(), fits, "{payload}");
    }
}

#[test]
fn params_are_one_map_and_liberal_about_none() {
    let map = |params: &[u8]| campanile_schema::rpc::codec::Params(params).map().map(<[u8]>::to_vec).ok();
    assert_eq!(map(&[0x90]), Some(vec![0x80]));
    assert_eq!(map(&[0xc0]), Some(vec![0x80]));
    assert_eq!(map(&[0x91, 0xc0]), Some(vec![0x80]));
    assert_eq!(map(&[0x91, 0x81, 0xa1, b'k', 1]), Some(vec![0x81, 0xa1, b'k', 1]));
    assert_eq!(map(&[0xdc, 0, 1, 0x80]), Some(vec![0x80]));
    // What the caller says of the call is a second map, which is read by itself.
    let read = |params: &[u8]| campanile_schema::rpc::codec::Params(params).read::<BTreeMap<String, u8>>().ok();
    assert_eq!(read(&[0x92, 0x81, 0xa1, b'k', 1, 0x80]), Some(BTreeMap::from([("k".to_owned(), 1)])));
    assert_eq!(map(&[0x93, 0x80, 0x80, 0x80]), None);
    assert_eq!(map(&[0x91, 1]), None);
    assert_eq!(map(&[0x80]), None);
}

/// A slow line with one large frame must not cost a scan per read.
#[test]
fn a_large_frame_in_small_pieces_is_walked_once() {
    let params: Vec<u32> = (0..400_000).collect();
    let mut bytes = Vec::new();
    encode::notification(&mut bytes, "m", &params).unwrap();
    let before = cpu_ns();
    let mut decoder = Decoder::new(AFTER_HELLO);
    let mut seen = Vec::new();
    for piece in bytes.chunks(64) {
        decoder.push(piece);
        drain(&mut decoder, &mut seen).unwrap();
    }
    assert_eq!(seen.len(), 1);
    // Scanning again for each of the 30,000 pieces would be 6e9 values: minutes of CPU. What other programs take does not count.
    let used = Duration::from_nanos(cpu_ns() - before);
    assert!(used < Duration::from_secs(10), "{used:?}");
}

/// CPU that this thread has used, as the kernel counts it.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic_and_hold_no_more_than_came(bytes in proptest::collection::vec(any::<u8>(), 0..400), cut in 0usize..400) {
        let cut = cut.min(bytes.len());
        let mut decoder = Decoder::new(FrameLimits { bytes: 300, values: 100 });
        let mut seen = Vec::new();
        let mut ok = true;
        for piece in [&bytes[..cut], &bytes[cut..]] {
            decoder.push(piece);
            ok = ok && drain(&mut decoder, &mut seen).is_ok();
            prop_assert!(decoder.unfinished() <= bytes.len());
        }
    }

    #[test]
    fn a_damaged_stream_never_panics_and_cuts_do_not_matter(at in 0usize..600, byte in any::<u8>(), cut in 0usize..600) {
        let mut bytes = stream();
        let at = at % bytes.len();
        bytes[at] = byte;
        let read = |cuts: &[&[u8]]| {
            let mut decoder = Decoder::new(FrameLimits { bytes: 4096, values: 100 });
            let mut seen = Vec::new();
            for piece in cuts {
                decoder.push(piece);
                if let Err(error) = drain(&mut decoder, &mut seen) { return (seen, Some(error)); }
            }
            (seen, None)
        };
        let cut = cut % bytes.len();
        prop_assert_eq!(read(&[&bytes]), read(&[&bytes[..cut], &bytes[cut..]]));
    }
}
