//! A proxy of an HTTP server that sometimes fails: it refuses requests, answers 503, is slow, or loses answers.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// The fate of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Passes,
    /// The proxy closes the connection without an answer, and the server gets no request.
    Refused,
    /// The answer reports a busy server.
    Busy,
    /// The request passes after a delay.
    Slow,
    /// The server carries out the request, but its answer is lost.
    AnswerLost,
    /// The answer reports a full store, in the words of the Ceph Object Gateway.
    Full,
}

/// A proxy that gives requests the fates of a test.
pub struct Proxy {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl Proxy {
    /// Starts a proxy of the server at `to`. Requests have these fates in turn, cyclically.
    pub fn start(to: SocketAddr, fates: &'static [Fate]) -> Self {
        Self::start_with(to, move |number, _| fates[number % fates.len()])
    }

    /// Starts a proxy that chooses the fate of a request by its number and its first line.
    pub fn start_with(to: SocketAddr, fate: impl Fn(usize, &str) -> Fate + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(AtomicUsize::new(0));
        let (counter, fate) = (Arc::clone(&requests), Arc::new(fate));
        // Ends with the test's process.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let number = counter.fetch_add(1, Ordering::Relaxed);
                let fate = Arc::clone(&fate);
                // Ignores errors, because clients give up now and then by design of the tests.
                thread::spawn(move || pass(client, to, |line| fate(number, line)).ok());
            }
        });
        Self { address, requests }
    }

    /// The URL of the proxy.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Number of requests so far.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}

/// Forwards one request and closes the connection, so each request has a separate fate.
fn pass(mut client: TcpStream, to: SocketAddr, fate: impl FnOnce(&str) -> Fate) -> io::Result<()> {
    let head = head_of(&mut client)?;
    let fate = fate(String::from_utf8_lossy(&head).lines().next().unwrap_or_default());
    match fate {
        Fate::Refused => return client.shutdown(Shutdown::Both),
        Fate::Busy => {
            let busy = "HTTP/1.1 503 Slow Down\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
            return client.write_all(busy.as_bytes());
        }
        Fate::Full => {
            let body = "<?xml version=\"1.0\"?><Error><Code>QuotaExceeded</Code></Error>";
            let head = "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Type: application/xml";
            let length = body.len();
            return write!(client, "{head}\r\nContent-Length: {length}\r\n\r\n{body}");
        }
        Fate::Slow => thread::sleep(Duration::from_millis(400)),
        _ => {}
    }
    let mut server = TcpStream::connect(to)?;
    server.write_all(&head)?;
    let (mut from, mut up) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || io::copy(&mut from, &mut up).ok());
    if fate == Fate::AnswerLost {
        // A server that answers has carried out the request.
        server.read_exact(&mut [0])?;
        return client.shutdown(Shutdown::Both);
    }
    io::copy(&mut server, &mut client)?;
    client.shutdown(Shutdown::Both)
}

/// The head of a request, changed to close the connection, and the bytes read after the head.
fn head_of(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    let mut buffer = [0; 4096];
    while !read.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        let count = client.read(&mut buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        read.extend_from_slice(&buffer[..count]);
    }
    let line = read.windows(2).position(|bytes| bytes == b"\r\n").unwrap_or(0) + 2;
    read.splice(line..line, *b"Connection: close\r\n");
    Ok(read)
}
