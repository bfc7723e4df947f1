//! A network between a client and a server that falls silent: data are lost without an error.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// The silent direction of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Silence {
    BothWays,
    /// Data from the client are lost. It still receives data.
    ToServer,
    /// Data from the server are lost.
    ToClient,
}

/// A proxy of a server. It silences its open connections for ever, and later ones work.
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
    /// A way to the server at `to`.
    pub fn start(to: SocketAddr) -> Self {
        Self::start_with(TcpListener::bind("127.0.0.1:0").unwrap(), to)
    }

    /// A way from an address that was chosen before.
    pub fn start_with(listener: TcpListener, to: SocketAddr) -> Self {
        let address = listener.local_addr().unwrap();
        let connections: Arc<Mutex<Vec<Gates>>> = Arc::default();
        let made = Arc::clone(&connections);
        // Ends with the test's process.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let gates = Gates::default();
                made.lock().unwrap().push(gates.clone());
                // A server that is gone closes the connection.
                let _ = join(client, to, gates);
            }
        });
        Self { address, connections }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Connections made so far.
    pub fn connections(&self) -> usize {
        self.connections.lock().unwrap().len()
    }

    /// Makes the connections of now silent.
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

/// Forwards bytes. Once silent it reads data and forwards nothing, not even the end.
fn pass(mut from: TcpStream, mut to: TcpStream, silent: &AtomicBool) {
    let mut buffer = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if !silent.load(Ordering::Relaxed) && to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    if !silent.load(Ordering::Relaxed) {
        // Fails where the other side is gone already.
        let _ = to.shutdown(Shutdown::Both);
    } else {
        // The connection stays open during the test, because its end would be a signal.
        std::mem::forget((from, to));
    }
}
