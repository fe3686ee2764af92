//! foca, as it is used here: who a member is, how its messages are written, and what travels with them.

use super::{
    card::{Card, CardBroadcasts, Cards},
    codec::MessagePack,
    identity::Identity,
    settings,
};
use foca::Foca;
use parking_lot::Mutex;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::sync::Arc;

pub(super) type Swim = Foca<Identity, MessagePack, StdRng, CardBroadcasts>;

/// A member that knows nobody yet.
pub(super) fn swim(identity: Identity, card: &Card, cards: &Arc<Mutex<Cards>>, rng: &mut StdRng) -> Swim {
    let broadcasts = CardBroadcasts { cards: cards.clone(), own: card.clone() };
    let own = StdRng::from_seed(rng.random());
    Foca::with_custom_broadcast(identity, settings::swim(), own, MessagePack { me: identity }, broadcasts)
}
