//! A network between a client and a server that can fall silent and lose data without an error.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// The silent direction of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Silence {
    BothWays,
    /// Data from the client are lost. The client still receives data.
    ToServer,
    /// Data from the server are lost.
    ToClient,
}

/// A proxy of a server. It can silence its open connections for ever. Later connections work.
pub struct Wire {
    address: SocketAddr,
    connections: Arc<Mutex<Vec<Gates>>>,
}

/// Flags of lost data, one for each direction.
#[derive(Clone, Default)]
struct Gates {
    to_server: Arc<AtomicBool>,
    to_client: Arc<AtomicBool>,
}

impl Wire {
    /// Starts a proxy of the server at `to`.
    pub fn start(to: SocketAddr) -> Self {
        Self::start_with(TcpListener::bind("127.0.0.1:0").unwrap(), to)
    }

    /// Starts a proxy on a given listener.
    pub fn start_with(listener: TcpListener, to: SocketAddr) -> Self {
        let address = listener.local_addr().unwrap();
        let connections: Arc<Mutex<Vec<Gates>>> = Arc::default();
        let made = Arc::clone(&connections);
        // Ends with the test's process.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let gates = Gates::default();
                made.lock().unwrap().push(gates.clone());
                // If the server is unreachable, the connection closes.
                let _ = join(client, to, gates);
            }
        });
        Self { address, connections }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the proxy.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Number of connections so far.
    pub fn connections(&self) -> usize {
        self.connections.lock().unwrap().len()
    }

    /// Silences the current connections.
    pub fn silence(&self, which: Silence) {
        for gates in &*self.connections.lock().unwrap() {
            gates.to_server.fetch_or(which != Silence::ToClient, Ordering::Relaxed);
            gates.to_client.fetch_or(which != Silence::ToServer, Ordering::Relaxed);
        }
    }
}

fn join(client: TcpStream, to: SocketAddr, gates: Gates) -> io::Result<()> {
    let server = TcpStream::connect(to)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, from_server) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || pass(from_client, server, &gates.to_server));
    thread::spawn(move || pass(from_server, client, &gates.to_client));
    Ok(())
}

/// Forwards bytes. A silent connection reads data but forwards nothing, not even the end of the stream.
fn pass(mut from: TcpStream, mut to: TcpStream, silent: &AtomicBool) {
    let mut buffer = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if !silent.load(Ordering::Relaxed) && to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    if !silent.load(Ordering::Relaxed) {
        // Fails if the other side is already closed.
        let _ = to.shutdown(Shutdown::Both);
    } else {
        // Leaves the connection open during the test, because its end would be visible.
        std::mem::forget((from, to));
    }
}
