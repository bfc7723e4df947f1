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
    /// The connection is closed before anything is answered, and the server never hears of it.
    Refused,
    /// The answer reports a busy server.
    Busy,
    /// It passes, after a while.
    Slow,
    /// The server does what is asked; its answer is lost.
    AnswerLost,
    /// The answer reports a full store, in the words of the Ceph Object Gateway.
    Full,
}

/// Requests with the fates that a test wants.
pub struct Proxy {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl Proxy {
    /// A way to the server at `to`, on which requests have these fates, one after the other, again and again.
    pub fn start(to: SocketAddr, fates: &'static [Fate]) -> Self {
        Self::start_with(to, move |number, _| fates[number % fates.len()])
    }

    /// The same with a fate for each request by its number and its first line.
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
                // Clients give up now and then, which is what this is for.
                thread::spawn(move || pass(client, to, |line| fate(number, line)).ok());
            }
        });
        Self { address, requests }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Requests so far.
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
        // Once it answers it has done what was asked.
        server.read_exact(&mut [0])?;
        return client.shutdown(Shutdown::Both);
    }
    io::copy(&mut server, &mut client)?;
    client.shutdown(Shutdown::Both)
}

/// The head of a request, which asks for the connection to be closed, and what was read behind it.
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
