//! Sees that a worker is where it says before it may be given work: where anybody may ask, anybody can make up workers.
//!
//! The coordinator calls the worker under the address that its pull gives, with a challenge that only a process with the
//! worker's secret can answer. This costs one connection for each start of a worker, and for each time that it was lost.
//! Who is let in by a token or a certificate is no stranger, and is not called.

use std::net::IpAddr;
use std::time::Duration;

use exact2048_coordinator::cluster::{PROTOCOL_VERSION, Pull, Secret};
use exact2048_net::client::{ClientOptions, connect};
use exact2048_net::logs::with_causes;
use exact2048_net::share::Pool;
use exact2048_net::text::plain_words;
use exact2048_proto::v1::MeetRequest;
use exact2048_proto::v1::exchange_client::ExchangeClient;
use subtle::ConstantTimeEq;

use crate::random;
use crate::wire::proof_of;

/// Workers that are called at once. One address gets three quarters at most, so that who makes up workers there keeps out
/// nobody elsewhere.
const AT_ONCE: usize = 512;

/// For how long a worker may say nothing.
const PATIENCE: Duration = Duration::from_secs(3);

/// Bytes of what a worker says that are passed on.
const MOST_WORDS: usize = 512;

/// Who pulls.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Where the call comes from.
    pub address: IpAddr,
    /// What it shows, from which the worker's id follows.
    pub secret: Secret,
}

/// Why a worker is not let in.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unmet {
    /// Nobody answers under its address, or not as a worker does.
    #[error(
        "the coordinator cannot reach this worker at {address}: {why}. Start it with --advertise HOST:PORT where that is \
         the wrong address"
    )]
    Unreachable {
        /// What its pull says.
        address: String,
        /// What happened.
        why: String,
    },
    /// Somebody else is there.
    #[error("another worker than this one, or another process of it, is at {address}")]
    SomebodyElse {
        /// What its pull says.
        address: String,
    },
    /// As many workers are being called as may be, in all or of its address.
    #[error(
        "the coordinator is calling {AT_ONCE} new workers already, or many of this address: it is this one's turn later"
    )]
    Busy,
}

/// Lets workers in.
#[derive(Debug)]
pub struct Gate {
    /// What is shown to workers; `None` where there are no strangers.
    client: Option<ClientOptions>,
    calls: Pool,
}

impl Gate {
    /// Calls workers with these options; the server's address in them does not matter.
    #[must_use]
    pub fn new(client: ClientOptions) -> Self {
        Self { client: Some(client), calls: Pool::new(AT_ONCE) }
    }

    /// Lets all in.
    #[must_use]
    pub fn open() -> Self {
        Self { client: None, calls: Pool::new(0) }
    }

    /// Waits until the process that a pull is from has shown that it is at its address.
    pub(super) async fn pass(&self, pull: &Pull, caller: &Caller) -> Result<(), Unmet> {
        let Some(client) = &self.client else { return Ok(()) };
        let _permit = self.calls.take(caller.address).map_err(|_| Unmet::Busy)?;
        let address = pull.address.clone();
        let client = ClientOptions { server: address.clone(), ..client.clone() };
        let unreachable =
            |why: &str| Unmet::Unreachable { address: address.clone(), why: plain_words(why, MOST_WORDS) };
        let proof = match tokio::time::timeout(PATIENCE, meet(&client, pull, caller)).await {
            Ok(Ok(proof)) => proof,
            Ok(Err(why)) => return Err(unreachable(&why)),
            Err(_) => return Err(unreachable(&format!("no answer within {} s", PATIENCE.as_secs()))),
        };
        if proof { Ok(()) } else { Err(Unmet::SomebodyElse { address }) }
    }
}

/// Whether it is the worker that answers.
async fn meet(client: &ClientOptions, pull: &Pull, caller: &Caller) -> Result<bool, String> {
    let challenge = random::secret().map_err(|error| format!("{error:#}"))?;
    let connected = connect(client).await.map_err(|error| with_causes(&error))?;
    let request = MeetRequest { protocol_version: PROTOCOL_VERSION, challenge: challenge.bytes().to_vec() };
    let met = ExchangeClient::new(connected).meet(request).await;
    let proof = met.map_err(|status| status.message().to_owned())?.into_inner().proof;
    let expected = proof_of(&caller.secret, pull.incarnation, challenge.bytes());
    Ok(proof.ct_eq(&expected).into())
}
