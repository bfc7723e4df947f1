//! Submitting and watching jobs.

use std::time::Duration;

use exact2048_net::client::{ClientOptions, ConnectError, Connected, connect};
use exact2048_proto::v1::coordinator_client::CoordinatorClient;
use tonic::Request;

/// Time for an answer to a client. To submit a job may mean to read the journal of a run in a distant store.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes of an answer: a list of 10,000 jobs with their failures may have some.
const MESSAGE_BYTES: usize = 64 << 20;

/// A connection to a coordinator.
pub type Client = CoordinatorClient<Connected>;

/// Connects to a coordinator.
///
/// # Errors
///
/// [`ConnectError`].
pub async fn open(options: &ClientOptions) -> Result<Client, ConnectError> {
    Ok(CoordinatorClient::new(connect(options).await?).max_decoding_message_size(MESSAGE_BYTES))
}

/// A request that ends in time.
pub fn within<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(TIMEOUT);
    request
}
