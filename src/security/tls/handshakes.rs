//! Handshakes of a port, side by side with the accepting of further connections: bounded in time and in number. When there are too
//! many the oldest gives way, so that silent callers take nothing from others.

use super::{
    serving::{Port, ServingCertificate},
    transport::Transport,
};
use campanile_schema::limits::{TLS_HANDSHAKE_MS, TLS_HANDSHAKES};
use std::{collections::VecDeque, io, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::{AbortHandle, JoinSet},
};

/// First byte of whoever speaks TLS: a record of a handshake.
const HANDSHAKE: u8 = 0x16;
/// What is read of one who speaks in clear before he is left alone, bytes.
const CLEAR_BYTES: usize = 64 << 10;

/// What a port does with new connections. `T` goes along with each.
pub struct Handshakes<T> {
    /// None: the port speaks in clear.
    tls: Option<Secure>,
    under_way: JoinSet<Option<(Transport, T)>>,
    by_age: VecDeque<AbortHandle>,
    most: usize,
}

struct Secure {
    certificate: Arc<ServingCertificate>,
    port: Port,
    /// Said to who speaks in clear, in the port's own protocol.
    refusal: Arc<[u8]>,
}

impl<T: Send + 'static> Handshakes<T> {
    pub fn new(certificate: Option<Arc<ServingCertificate>>, port: Port, refusal: impl FnOnce() -> Vec<u8>) -> Self {
        let tls = certificate.map(|certificate| Secure { certificate, port, refusal: refusal().into() });
        Self { tls, under_way: JoinSet::new(), by_age: VecDeque::new(), most: TLS_HANDSHAKES }
    }

    /// What is ready at once; a connection with TLS comes out of [`Handshakes::next`].
    pub fn begin(&mut self, stream: TcpStream, with: T) -> Option<(Transport, T)> {
        let Some(Secure { certificate, port, refusal }) = &self.tls else {
            return Some((Transport::Plain(stream), with));
        };
        self.by_age.retain(|handshake| !handshake.is_finished());
        if self.by_age.len() >= self.most
            && let Some(oldest) = self.by_age.pop_front()
        {
            failed(*port, "displaced");
            oldest.abort();
        }
        let (certificate, port, refusal) = (certificate.clone(), *port, refusal.clone());
        let handshake = async move {
            let limit = Duration::from_millis(TLS_HANDSHAKE_MS);
            let done = tokio::time::timeout(limit, handshake(stream, &certificate, port, &refusal)).await;
            match done {
                Ok(Some(transport)) => Some((transport, with)),
                Ok(None) => None,
                Err(_) => {
                    failed(port, "timeout");
                    None
                }
            }
        };
        self.by_age.push_back(self.under_way.spawn(handshake));
        None
    }

    /// The next connection that is ready; never where there are none. May be dropped without loss.
    pub async fn next(&mut self) -> (Transport, T) {
        loop {
            match self.under_way.join_next().await {
                Some(Ok(Some(ready))) => return ready,
                // Failed, or displaced.
                Some(Ok(None) | Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }
}

async fn handshake(
    mut stream: TcpStream,
    certificate: &ServingCertificate,
    port: Port,
    refusal: &[u8],
) -> Option<Transport> {
    let mut first = [0u8];
    match stream.peek(&mut first).await {
        Ok(1..) if first[0] == HANDSHAKE => {}
        Ok(1..) => {
            failed(port, "clear");
            // The caller's loss only.
            let _ = refuse(&mut stream, refusal).await;
            return None;
        }
        Ok(0) | Err(_) => {
            failed(port, "closed");
            return None;
        }
    }
    match certificate.acceptor(port).accept(stream).await {
        Ok(stream) => Some(Transport::Secure(Box::new(stream))),
        Err(error) => {
            failed(port, "refused");
            tracing::debug!(port = port.label(), %error, "a TLS handshake failed");
            None
        }
    }
}

/// Says it, and reads until the peer has closed: a connection that is closed with bytes unread loses what was said.
async fn refuse(stream: &mut TcpStream, refusal: &[u8]) -> io::Result<()> {
    stream.write_all(refusal).await?;
    stream.shutdown().await?;
    let mut away = [0u8; 4096];
    let mut read = 0;
    while read < CLEAR_BYTES {
        match stream.read(&mut away).await? {
            0 => break,
            bytes => read += bytes,
        }
    }
    Ok(())
}

/// Why a handshake failed, as its metric tells it.
const REASONS: [&str; 5] = ["displaced", "timeout", "clear", "closed", "refused"];

/// The counter exists from the start, with each port and reason.
pub fn handshakes_at_zero() {
    for (port, reason) in [Port::Http, Port::Rpc].into_iter().flat_map(|port| REASONS.map(|reason| (port, reason))) {
        metrics::counter!("campanile_tls_handshakes_failed_total", "port" => port.label(), "reason" => reason)
            .increment(0);
    }
}

fn failed(port: Port, reason: &'static str) {
    metrics::counter!("campanile_tls_handshakes_failed_total", "port" => port.label(), "reason" => reason).increment(1);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tls::Files;
    use rcgen::{CertificateParams, KeyPair};
    use std::os::unix::fs::OpenOptionsExt;
    use tokio::net::TcpListener;

    fn certificate(dir: &std::path::Path) -> Arc<ServingCertificate> {
        let key = KeyPair::generate().unwrap();
        let made = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
        let files = Files { certificate: dir.join("cert.pem"), key: dir.join("key.pem") };
        std::fs::write(&files.certificate, made.pem()).unwrap();
        let mut private = std::fs::OpenOptions::new();
        let mut private = private.create_new(true).write(true).mode(0o600).open(&files.key).unwrap();
        io::Write::write_all(&mut private, key.serialize_pem().as_bytes()).unwrap();
        ServingCertificate::load(files).unwrap()
    }

    #[tokio::test]
    async fn one_too_many_displaces_the_oldest() {
        let dir = tempfile::tempdir().unwrap();
        let mut handshakes = Handshakes::new(Some(certificate(dir.path())), Port::Rpc, Vec::new);
        handshakes.most = 3;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut silent = VecDeque::new();
        for number in 0..5 {
            silent.push_back(TcpStream::connect(listener.local_addr().unwrap()).await.unwrap());
            let (stream, _) = listener.accept().await.unwrap();
            assert!(handshakes.begin(stream, number).is_none());
            assert!(handshakes.by_age.len() <= 3);
        }
        for _ in 0..2 {
            let displaced = handshakes.under_way.join_next().await.unwrap();
            assert!(displaced.is_err_and(|error| error.is_cancelled()), "only those displaced have ended");
            // Its connection is closed, and it is the oldest.
            assert_eq!(silent.pop_front().unwrap().read(&mut [0]).await.unwrap(), 0);
        }
        assert_eq!(handshakes.under_way.len(), 3);
    }
}
