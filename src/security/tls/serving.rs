//! The certificate that callers see, and its change while the node runs.
//!
//! Its two files are looked at every [`TLS_LOOK_MS`], by their content: renewing tools replace files, or links to them. A new pair is for new
//! connections; those that are there go on with what they have. A pair that cannot be used changes nothing and is told once.

use super::{
    pair::{Files, Pair, Texts},
    validity::{Age, Validity},
};
use campanile_schema::{limits::TLS_LOOK_MS, time::Timestamp};
use parking_lot::RwLock;
use std::{sync::Arc, time::Duration};
use tokio::sync::{Notify, watch};
use tokio_rustls::TlsAcceptor;

/// Which port, since they speak different protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    Http,
    Rpc,
}

impl Port {
    pub fn label(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Rpc => "rpc",
        }
    }
}

/// See the module's text.
#[derive(Debug)]
pub struct ServingCertificate {
    files: Files,
    current: RwLock<Arc<Pair>>,
    hint: Notify,
}

/// What cannot be used, and whether it was told.
#[derive(Default)]
struct Unusable {
    /// At the look before.
    last: Option<String>,
    told: Option<String>,
}

impl Unusable {
    /// What to tell of this look: each reason once. One of two files may be written already, so it counts when the next look finds the
    /// same, or at once when the look was asked for. None: nothing is wrong.
    fn note(&mut self, why: Option<String>, asked: bool) -> Option<String> {
        let settled = asked || self.last == why;
        self.last.clone_from(&why);
        if why.is_none() {
            self.told = None;
        }
        if !settled || self.told == why {
            return None;
        }
        self.told.clone_from(&why);
        why
    }
}

/// What the latest look found.
#[derive(Debug, PartialEq, Eq)]
enum FileCheck {
    Same,
    Changed,
    /// With the reason.
    Unusable(String),
}

impl ServingCertificate {
    /// Errors are sentences for the operator.
    pub fn load(files: Files) -> Result<Arc<Self>, String> {
        // One that has expired is served all the same, and told of ([`Self::watch`]): callers refuse it, but jobs must run.
        let pair = Pair::new(&files, files.read()?)?;
        told(&pair.validity);
        Ok(Arc::new(Self { files, current: RwLock::new(Arc::new(pair)), hint: Notify::new() }))
    }

    /// Has the files looked at now; what is unusable is told now.
    pub fn look_now(&self) {
        self.hint.notify_one();
    }

    /// For the next handshake.
    pub fn acceptor(&self, port: Port) -> TlsAcceptor {
        let pair = self.current();
        TlsAcceptor::from(match port {
            Port::Http => pair.http.clone(),
            Port::Rpc => pair.rpc.clone(),
        })
    }

    pub(super) fn current(&self) -> Arc<Pair> {
        self.current.read().clone()
    }

    /// Looks at the files until the node stops.
    pub async fn watch(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut age = Age::Fine;
        let mut unusable = Unusable::default();
        loop {
            age = self.remark(age);
            let asked = tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(TLS_LOOK_MS)) => false,
                () = self.hint.notified() => true,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            let itself = self.clone();
            let Ok(look) = tokio::task::spawn_blocking(move || itself.look()).await else {
                continue;
            };
            let why = match look {
                FileCheck::Same => None,
                FileCheck::Changed => {
                    let Validity { until, names, .. } = &self.current().validity;
                    tracing::info!(%until, names = names.join(","), "a new TLS certificate is in use");
                    None
                }
                FileCheck::Unusable(why) => Some(why),
            };
            if let Some(why) = unusable.note(why, asked) {
                metrics::counter!("campanile_tls_reload_failures_total").increment(1);
                tracing::error!(%why, "the new TLS certificate cannot be used; the one before stays in use");
            }
        }
    }

    fn look(&self) -> FileCheck {
        let found = self.files.read().and_then(|texts| {
            let before = self.current();
            if before.texts == texts { Ok(None) } else { self.usable(texts).map(Some) }
        });
        match found {
            Ok(None) => FileCheck::Same,
            Ok(Some(pair)) => {
                told(&pair.validity);
                *self.current.write() = Arc::new(pair);
                FileCheck::Changed
            }
            Err(why) => FileCheck::Unusable(why),
        }
    }

    fn usable(&self, texts: Texts) -> Result<Pair, String> {
        let pair = Pair::new(&self.files, texts)?;
        let now = Timestamp(jiff::Timestamp::now().as_millisecond());
        pair.validity.check(now).map_err(|why| self.files.blame(&why))?;
        Ok(pair)
    }

    /// Says once when the certificate in use comes to its end.
    fn remark(&self, before: Age) -> Age {
        let validity = &self.current().validity;
        let age = validity.age(Timestamp(jiff::Timestamp::now().as_millisecond()));
        if age != before {
            let until = validity.until;
            match age {
                Age::Fine => {}
                Age::Ending => tracing::warn!(%until, "the TLS certificate in use ends soon; renew it"),
                Age::Expired => tracing::error!(%until, "the TLS certificate in use has expired: callers refuse it"),
                Age::NotYet => tracing::error!(from = %validity.from, "the TLS certificate in use is not valid yet"),
            }
        }
        age
    }
}

/// Seconds since 1970.
fn told(validity: &Validity) {
    metrics::gauge!("campanile_tls_certificate_expiry_timestamp_seconds").set(validity.until.ms() as f64 / 1000.0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_unusable_is_told_once() {
        let mut unusable = Unusable::default();
        let mut note = |why: &str, asked| unusable.note((!why.is_empty()).then(|| why.to_owned()), asked);
        let told = |why: &str| Some(why.to_owned());
        // Half written: never told.
        assert_eq!([note("half", false), note("", false)], [None, None]);
        assert_eq!([note("bad", false), note("bad", false), note("bad", false)], [None, told("bad"), None]);
        // For another reason, and asked for.
        assert_eq!([note("worse", true), note("worse", true), note("worse", false)], [told("worse"), None, None]);
        // It was good in between.
        assert_eq!([note("", false), note("worse", true)], [None, told("worse")]);
    }
}
