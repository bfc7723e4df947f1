//! Streams of requests, answered in order.

use std::time::Duration;

use futures_util::stream::{FuturesOrdered, StreamExt};
use futures_util::{Stream, stream};
use tonic::Status;

/// Maximum number of concurrent requests of a stream. A request counts until its answer is sent.
const UNDER_WAY: usize = 4;

/// Answers requests with the results of `work`. The stream ends after the first failure. It also ends if no
/// request is in progress and none arrives for `idle_time`. A client that waits for its answer is not idle.
pub fn answers<Request, Answer, Work>(
    requests: impl Stream<Item = Result<Request, Status>> + Send + 'static,
    idle_time: Duration,
    work: impl Fn(Request) -> Work + Send + Sync + 'static,
) -> impl Stream<Item = Result<Answer, Status>> + Send + 'static
where
    Request: Send + 'static,
    Answer: Send + 'static,
    Work: Future<Output = Result<Answer, Status>> + Send + 'static,
{
    let begun = Underway { requests: Some(Box::pin(requests)), work: FuturesOrdered::new(), failure: None };
    stream::try_unfold((begun, work), move |(mut underway, work)| async move {
        let answer = underway.next(idle_time, &work).await?;
        Ok(answer.map(|answer| (answer, (underway, work))))
    })
}

/// A stream in progress.
struct Underway<Requests, Work: Future> {
    /// Further requests; `None` after the last one.
    requests: Option<Requests>,
    work: FuturesOrdered<Work>,
    /// Failure that ended the requests. It is reported after the answers to earlier requests.
    failure: Option<Status>,
}

impl<Requests, Work: Future> Underway<Requests, Work> {
    /// Returns the next answer; `None` after the last one.
    async fn next<Request, Answer>(
        &mut self,
        idle_time: Duration,
        work: &impl Fn(Request) -> Work,
    ) -> Result<Option<Answer>, Status>
    where
        Requests: Stream<Item = Result<Request, Status>> + Unpin,
        Work: Future<Output = Result<Answer, Status>>,
    {
        loop {
            let takes_more = self.work.len() < UNDER_WAY;
            let is_idle = self.work.is_empty();
            let Some(requests) = self.requests.as_mut() else {
                return match self.work.next().await {
                    Some(answer) => answer.map(Some),
                    None => self.failure.take().map_or(Ok(None), Err),
                };
            };
            tokio::select! {
                Some(answer) = self.work.next() => return answer.map(Some),
                request = requests.next(), if takes_more => match request {
                    Some(Ok(request)) => self.work.push_back(work(request)),
                    other => {
                        self.requests = None;
                        self.failure = other.and_then(Result::err);
                    }
                },
                () = tokio::time::sleep(idle_time), if is_idle => {
                    let seconds = idle_time.as_secs_f64();
                    return Err(Status::deadline_exceeded(format!("no message arrived for {seconds} s")));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;
    use tokio_stream::wrappers::ReceiverStream;
    use tonic::Code;

    use super::*;

    const IDLE: Duration = Duration::from_secs(60);

    /// Sleeps for the requested number of seconds and answers with this number. The number 13 fails.
    async fn sleep(seconds: u64) -> Result<u64, Status> {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        if seconds == 13 { Err(Status::internal("13")) } else { Ok(seconds) }
    }

    #[tokio::test(start_paused = true)]
    async fn answers_arrive_in_the_order_of_their_requests() {
        let requests = stream::iter([50, 3, 0, 7, 2, 9, 1].map(Ok));
        let begun = tokio::time::Instant::now();
        let answers: Vec<_> = answers(requests, IDLE, sleep).map(Result::unwrap).collect().await;
        assert_eq!(answers, [50, 3, 0, 7, 2, 9, 1]);
        // The first request takes longest, and the others run at the same time.
        assert!(begun.elapsed() < Duration::from_secs(62), "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_waits_is_not_idle() {
        let (sender, receiver) = mpsc::channel(1);
        let mut answers = Box::pin(answers(ReceiverStream::new(receiver), IDLE, sleep));
        for _ in 0..3 {
            sender.send(Ok(200)).await.unwrap();
            assert_eq!(answers.next().await.unwrap().unwrap(), 200);
        }
        // From here on the client is silent.
        assert_eq!(answers.next().await.unwrap().unwrap_err().code(), Code::DeadlineExceeded);
        assert!(answers.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_follows_a_failure() {
        let of_work = stream::iter([1, 13, 2].map(Ok));
        let of_client = stream::iter([Ok(1), Err(Status::internal("gone")), Ok(2)]);
        let of_work: Vec<_> = answers(of_work, IDLE, sleep).collect().await;
        let of_client: Vec<_> = answers(of_client, IDLE, sleep).collect().await;
        for answers in [of_work, of_client] {
            assert_eq!(answers.last().unwrap().as_ref().unwrap_err().code(), Code::Internal, "{answers:?}");
            assert!(
                answers[..answers.len() - 1].iter().all(|answer| *answer.as_ref().unwrap() == 1),
                "{answers:?}"
            );
        }
    }
}
