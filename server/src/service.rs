//! RPCs of the service.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use exact2048_net::status;
use exact2048_proto::v1::query_server::Query;
use exact2048_proto::v1::{
    BatchGetValuesRequest, BatchGetValuesResponse, CompareRunsRequest, CompareRunsResponse, GetRunRequest,
    GetRunResponse, GetValueRequest, GetValueResponse, ListLayersRequest, ListLayersResponse,
};
use futures_util::Stream;
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status, Streaming};

use crate::compare::compare;
use crate::runs::Runs;
use crate::state::answer_state;
use crate::turns::Turns;
use crate::{batch, messages};

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Answers requests about the runs that their metadata name. The oracle works outside the threads that serve
/// connections.
#[derive(Clone)]
pub struct QueryService {
    runs: Runs,
    /// One permit per concurrent batch message, so that batches do not starve single requests.
    threads: Arc<Semaphore>,
    turns: Turns,
    idle_time: Duration,
}

impl QueryService {
    /// Creates the service, with `threads` threads for batches and `turns` for slow computations. Streams may be
    /// silent for `idle_time`.
    #[must_use]
    pub fn new(runs: Runs, threads: usize, turns: Turns, idle_time: Duration) -> Self {
        Self { runs, threads: Arc::new(Semaphore::new(threads)), turns, idle_time }
    }
}

#[tonic::async_trait]
impl Query for QueryService {
    async fn get_value(
        &self,
        request: Request<GetValueRequest>,
    ) -> Result<Response<GetValueResponse>, Status> {
        let snapshot = self.runs.asked_for(request.metadata())?.now();
        let GetValueRequest { board, with_values } = request.into_inner();
        let asked = messages::asked_of(board, snapshot.params.game())?;
        let (answer, cost) = answer_state(snapshot.oracle()?, &self.turns, asked.board, with_values).await?;
        Ok(Response::new(GetValueResponse {
            cost: Some(cost),
            ..messages::answer(&answer, &asked.perspective)
        }))
    }

    async fn compare_runs(
        &self,
        request: Request<CompareRunsRequest>,
    ) -> Result<Response<CompareRunsResponse>, Status> {
        let CompareRunsRequest { board, with_values } = request.into_inner();
        let board = board.ok_or_else(|| status::invalid_argument("board", "expected a board, found none"))?;
        Ok(Response::new(compare(&self.runs, &self.turns, &board, with_values).await.into()))
    }

    type BatchGetValuesStream = Answers<BatchGetValuesResponse>;

    async fn batch_get_values(
        &self,
        request: Request<Streaming<BatchGetValuesRequest>>,
    ) -> Result<Response<Self::BatchGetValuesStream>, Status> {
        let oracle = self.runs.asked_for(request.metadata())?.now().oracle()?;
        let (threads, turns) = (Arc::clone(&self.threads), self.turns.clone());
        let answers = batch::answer(oracle, threads, turns, self.idle_time, request.into_inner());
        Ok(Response::new(Box::pin(answers)))
    }

    async fn get_run(&self, request: Request<GetRunRequest>) -> Result<Response<GetRunResponse>, Status> {
        Ok(Response::new(messages::run(&self.runs.asked_for(request.metadata())?.now())))
    }

    type ListLayersStream = Answers<ListLayersResponse>;

    async fn list_layers(
        &self,
        request: Request<ListLayersRequest>,
    ) -> Result<Response<Self::ListLayersStream>, Status> {
        let snapshot = self.runs.asked_for(request.metadata())?.now();
        let ListLayersRequest { first, last } = request.into_inner();
        let last = if last == 0 { u32::MAX } else { last };
        if first > last {
            let what = format!("expected a first layer up to {last}, found {first}");
            return Err(status::invalid_argument("first", what));
        }
        let asked = snapshot.layers.iter().filter(|counts| (first..=last).contains(&counts.layer.0));
        let answers: Vec<_> = asked.map(|counts| Ok(messages::layer(counts))).collect();
        Ok(Response::new(Box::pin(tokio_stream::iter(answers))))
    }
}
