//! Submitting and watching jobs.

use std::time::Duration;

use exact2048_net::client::{ClientOptions, ConnectError, Connected, connect};
use exact2048_net::text::plain_words;
use exact2048_proto::v1;
use exact2048_proto::v1::coordinator_client::CoordinatorClient;
use tonic::Request;

/// Time limit for an answer to a client. A submission may read the journal of a run in a remote store.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum size of an answer in bytes. A list of 10,000 jobs with their failures is long.
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

/// Creates a request that fails if no answer arrives in time.
pub fn within<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(TIMEOUT);
    request
}

/// Maximum number of bytes to show of a text in an answer.
const MOST_WORDS: usize = 4096;

/// A coordinator's answer to show to people.
pub trait Shown {
    /// Makes the texts of the answer safe for a terminal, because other users wrote them; see [`plain_words`].
    fn make_plain(&mut self);
}

fn make_plain<'a>(texts: impl IntoIterator<Item = &'a mut String>) {
    texts.into_iter().for_each(|text| *text = plain_words(text, MOST_WORDS));
}

impl Shown for v1::Job {
    fn make_plain(&mut self) {
        let parameters = self.parameters.iter_mut().map(|parameters| &mut parameters.objective);
        let own =
            [&mut self.name, &mut self.run_url, &mut self.failure, &mut self.fingerprint, &mut self.trouble];
        make_plain(own.into_iter().chain(parameters));
    }
}

impl Shown for v1::Worker {
    fn make_plain(&mut self) {
        make_plain([&mut self.id, &mut self.address, &mut self.job, &mut self.reason]);
    }
}

/// Implements [`Shown`] for answers that contain jobs or workers.
macro_rules! shown {
    ($($answer:ident: $($field:ident),+;)+) => {$(
        impl Shown for v1::$answer {
            fn make_plain(&mut self) {
                $(self.$field.iter_mut().for_each(Shown::make_plain);)+
            }
        }
    )+};
}

shown! {
    SubmitResponse: job;
    GetResponse: job;
    ListResponse: jobs, workers;
    WatchResponse: jobs, workers;
    CancelResponse: job;
    ResumeResponse: job;
    ForgetResponse: job;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_an_answer_controls_a_terminal() {
        let evil = || "\x1b[31mEVIL\x1b[0m\n\x1b]0;pwned\x07".to_owned();
        let job = v1::Job {
            name: evil(),
            run_url: evil(),
            failure: evil(),
            fingerprint: evil(),
            trouble: evil(),
            parameters: Some(v1::RunParameters { objective: evil(), ..v1::RunParameters::default() }),
            ..v1::Job::default()
        };
        let worker =
            v1::Worker { id: evil(), address: evil(), job: evil(), reason: evil(), ..v1::Worker::default() };
        let mut answer = v1::ListResponse { jobs: vec![job], workers: vec![worker] };
        answer.make_plain();
        let found = answer.jobs.iter().flat_map(|job| {
            let objective = &job.parameters.as_ref().unwrap().objective;
            [&job.name, &job.run_url, &job.failure, &job.fingerprint, &job.trouble, objective]
        });
        let found = found.chain(answer.workers.iter().flat_map(|w| [&w.id, &w.address, &w.job, &w.reason]));
        for text in found {
            assert!(text.contains("EVIL") && !text.chars().any(char::is_control), "{text:?}");
        }
    }
}
