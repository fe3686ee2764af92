//! How much may be sent. A shard's messages, its hooks, and its hooks for one destination are limited, and a tenant may
//! use a quarter of each. ENDs are not counted: a shard accepts only as many children as it can report the ends of.

use super::rules::{Rule, kept};
use campanile_schema::{
    ids::{ShardId, shard_of_slot},
    limits::{OUTBOX_BYTES, OUTBOX_ENDS, OUTBOX_HOOKS, OUTBOX_HOOKS_TO_ONE, OUTBOX_MESSAGES, OUTBOX_TENANT_PART},
    stored::outbox::{Message, MessageKind},
    text::Text,
};
use std::collections::BTreeMap;

/// The limits. Those of a node are [`Bounds::default`]; its model has smaller ones.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub messages: usize,
    pub bytes: usize,
    pub hooks: usize,
    pub hooks_to_one: usize,
    /// A tenant has this part of each, as a divisor.
    pub tenant_part: usize,
    /// Children that are open or whose end is not settled.
    pub ends: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            messages: OUTBOX_MESSAGES,
            bytes: OUTBOX_BYTES,
            hooks: OUTBOX_HOOKS,
            hooks_to_one: OUTBOX_HOOKS_TO_ONE,
            tenant_part: OUTBOX_TENANT_PART,
            ends: OUTBOX_ENDS,
        }
    }
}

/// Which limit a message would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    Messages,
    Bytes,
    Hooks,
    HooksToOne,
    Tenant,
    Ends,
}

/// Whether a kind is a hook, which is dropped when there is no room, instead of waiting.
pub fn is_hook(kind: MessageKind) -> bool {
    match kind {
        MessageKind::Hook | MessageKind::Compensation | MessageKind::Deadline => true,
        MessageKind::Start | MessageKind::End | MessageKind::Cancel => false,
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    messages: usize,
    bytes: usize,
    hooks: usize,
}

impl Sum {
    fn is_zero(self) -> bool {
        self == Self::default()
    }
}

/// What the messages of a shard use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    all: Sum,
    tenants: BTreeMap<Text, Sum>,
    hooks_to: BTreeMap<ShardId, usize>,
    tenant_hooks_to: BTreeMap<(Text, ShardId), usize>,
    ends: usize,
}

impl Usage {
    pub fn messages(&self) -> usize {
        self.all.messages
    }
    pub fn bytes(&self) -> usize {
        self.all.bytes
    }
    pub fn hooks(&self) -> usize {
        self.all.hooks
    }
    pub fn ends(&self) -> usize {
        self.ends
    }
    pub fn hooks_to(&self, to: ShardId) -> usize {
        self.hooks_to.get(&to).copied().unwrap_or(0)
    }
    /// Messages of a tenant.
    pub fn of_tenant(&self, tenant: &str) -> usize {
        self.tenants.iter().find(|(name, _)| ***name == *tenant).map_or(0, |(_, sum)| sum.messages)
    }

    pub(super) fn add(&mut self, message: &Message, shards: u16) {
        self.change(message, shards, |n, by| *n += by);
    }
    pub(super) fn remove(&mut self, message: &Message, shards: u16) {
        self.change(message, shards, |n, by| *n = n.saturating_sub(by));
        self.tenants.retain(|_, sum| !sum.is_zero());
        if is_hook(message.kind) {
            self.hooks_to.retain(|_, n| *n > 0);
            self.tenant_hooks_to.retain(|_, n| *n > 0);
        }
    }

    fn change(&mut self, message: &Message, shards: u16, by: impl Fn(&mut usize, usize)) {
        if message.kind == MessageKind::End {
            return by(&mut self.ends, 1);
        }
        let hook = usize::from(is_hook(message.kind));
        for sum in [&mut self.all, self.tenants.entry(message.tenant.clone()).or_default()] {
            by(&mut sum.messages, 1);
            by(&mut sum.bytes, message.bytes as usize);
            by(&mut sum.hooks, hook);
        }
        if hook > 0 {
            let to = shard_of_slot(u64::from(message.to), shards);
            by(self.hooks_to.entry(to).or_default(), 1);
            by(self.tenant_hooks_to.entry((message.tenant.clone(), to)).or_default(), 1);
        }
    }

    /// Whether one more message has room beside these and what the same decision has sent already.
    pub(super) fn admits(&self, also: &Self, message: &Message, shards: u16, bounds: &Bounds) -> Result<(), Full> {
        if message.kind == MessageKind::End {
            return if kept(Rule::EndsHaveRoom) {
                Ok(())
            } else {
                limit(self.all.messages, 1, bounds.messages, Full::Messages)
            };
        }
        let bytes = message.bytes as usize;
        if kept(Rule::RoomCount) {
            limit(self.all.messages + also.all.messages, 1, bounds.messages, Full::Messages)?;
        }
        if kept(Rule::RoomBytes) {
            limit(self.all.bytes + also.all.bytes, bytes, bounds.bytes, Full::Bytes)?;
        }
        let tenant = self.tenant(message) + also.tenant(message);
        let part = |of: usize| of / bounds.tenant_part.max(1);
        if kept(Rule::TenantPart) {
            limit(tenant.messages, 1, part(bounds.messages), Full::Tenant)?;
            limit(tenant.bytes, bytes, part(bounds.bytes), Full::Tenant)?;
        }
        if !is_hook(message.kind) {
            return Ok(());
        }
        let to = shard_of_slot(u64::from(message.to), shards);
        if kept(Rule::HookRoom) {
            limit(self.all.hooks + also.all.hooks, 1, bounds.hooks, Full::Hooks)?;
        }
        if kept(Rule::HookRoomOfOne) {
            limit(self.hooks_to(to) + also.hooks_to(to), 1, bounds.hooks_to_one, Full::HooksToOne)?;
        }
        if kept(Rule::TenantPart) {
            limit(tenant.hooks, 1, part(bounds.hooks), Full::Tenant)?;
            let key = (message.tenant.clone(), to);
            let of = |usage: &Self| usage.tenant_hooks_to.get(&key).copied().unwrap_or(0);
            limit(of(self) + of(also), 1, part(bounds.hooks_to_one), Full::Tenant)?;
        }
        Ok(())
    }

    fn tenant(&self, message: &Message) -> Sum {
        self.tenants.get(&message.tenant).copied().unwrap_or_default()
    }
}

impl std::ops::Add for Sum {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            messages: self.messages + other.messages,
            bytes: self.bytes + other.bytes,
            hooks: self.hooks + other.hooks,
        }
    }
}

fn limit(used: usize, more: usize, most: usize, full: Full) -> Result<(), Full> {
    if used + more > most { Err(full) } else { Ok(()) }
}

/// Whether a shard may take one more child: `children` are open or have an END that is not settled. A shard that owes too many ends
/// answers START with Later. The ENDs free that room, and an END needs none anywhere, so two shards that start children at each other
/// do not block each other.
pub fn takes_child(children: usize, bounds: &Bounds) -> bool {
    !kept(Rule::EndRoomIsReserved) || children < bounds.ends
}
