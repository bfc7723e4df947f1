//! Checks that a worker is at its stated address before it gets work, because any caller can invent workers.
//!
//! The coordinator calls the worker under the address that its pull gives, with a challenge that only a process with the
//! worker's secret can answer. This costs one connection for each start of a worker, and for each time that it was lost.
//! Callers with a token or a certificate are authenticated and are not called.

use std::net::IpAddr;
use std::time::Duration;

use exact2048_coordinator::cluster::{Incarnation, PROTOCOL_VERSION, Pull, Secret};
use exact2048_net::client::{ClientOptions, connect};
use exact2048_net::share::PermitPool;
use exact2048_net::text::plain_words;
use exact2048_net::text::with_causes;
use exact2048_proto::v1::MeetRequest;
use exact2048_proto::v1::exchange_client::ExchangeClient;
use subtle::ConstantTimeEq;

use crate::random;
use crate::wire::proof_of;

/// Most workers that are called at the same time.
///
/// One address gets at most three quarters of these calls, so a caller that invents workers there does not keep out
/// workers elsewhere. A call may occupy one of the 512 threads that look up names and write journals.
const AT_ONCE: usize = 256;

/// How long it may take to meet a worker.
const PATIENCE: Duration = Duration::from_secs(3);

/// Time for which an abandoned call keeps its place.
///
/// The system may still be looking up the name, on a thread that cannot be interrupted. By default, it asks three name
/// servers twice, for five seconds each.
const LOOKED_UP_AFTER: Duration = Duration::from_secs(30);

/// Bytes that a worker's answer may have; it is a proof of 32.
const MOST_ANSWER_BYTES: usize = 1024;

/// How many bytes of a worker's words are passed on.
const MOST_WORDS: usize = 512;

/// The reason that a caller gets if no worker answers at its address.
const NO_WORKER: &str = "expected a worker of this version at this address, found another server";

/// The caller of a pull.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Where the call comes from.
    pub address: IpAddr,
    /// The secret that it shows, from which the worker's id follows.
    pub secret: Secret,
}

/// Why a worker is not let in.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WorkerUnreachable {
    /// No worker of this version answers at its address.
    #[error(
        "the coordinator cannot reach this worker at {address}: {why}. If the address is wrong, let the worker advertise \
         another HOST:PORT"
    )]
    Unreachable {
        /// The address in its pull.
        address: String,
        /// The cause.
        why: String,
    },
    /// Another worker answers at its address.
    #[error("expected this worker at {address}, found another worker or another process of it")]
    OtherWorker {
        /// The address in its pull.
        address: String,
    },
    /// As many workers are being called as may be, in all or of its address.
    #[error(
        "the coordinator is already calling {AT_ONCE} new workers, or many at this address; try again later"
    )]
    Busy,
}

/// Lets workers in.
#[derive(Debug)]
pub struct Gate {
    /// How workers are called; `None` where all are let in.
    client: Option<ClientOptions>,
    calls: PermitPool,
}

impl Gate {
    /// Calls workers with these options; the server's address in them does not matter.
    #[must_use]
    pub fn new(client: ClientOptions) -> Self {
        Self { client: Some(client), calls: PermitPool::new(AT_ONCE) }
    }

    /// Lets all in.
    #[must_use]
    pub fn open() -> Self {
        Self { client: None, calls: PermitPool::new(0) }
    }

    /// Waits until the process that a pull is from has shown that it is at its address.
    pub(super) async fn pass(&self, pull: &Pull, caller: &Caller) -> Result<(), WorkerUnreachable> {
        let Some(client) = &self.client else { return Ok(()) };
        let permit = self.calls.take(caller.address).map_err(|_| WorkerUnreachable::Busy)?;
        let address = pull.address.clone();
        let unreachable = |why: &str| WorkerUnreachable::Unreachable {
            address: address.clone(),
            why: plain_words(why, MOST_WORDS),
        };
        let client = ClientOptions { server: address.clone(), ..client.clone() };
        let (incarnation, secret) = (pull.incarnation, caller.secret);
        // A separate task keeps the place even if the caller does not wait for it.
        let call = tokio::spawn(async move {
            let met = tokio::time::timeout(PATIENCE, meet(&client, incarnation, &secret)).await;
            if met.is_err() {
                tokio::spawn(async move {
                    tokio::time::sleep(LOOKED_UP_AFTER).await;
                    drop(permit);
                });
            }
            met
        });
        match call.await {
            Ok(Ok(Ok(true))) => Ok(()),
            Ok(Ok(Ok(false))) => Err(WorkerUnreachable::OtherWorker { address }),
            Ok(Ok(Err(why))) => Err(unreachable(&why)),
            Ok(Err(_)) => Err(unreachable(&format!("no answer within {} s", PATIENCE.as_secs()))),
            Err(error) => Err(unreachable(&error.to_string())),
        }
    }
}

