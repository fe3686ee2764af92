//! Limits of a cluster: membership, calls between nodes, and its CQL store.

/// Longest name of a cluster, characters: a label of the DNS.
pub const CLUSTER_NAME_CHARS: usize = 63;
/// What a node remembers of what happened to its cluster, count.
pub const CLUSTER_EVENTS: usize = 1_000;
/// Longest `rpc.advertise`: it goes with every packet of membership, bytes.
pub const RPC_ADVERTISE_BYTES: usize = 48;
/// Addresses in `cluster.seeds`, count.
pub const CLUSTER_SEEDS: usize = 64;
/// Largest packet of membership, bytes: it must fit into one frame of any network.
pub const GOSSIP_PACKET_BYTES: usize = 1_400;
/// What a node says of itself in each packet, bytes.
pub const GOSSIP_CARD_BYTES: usize = 336;
/// Longest id of a gossip key, bytes.
pub const GOSSIP_KEY_ID_BYTES: usize = 32;
/// A packet whose sender's clock differs by more from ours is refused, milliseconds.
pub const GOSSIP_CLOCK_MS: i64 = 30_000;
/// Processes of which a node knows what they say of themselves, count.
pub const GOSSIP_CARDS: usize = 1_024;
/// Processes whose packets are told from repeated ones, count.
pub const GOSSIP_REPLAY_SENDERS: usize = 1_024;
/// Packets of one process behind its newest that are told from repeated ones, count; older ones are refused.
pub const GOSSIP_REPLAY_WINDOW: usize = 1_024;
/// Answers to packets that could not be opened, count a second.
pub const GOSSIP_NOTICES_PER_SEC: u32 = 5;
/// The same complaint about packets is told again after this long, milliseconds.
pub const GOSSIP_LOG_EVERY_MS: u64 = 30_000;
/// Packets of membership that are read before timers have their turn, count.
pub const GOSSIP_PACKETS_A_TURN: usize = 256;
/// Largest request or answer between nodes, bytes.
pub const GATEWAY_MESSAGE_BYTES: usize = 1 << 20;
/// Items of a long list that go to a shard with one call, bytes; its only item may be larger. Well below [`GATEWAY_MESSAGE_BYTES`].
pub const CALL_PART_BYTES: usize = 256 << 10;
/// The same, count: what the shard answers to each must fit as well.
pub const CALL_PART_ITEMS: usize = 1_024;
/// Requests and answers that travel together between nodes, bytes; a larger one travels alone.
pub const GATEWAY_PARCEL_BYTES: usize = 64 << 10;
/// Parcels to one node without a receipt, count.
pub const GATEWAY_WINDOW: usize = 4;
/// A node that gives no receipt for a parcel within this time has its connection closed, milliseconds.
pub const GATEWAY_ACK_MS: u64 = 3_000;
/// Requests and answers that wait to be sent to one node, count; over it callers get an error.
pub const GATEWAY_OUTBOX_REQUESTS: usize = 4_096;
/// Requests that wait for one node or its receipt, bytes; as many of answers.
pub const GATEWAY_OUTBOX_BYTES: usize = 4 << 20;
/// Requests of one node under way at another, count; over it they are refused.
pub const GATEWAY_INBOX_REQUESTS: usize = 1_024;
/// Connections of other nodes that are being made at once, count; further ones wait in the listen queue of the system.
pub const GATEWAY_HANDSHAKES: usize = 64;
/// Time in which a connection between nodes must be made, milliseconds.
pub const GATEWAY_HANDSHAKE_MS: u64 = 3_000;
/// What is sent to another node and not acknowledged by its system ends the connection after this long, milliseconds.
pub const GATEWAY_USER_TIMEOUT_MS: u64 = 3_000;
/// What two nodes say before a connection is made, bytes.
pub const GATEWAY_HELLO_BYTES: usize = 1_024;
/// Requests for rows of ownership under way at a CQL store, count; more wait.
pub const CQL_LEASES_IN_FLIGHT: usize = 64;
/// Requests for rows of lanes under way at a CQL store, count; more wait.
pub const CQL_JOURNAL_IN_FLIGHT: usize = 128;
/// Rows of the read model that one request to a CQL store writes, bytes; a larger row goes alone.
pub const CQL_BATCH_BYTES: usize = 64 << 10;
/// Rows of the read model that one request to a CQL store writes, count.
pub const CQL_BATCH_ROWS: usize = 256;
/// Rows of several partitions in one request to a CQL store, bytes: Cassandra warns from 5 KiB on.
pub const CQL_SHARED_BATCH_BYTES: usize = 4 << 10;
/// Partitions in one request to a CQL store, count: Cassandra warns above 10.
pub const CQL_SHARED_BATCH_PARTITIONS: usize = 10;
/// Largest record of a run that shares a row of a CQL store with others, bytes; a larger one has a row of its own.
pub const PACKED_RUN_BYTES: usize = 2 << 10;
/// Records of runs in one row of a CQL store, bytes.
pub const PACK_BYTES: usize = 32 << 10;
