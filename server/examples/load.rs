//! Load test: sends requests as fast as the server answers, and prints throughput and latency.
//! `scripts/bench-serve.sh` runs it.
//!
//! usage: `load URL [BOARDS [STREAMS]]`
//!
//! The boards are from random games, and each board occurs once. All boards must be reachable, so the run's
//! objective must be the score. The server's cache is cold in the first round of each kind of request, and warm in
//! later rounds.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use exact2048_game::board::{Board, BoardSize};
use exact2048_game::rules::{self, Move};
use exact2048_net::client::{ClientOptions, Connected, connect};
use exact2048_net::tls::TlsFiles;
use exact2048_proto::v1::board::Spelling;
use exact2048_proto::v1::query_client::QueryClient;
use exact2048_proto::v1::{self, BatchGetValuesRequest, BoardStatus, GetRunRequest, GetValueRequest};

/// Number of boards per message.
const BOARDS_A_MESSAGE: usize = 8192;

/// Number of single requests per round.
const SINGLE: usize = 5000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    exact2048_net::install_crypto();
    let args: Vec<String> = std::env::args().collect();
    let url = args.get(1).context("usage: load URL [BOARDS [STREAMS]]")?;
    let boards: usize = args.get(2).map_or(Ok(1_000_000), |n| n.parse())?;
    let streams: usize = args.get(3).map_or(Ok(2), |n| n.parse())?;
    let options =
        ClientOptions { server: url.clone(), tls: TlsFiles::default(), token: None, insecure: false };
    let mut client = QueryClient::new(connect(&options).await?).max_decoding_message_size(64 << 20);
    let run = client.get_run(GetRunRequest {}).await?.into_inner();
    let parameters = run.parameters.context("the server's answer lacks the run's parameters")?;
    let size = parameters.size()?;
    let boards = Arc::new(played(size, boards));
    println!("{} boards of {size}, {streams} streams of {BOARDS_A_MESSAGE} boards a message", boards.len());
    for round in ["cold", "warm", "warm", "warm"] {
        println!("  BatchGetValues, {round}: {:>10.0} states/s", batch(&client, &boards, streams).await?);
    }
    // Requests in sequence over one connection, as a player sends them.
    for round in 1..=3 {
        let mut times = single(&mut client, &boards).await?;
        times.sort_unstable();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
        println!(
            "  GetValue, round {round}: p50 {:.3} ms, p90 {:.3} ms, p99 {:.3} ms, most {:.3} ms",
            at(0.5),
            at(0.9),
            at(0.99),
            at(1.0)
        );
    }
    Ok(())
}

/// Returns `count` states of random games, or fewer if a thousand further games add none.
fn played(size: BoardSize, count: usize) -> Vec<u64> {
    let mut seed = 2048u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(seed) * below as u128) >> 64) as usize
    };
    let starts: Vec<Board> = rules::starts(size).map(|(board, _)| board).collect();
    let (mut found, mut boards, mut without) = (HashSet::new(), Vec::new(), 0);
    while boards.len() < count && without < 1000 {
        let before = boards.len();
        let mut board = starts[random(starts.len())];
        loop {
            if found.insert(board) && boards.len() < count {
                boards.push(board.0);
            }
            let moves: Vec<Board> =
                Move::ALL.iter().filter_map(|&m| rules::make_move(board, m, size)).map(|(b, _)| b).collect();
            if moves.is_empty() {
                break;
            }
            let after = moves[random(moves.len())];
            let empty: Vec<usize> = rules::empty_cells(after, size).collect();
            let tile = if random(10) == 0 { 2 } else { 1 };
            board = after.with(empty[random(empty.len())], tile);
        }
        without = if boards.len() > before { 0 } else { without + 1 };
    }
    boards
}

/// Returns the number of states answered per second. Together, all streams request every board once.
async fn batch(client: &QueryClient<Connected>, boards: &Arc<Vec<u64>>, streams: usize) -> Result<f64> {
    let begun = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for stream in 0..streams {
        let (mut client, boards) = (client.clone(), Arc::clone(boards));
        tasks.spawn(async move {
            let messages: Vec<BatchGetValuesRequest> = boards
                .chunks(BOARDS_A_MESSAGE)
                .skip(stream)
                .step_by(streams)
                .map(|boards| BatchGetValuesRequest {
                    boards: boards.to_vec(),
                    with_moves: false,
                    with_values: false,
                })
                .collect();
            let wanted: usize = messages.iter().map(|message| message.boards.len()).sum();
            let mut answers = client.batch_get_values(tokio_stream::iter(messages)).await?.into_inner();
            let mut answered = 0;
            while let Some(answer) = answers.message().await? {
                let ok = i32::from(BoardStatus::Ok);
                ensure!(answer.statuses.iter().all(|&status| status == ok), "a board is not reachable");
                answered += answer.values.len();
            }
            ensure!(answered == wanted, "{answered} answers to {wanted} boards");
            Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(boards.len() as f64 / begun.elapsed().as_secs_f64())
}

async fn single(client: &mut QueryClient<Connected>, boards: &[u64]) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for &packed in boards.iter().step_by((boards.len() / SINGLE).max(1)).take(SINGLE) {
        let board = Some(v1::Board { spelling: Some(Spelling::Packed(packed)) });
        let begun = Instant::now();
        client.get_value(GetValueRequest { board, with_values: false }).await?;
        times.push(begun.elapsed());
    }
    Ok(times)
}
