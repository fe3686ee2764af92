//! A connection to a host: its name resolved, its addresses judged, one of them connected to, TLS on top.

use super::{Allowed, Failed, Fault};
use campanile_schema::limits::{HTTP_ACTION_ADDRESSES, HTTP_ACTION_CONNECT_MS};
use http::Uri;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName},
};
use std::{
    fmt,
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    path::Path,
    pin::Pin,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;

/// What a resolver promises.
pub type Addresses<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Turns names into addresses.
pub trait Resolve: Send + Sync {
    fn resolve<'a>(&'a self, host: &'a str) -> Addresses<'a>;
}

/// The machine's own resolver.
struct System;

impl Resolve for System {
    fn resolve<'a>(&'a self, host: &'a str) -> Addresses<'a> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect()) })
    }
}

/// What lets HTTP actions call more than public addresses, and what lets channels.
const HTTP_ALLOW: &str = "--http-allow";
const CHANNELS_ALLOW: &str = "[channels] allow";

/// How an executor's requests leave its machine.
#[derive(Clone)]
pub struct Outbound {
    allowed: Allowed,
    /// What the operator says it with, for people.
    allowed_by: &'static str,
    resolver: Arc<dyn Resolve>,
    /// Beside the machine's own.
    authorities: Vec<CertificateDer<'static>>,
    /// Made when the first request needs it: reading the machine's certificates takes a while.
    tls: Arc<OnceLock<Result<Arc<ClientConfig>, String>>>,
}

/// A connection, with or without TLS.
pub(super) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub https: bool,
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
}

impl Origin {
    /// Of an absolute http or https URL.
    pub fn of(url: &Uri) -> Self {
        let https = url.scheme_str() == Some("https");
        let host = url.host().unwrap_or_default();
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let port = url.port_u16().unwrap_or(if https { 443 } else { 80 });
        Self { https, host: host.to_ascii_lowercase(), port }
    }

    /// Host, and the port where it is not the usual one.
    pub fn host_header(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let usual = if self.https { 443 } else { 80 };
        if self.port == usual { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.https { "https" } else { "http" }, self.host_header())
    }
}

impl Outbound {
    pub fn new(allowed: Allowed) -> Self {
        Self {
            allowed,
            allowed_by: HTTP_ALLOW,
            resolver: Arc::new(System),
            authorities: Vec::new(),
            tls: Arc::default(),
        }
    }

    /// As [`Outbound::new`] with what flags or the configuration say; `ca` a PEM file, empty = none. Errors are sentences.
    pub fn configured<T: AsRef<str>>(allow: &[T], ca: &str) -> Result<Self, String> {
        let mut outbound = Self::new(Allowed::parse(allow)?);
        if !ca.is_empty() {
            outbound.authorities = campanile_security::tls::certificates("CA", Path::new(ca))?;
        }
        Ok(outbound)
    }

    /// The same for channels, which have a setting of their own.
    pub fn of_channels<T: AsRef<str>>(allow: &[T], ca: &str) -> Result<Self, String> {
        Ok(Self { allowed_by: CHANNELS_ALLOW, ..Self::configured(allow, ca)? })
    }

    /// With another resolver than the machine's.
    pub fn resolver(mut self, resolver: Arc<dyn Resolve>) -> Self {
        self.resolver = resolver;
        self
    }

    /// Within the deadline that the caller keeps.
    pub(super) async fn connect(&self, origin: &Origin) -> Result<Box<dyn Wire>, Failed> {
        let host = &origin.host;
        let mut last = None;
        for address in self.addresses(host).await? {
            let address = SocketAddr::new(address, origin.port);
            match timeout(Duration::from_millis(HTTP_ACTION_CONNECT_MS), TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    // A request is written whole; waiting for more to send only adds latency.
                    let _ = stream.set_nodelay(true);
                    return if origin.https { self.secure(host, stream).await } else { Ok(Box::new(stream)) };
                }
                Ok(Err(error)) => last = Some(error.to_string()),
                Err(_) => last = Some(format!("no answer within {HTTP_ACTION_CONNECT_MS} ms")),
            }
        }
        let why = last.unwrap_or_else(|| "it has no address".to_owned());
        Err(Failed::new(Fault::ConnectFailed, format!("cannot connect to {host} port {}: {why}", origin.port)))
    }

    /// Those that may be called; never none. Who reads the error may not be who may know addresses inside, so it names none.
    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, Failed> {
        let all = match host.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => {
                let resolved = self.resolver.resolve(host).await;
                resolved.map_err(|error| Failed::new(Fault::NameNotFound, format!("cannot find {host}: {error}")))?
            }
        };
        let mut refused = None;
        let mut fine = Vec::new();
        for address in all.into_iter().map(|address| address.to_canonical()) {
            match self.allowed.refuses(host, address) {
                None if fine.len() < HTTP_ACTION_ADDRESSES && !fine.contains(&address) => fine.push(address),
                None => {}
                Some(what) => {
                    tracing::warn!(host, %address, "this address may not be called: {}", self.allowed_by);
                    refused = Some(what);
                }
            }
        }
        match refused {
            _ if !fine.is_empty() => Ok(fine),
            Some(what) => Err(Failed::new(
                Fault::AddressRefused,
                format!("{host} leads to {what}; executors call only public ones, and what {} names", self.allowed_by),
            )),
            None => Err(Failed::new(Fault::NameNotFound, format!("cannot find {host}: the name has no address"))),
        }
    }

    async fn secure(&self, host: &str, stream: TcpStream) -> Result<Box<dyn Wire>, Failed> {
        let wrong = |why: String| Failed::new(Fault::TlsFailed, format!("no TLS with {host}: {why}"));
        let config = self.tls.get_or_init(|| client_config(&self.authorities)).clone().map_err(wrong)?;
        let name = ServerName::try_from(host.to_owned()).map_err(|error| wrong(error.to_string()))?;
        let stream = TlsConnector::from(config).connect(name, stream).await;
        Ok(Box::new(stream.map_err(|error| wrong(error.to_string()))?))
    }
}

fn client_config(more: &[CertificateDer<'static>]) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    let own = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(own.certs);
    roots.add_parsable_certificates(more.iter().cloned());
    if roots.is_empty() {
        return Err(
            "this machine has no CA certificates (install ca-certificates, or name a file with --http-ca)".to_owned()
        );
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
