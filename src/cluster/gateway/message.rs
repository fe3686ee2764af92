//! The one message that other nodes can send.

use ractor::RpcReplyPort;
use ractor_cluster::RactorClusterMessage;

#[derive(RactorClusterMessage)]
pub(super) enum GatewayMsg {
    /// Answered at once with what was not taken. Work and answers take their own way.
    #[rpc]
    Parcel(Vec<u8>, RpcReplyPort<Vec<u8>>),
}
