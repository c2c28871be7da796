//! A server that is reached over TLS only, and through a proxy only, as in a company's network.

use crate::bed::{WITHIN, executable};
use longshore_io_tokio::plane::{Config, Request, Server, State, TaskSpec};
use longshore_io_tokio::trace_sink::segments;
use longshore_tests::Home;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// For the proxy: user and password.
const LOGIN: &str = "zzq7c1e-user:zzq7c1e-password";
/// No resolver knows it: only a proxy can lead there.
const NAME: &str = "server.invalid";

/// A certificate authority, and a server's certificate of it.
struct Certificates {
    authority: String,
    acceptor: TlsAcceptor,
}

fn certificates() -> Certificates {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority =
        CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let certificate = CertificateParams::new([NAME.to_owned()])
        .expect("a name")
        .signed_by(&key, &authority)
        .expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )
        .expect("they belong together");
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Certificates { authority: authority.pem(), acceptor: TlsAcceptor::from(Arc::new(config)) }
}

/// A proxy that leads to the server by its name, where TLS ends.
struct Proxy {
    address: SocketAddr,
    tunnels: Arc<AtomicUsize>,
    refused: Arc<AtomicUsize>,
}

impl Proxy {
    async fn start(acceptor: TlsAcceptor, server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (tunnels, refused) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counts = (tunnels.clone(), refused.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, (tunnels, refused)) = (acceptor.clone(), counts.clone());
                tokio::spawn(async move {
                    let Some(stream) = connected(stream).await else { return };
                    tunnels.fetch_add(1, Ordering::SeqCst);
                    let Ok(mut tls) = acceptor.accept(stream).await else {
                        refused.fetch_add(1, Ordering::SeqCst);
                        return;
                    };
                    let mut plain = TcpStream::connect(server).await.expect("the control plane is there");
                    // Either side may go away as it likes.
                    let _ = tokio::io::copy_bidirectional(&mut tls, &mut plain).await;
                });
            }
        });
        Self { address, tunnels, refused }
    }

    /// As somebody writes it who has to log in there.
    fn url(&self) -> String {
        format!("http://{LOGIN}@{}", self.address)
    }
}

/// Answers the request for a tunnel.
async fn connected(mut stream: TcpStream) -> Option<TcpStream> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).ok()?;
    assert!(head.starts_with(&format!("CONNECT {NAME}:443 ")), "{head}");
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.ok()?;
    Some(stream)
}

fn home(plane: &Server, proxy: &Proxy) -> Home {
    let home = Home::at(executable(), &format!("https://{NAME}"), plane.token().expose());
    home.env("HTTPS_PROXY", proxy.url())
}

#[tokio::test]
async fn inv_70_requests_and_the_link_go_over_tls_through_a_proxy() {
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let certificates = certificates();
    let proxy = Proxy::start(certificates.acceptor, plane.addr()).await;
    let home = home(&plane, &proxy);
    let file = home.dir().join("authority.pem");
    std::fs::write(&file, certificates.authority).expect("written");
    let home = home.env("SSL_CERT_FILE", file.display().to_string());
    let daemon = home.start();
    plane.wait_for_runtime("claude", WITHIN).await.expect("registered");
    plane.wait_for_links(1, WITHIN).await.expect("the link");
    let task = plane.enqueue(TaskSpec::new("claude")).expect("taken");
    plane.wait_for(&task, State::Completed, WITHIN).await.expect("it completes");
    let over_the_link = |request: &Request| request.is("WS", "/api/daemon/tasks/claim");
    plane.wait_for_request(WITHIN, over_the_link).await.expect("claims go over the link");
    assert!(proxy.tunnels.load(Ordering::SeqCst) >= 2, "the link has a tunnel of its own");
    assert_eq!(proxy.refused.load(Ordering::SeqCst), 0);
    let ended = daemon.stop().await;
    assert!(ended.status.success(), "{}", ended.log);
    let recorded = segments(&home.state_dir().join("trace")).expect("a flight recorder");
    let recorded: Vec<String> =
        recorded.iter().map(|path| std::fs::read_to_string(path).expect("a segment")).collect();
    assert!(recorded.concat().contains(task.as_str()));
    let address = proxy.address.to_string();
    for secret in LOGIN.split(':').chain([NAME, address.as_str(), plane.token().expose()]) {
        assert!(!recorded.concat().contains(secret), "{secret} is recorded");
        assert!(
            secret == NAME || secret == address || !ended.log.contains(secret),
            "{secret} is logged: {}",
            ended.log
        );
    }
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_refused_and_said() {
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let proxy = Proxy::start(certificates().acceptor, plane.addr()).await;
    let home = home(&plane, &proxy);
    let file = home.dir().join("authority.pem");
    std::fs::write(&file, certificates().authority).expect("written");
    let home = home.env("SSL_CERT_FILE", file.display().to_string());
    let daemon = home.start();
    let said = async {
        while !daemon.log().contains("certificate") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WITHIN, said).await.unwrap_or_else(|_| panic!("{}", daemon.log()));
    assert!(proxy.tunnels.load(Ordering::SeqCst) >= 1);
    assert!(plane.requests_where(|_| true).is_empty(), "nothing was said to it");
    let ended = daemon.stop().await;
    assert!(!ended.log.contains(plane.token().expose()));
}
