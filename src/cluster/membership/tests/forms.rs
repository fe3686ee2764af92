//! Golden lines of what members send each other: `golden/membership.jsonl`. The messages of the protocol are foca's, and their bytes too
//! must be those that members of the earlier release read. How to change a form is said in `golden_forms`.

use super::super::{
    Addresses, Versions,
    card::Card,
    codec::MessagePack,
    driver::{Body, Content},
    identity::Identity,
    refusal::{Notice, Reason, Refusal},
};
use crate::golden_forms::{Coding, Forms, variants};
use foca::{Codec, Header, Member, Message, State};
use serde::Serialize;
use serde_bytes::ByteBuf;
use std::net::SocketAddr;

type Protocol = Message<Identity>;

#[test]
fn forms_keep_their_bytes() {
    let mut forms = Forms::new(concat!(env!("CARGO_MANIFEST_DIR"), "/golden/membership.jsonl"));
    cards(&mut forms);
    packets(&mut forms);
    protocol(&mut forms);
    notices(&mut forms);
    forms.hold();
}

/// MessagePack without the names of fields, as packets have it.
fn array<T: Serialize>(value: &T) -> Vec<u8> {
    rmp_serde::to_vec(value).unwrap()
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn identity() -> Identity {
    Identity { node: 1 << 60, address: address("127.0.0.1:7001"), generation: 4, process: 70_000, life: 1 }
}

fn cards(forms: &mut Forms) {
    let v6 = Identity { address: address("[::1]:7001"), ..identity() };
    forms.samples("identity::Identity", Coding::array(array), [("over IPv4", identity()), ("over IPv6", v6)]);
    let addresses =
        Addresses { gateway: address("127.0.0.1:7002"), rpc: address("127.0.0.1:7003"), http: address("[::1]:7004") };
    forms.samples("card::Addresses", Coding::named(), [("every field", addresses)]);
    forms.samples("card::Versions", Coding::named(), [("1 to 2", Versions(1, 2))]);
    let plain = Card {
        node: 1 << 60,
        generation: 4,
        process: 70_000,
        revision: 9,
        name: "n1".to_owned(),
        session: 12,
        addresses,
        build: "0.1.0".to_owned(),
        event_format: Versions(1, 2),
        wire_format: Versions(1, 1),
        shards: 256,
        draining: false,
        cordoned: false,
        clock_off_ms: 0,
        clock_wrong: false,
        executors_at: None,
    };
    let full = Card {
        draining: true,
        cordoned: true,
        clock_off_ms: -4_000,
        clock_wrong: true,
        executors_at: Some("executors.example.org:7003".to_owned()),
        ..plain.clone()
    };
    let read = |bytes: &[u8]| Card::decode(bytes).ok_or_else(|| "it is no card".to_owned());
    let coding = Coding::of(|card: &Card| card.encode().unwrap(), read);
    forms.samples("card::Card", coding, [("nothing special", plain), ("every field", full)]);
}

fn refusals() -> Vec<(&'static str, Refusal)> {
    vec![
        ("", Refusal::SameNode { holder: identity(), standing_ms: 70_000 }),
        ("", Refusal::Shards(256)),
        ("", Refusal::Formats { event: Versions(1, 2), wire: Versions(1, 1) }),
        ("", Refusal::Generation(identity())),
        ("", Refusal::Clock { process: 70_000, number: 9, ahead_ms: -4_000 }),
    ]
}

fn packets(forms: &mut Forms) {
    let variants = variants!(Refusal: SameNode, Shards, Formats, Generation, Clock);
    forms.enumeration("refusal::Refusal", Coding::array(array), variants, refusals());
    let swim = || Content::Swim(ByteBuf::from([0x93, 0x01]));
    let contents = [("", swim()), ("", Content::Refused(Refusal::Shards(256)))];
    forms.enumeration("driver::Content", Coding::array(array), variants!(Content: Swim, Refused), contents);
    let body = Body { from: identity(), number: 9, standing_ms: 70_000, card: ByteBuf::from([0x80]), content: swim() };
    forms.samples("driver::Body", Coding::array(array), [("every field", body)]);
}

fn protocol(forms: &mut Forms) {
    let (target, origin, probe_number) = (identity(), identity(), 7);
    let messages = [
        ("", Message::Ping(probe_number)),
        ("", Message::Ack(probe_number)),
        ("", Message::PingReq { target, probe_number }),
        ("", Message::IndirectPing { origin, probe_number }),
        ("", Message::IndirectAck { target, probe_number }),
        ("", Message::ForwardedAck { origin, probe_number }),
        ("", Message::Announce),
        ("", Message::Feed),
        ("", Message::Gossip),
        ("", Message::Broadcast),
        ("", Message::TurnUndead),
    ];
    let codec = || MessagePack { me: identity() };
    let write = move |message: &Protocol| {
        let mut bytes = Vec::new();
        let header = Header { src: identity(), src_incarnation: 3, dst: identity(), message: message.clone() };
        codec().encode_header(&header, &mut bytes).unwrap();
        bytes
    };
    let read = move |bytes: &[u8]| {
        codec().decode_header(bytes).map(|header| header.message).map_err(|error| error.to_string())
    };
    let variants = variants!(Protocol: Ping, Ack, PingReq, IndirectPing, IndirectAck, ForwardedAck, Announce, Feed, Gossip, Broadcast,
        TurnUndead);
    forms.enumeration("codec::Header", Coding::of(write, read).fixed(), variants, messages);
    let members = [("", State::Alive), ("", State::Suspect), ("", State::Down)];
    let write = move |state: &State| {
        let mut bytes = Vec::new();
        codec().encode_member(&Member::new(identity(), 3, *state), &mut bytes).unwrap();
        bytes
    };
    let read = move |bytes: &[u8]| {
        codec().decode_member(bytes).map(|member| member.state()).map_err(|error| error.to_string())
    };
    let variants = variants!(State: Alive, Suspect, Down);
    forms.enumeration("codec::Member", Coding::of(write, read).fixed(), variants, members);
}

fn notices(forms: &mut Forms) {
    const MARK: &[u8] = b"CMN1";
    let write = |reason: &Reason| {
        let packet = Notice::encode(*reason, "blue", 1_782_000_000_000);
        packet.strip_prefix(MARK).unwrap().to_vec()
    };
    let read = |bytes: &[u8]| {
        let notice = Notice::decode(&[MARK, bytes].concat());
        notice.and_then(|notice| notice.reason()).ok_or_else(|| "it is no notice".to_owned())
    };
    let variants = variants!(Reason: Malformed, Cluster, Key, Seal, Clock, Replay, Node, Shards, Format, Generation);
    let reasons = Reason::ALL.map(|reason| ("", reason));
    forms.enumeration("refusal::Notice", Coding::of(write, read).fixed(), variants, reasons);
}
