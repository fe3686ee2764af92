//! A node in this process whose ports speak TLS, and raw connections to it.

use crate::{authority::Authority, support};
use campanile::node::Node;
use campanile_client::{Client, ClientError, ClientOptions, Tls};
use campanile_security::tls::{Files, Ports, ServingCertificate};
use rustls::pki_types::{CertificateDer, ServerName};
use std::{net::SocketAddr, sync::Arc};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// See the module's text. Its certificate is for localhost.
pub struct SecureNode {
    pub authority: Authority,
    pub certificate: Arc<ServingCertificate>,
    node: Node,
    _dir: tempfile::TempDir,
}

impl SecureNode {
    pub async fn start() -> Self {
        let authority = Authority::new();
        let files: Files = authority.node();
        let certificate = ServingCertificate::load(files).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let mut options = support::options(dir.path());
        options.tls = Ports { http: Some(certificate.clone()), rpc: Some(certificate.clone()) };
        let node = Node::start(options).await.unwrap();
        Self { authority, certificate, node, _dir: dir }
    }

    pub fn http(&self) -> SocketAddr {
        self.node.http_addr()
    }
    pub fn rpc(&self) -> SocketAddr {
        self.node.rpc_addr()
    }
    /// By the name that its certificate has.
    pub fn rpc_by_name(&self) -> String {
        format!("localhost:{}", self.rpc().port())
    }

    pub async fn client(&self) -> Client {
        connect(self.rpc_by_name(), Some(self.authority.tls())).await.unwrap()
    }

    /// TLS with whoever is at that port, by the node's CA and for localhost.
    pub async fn raw(&self, address: SocketAddr) -> TlsStream<TcpStream> {
        let mut config = self.authority.client_config();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
    }

    pub async fn stop(self) {
        self.node.stop().await;
    }
}

/// As the test's operator.
pub async fn connect(address: String, tls: Option<Tls>) -> Result<Client, ClientError> {
    let mut options = ClientOptions::new(vec![address], support::TOKEN);
    options.tls = tls;
    Client::connect_with(options).await
}

/// The certificate that the other side has shown.
pub fn shown(stream: &TlsStream<TcpStream>) -> CertificateDer<'static> {
    stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
}

/// Status line and body of one request; the connection stays.
pub async fn get(stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin), path: &str) -> (String, String) {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\r\n", support::TOKEN);
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    let mut answer = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&answer).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_ascii_lowercase();
            let length = length.split("content-length: ").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
            if body.len() >= length {
                return (head.lines().next().unwrap().to_owned(), body.to_owned());
            }
        }
        assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0, "it ended: {text}");
    }
}