/// Whether the process that registered an address answers there.
async fn meet(client: &ClientOptions, incarnation: Incarnation, secret: &Secret) -> Result<bool, String> {
    let challenge = random::secret().map_err(|error| with_causes(&error))?;
    let connected = connect(client).await.map_err(|error| with_causes(&error))?;
    let request = MeetRequest { protocol_version: PROTOCOL_VERSION, challenge: challenge.bytes().to_vec() };
    let mut worker = ExchangeClient::new(connected).max_decoding_message_size(MOST_ANSWER_BYTES);
    // The caller chose the address: it does not hear what answers there.
    let met = worker.meet(request).await.map_err(|_| NO_WORKER.to_owned())?;
    let proof = met.into_inner().proof;
    let expected = proof_of(secret, incarnation, challenge.bytes());
    Ok(proof.ct_eq(&expected).into())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use exact2048_coordinator::cluster::EpochStage;
    use exact2048_net::tls::TlsFiles;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::wire::worker_of;

    const CALLER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// A gate that calls one worker at once.
    fn gate() -> Gate {
        let tls = TlsFiles::default();
        let client = ClientOptions { server: String::new(), tls, token: None, insecure: false };
        Gate { client: Some(client), calls: PermitPool::new(1) }
    }

    async fn pass(gate: &Gate, address: String) -> Result<(), WorkerUnreachable> {
        let secret = Secret::new([7; 16]);
        let pull = Pull {
            version: PROTOCOL_VERSION,
            worker: worker_of(&secret),
            incarnation: Incarnation(1),
            threads: 1,
            memory_bytes: 1 << 30,
            address,
            leaving: false,
            epoch: None,
            stage: EpochStage::Working,
            first_report: 0,
            reports: Vec::new(),
        };
        gate.pass(&pull, &Caller { address: CALLER, secret }).await
    }

    /// The thread that looks a name up cannot be called back: so the place of the call is kept for as long as that may
    /// take.
    #[tokio::test]
    async fn a_call_that_was_given_up_keeps_its_place() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", silent.local_addr().unwrap());
        let gate = gate();
        let given_up = pass(&gate, address.clone()).await;
        assert!(
            matches!(&given_up, Err(WorkerUnreachable::Unreachable { why, .. }) if why.contains("no answer")),
            "{given_up:?}"
        );
        assert_eq!(pass(&gate, address).await, Err(WorkerUnreachable::Busy));
    }

    /// A caller that hangs up frees no place: else it could have workers called without end.
    #[tokio::test]
    async fn a_caller_that_hangs_up_keeps_its_place() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", silent.local_addr().unwrap());
        let gate = gate();
        let begun = pass(&gate, address.clone());
        assert!(tokio::time::timeout(Duration::from_millis(100), begun).await.is_err());
        assert_eq!(pass(&gate, address).await, Err(WorkerUnreachable::Busy));
    }

    /// A worker that answers at once, even if wrongly, keeps no place.
    #[tokio::test]
    async fn a_call_that_was_answered_gives_its_place_back() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.write_all(b"SSH-2.0-nothing\r\n").await;
                let _ = stream.read(&mut [0; 64]).await;
            }
        });
        let gate = gate();
        for _ in 0..2 {
            let refused = pass(&gate, address.clone()).await;
            assert!(matches!(refused, Err(WorkerUnreachable::Unreachable { .. })), "{refused:?}");
        }
    }
}
