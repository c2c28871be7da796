//! Something that takes connections and is no server, in the server's place and in a proxy's: what the operator is told.

use crate::bed::{Bed, WITHIN, executable};
use longshore_io_tokio::plane::{Config, Server, State, TaskSpec};
use longshore_tests::Home;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

const NAME: &str = "server.invalid";
const WARNING: &str = "the server does not answer as it should";
const ADVICE: &str = "check the server URL, what serves there and any proxy on the way";
const BACK: &str = "the server answers again";

/// Speaks in the way that was chosen last.
struct Middle {
    address: SocketAddr,
    way: Arc<AtomicUsize>,
    /// Connections that got no answer.
    denied: Arc<AtomicUsize>,
}

const HANGS_UP: usize = 0;
const BABBLES: usize = 1;
const PASSES_ON: usize = 2;

impl Middle {
    async fn start(server: SocketAddr, first: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (way, denied) = (Arc::new(AtomicUsize::new(first)), Arc::new(AtomicUsize::new(0)));
        let theirs = (way.clone(), denied.clone());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (way, denied) = (theirs.0.load(Ordering::SeqCst), theirs.1.clone());
                tokio::spawn(async move {
                    // Either side may go away as it likes.
                    if way == PASSES_ON {
                        let mut there = TcpStream::connect(server).await.expect("the control plane is there");
                        let _ = tokio::io::copy_bidirectional(&mut stream, &mut there).await;
                        return;
                    }
                    // What it is asked has come before it answers, so that it is the answer that is amiss.
                    let _ = stream.readable().await;
                    if way == BABBLES {
                        let _ = stream.write_all(b"220 mail.example ESMTP ready\r\n").await;
                    }
                    denied.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, way, denied }
    }

    fn choose(&self, way: usize) {
        self.way.store(way, Ordering::SeqCst);
    }
}

async fn told_once_with_its_end(way: usize) {
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let middle = Middle::start(plane.addr(), way).await;
    let url = format!("http://{}", middle.address);
    let home = Home::at(executable(), &url, plane.token().expose());
    let bed = Bed { daemon: home.start(), home, plane };
    bed.logs(WARNING).await;
    // Another one of the same kind is no news.
    let so_far = middle.denied.load(Ordering::SeqCst);
    let more = async {
        while middle.denied.load(Ordering::SeqCst) < so_far + 1 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(WITHIN, more).await.expect("it is asked again");
    middle.choose(PASSES_ON);
    bed.logs(BACK).await;
    bed.runtime("claude").await;
    let task = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&task).await;
    let log = bed.daemon.stop().await.log;
    let counts = [WARNING, ADVICE, BACK].map(|words| log.matches(words).count());
    assert_eq!(counts, [1, 1, 1], "{log}");
    assert!(!log.contains("by way of the proxy"), "{log}");
}

#[tokio::test]
async fn what_hangs_up_in_the_servers_place_is_told_once_with_its_end() {
    told_once_with_its_end(HANGS_UP).await;
}

#[tokio::test]
async fn what_speaks_no_http_in_the_servers_place_is_told_once_with_its_end() {
    told_once_with_its_end(BABBLES).await;
}

#[tokio::test]
async fn a_proxy_that_hangs_up_is_named_by_its_variable() {
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let middle = Middle::start(plane.addr(), HANGS_UP).await;
    let home = Home::at(executable(), &format!("http://{NAME}"), plane.token().expose())
        .env("ALL_PROXY", format!("http://me:hunter2@{}", middle.address));
    let bed = Bed { daemon: home.start(), home, plane };
    bed.logs(WARNING).await;
    middle.choose(PASSES_ON);
    bed.logs(BACK).await;
    bed.runtime("claude").await;
    let task = bed.enqueue(TaskSpec::new("claude"));
    assert_eq!(bed.completed(&task).await.state, State::Completed);
    let log = bed.daemon.stop().await.log;
    let line = log.lines().find(|line| line.contains(WARNING)).expect("it is told");
    assert!(line.contains(" WRN ") && line.contains("by way of the proxy in ALL_PROXY"), "{line}");
    assert!(!log.contains("hunter2"), "{log}");
}
