//! Tests of copies from one worker to another, over a connection.

use std::path::Path;

use exact2048_coordinator::cluster::{EpochId, Secret};
use exact2048_net::tls::TlsFiles;
use exact2048_proto::v1::exchange_server::{Exchange, ExchangeServer};
use exact2048_proto::v1::{FetchResponse, PushRequest, PushResponse};
use exact2048_storage::{RunId, StoreSettings};
use tonic::transport::{Server, server::TcpIncoming};
use tonic::{Request, Response, Streaming};

use super::super::copies::CopyPieces;
use super::super::epoch::Present;
use super::super::exchange::ExchangeService;
use super::*;

const ME: WorkerId = WorkerId(1);
const MEMBERSHIP: Membership = Membership { epoch: EpochId(9), secret: Secret::new([3; 16]) };
const RUN: RunId = RunId([0xab; 16]);
const CHECKSUM: u64 = 0x0123_4567_89ab_cdef;
const WANTED: WantedCopy = WantedCopy { run: RUN, header_checksum: CHECKSUM, bytes: 600_000, writer: None };

/// Starts a worker's service.
fn serve(worker: u64, exchange: impl Exchange) -> EpochMember {
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = format!("http://{}", incoming.local_addr().unwrap());
    let service = ExchangeServer::new(exchange);
    tokio::spawn(Server::builder().add_service(service).serve_with_incoming(incoming));
    member(worker, &address)
}

fn member(worker: u64, address: &str) -> EpochMember {
    EpochMember { worker: WorkerId(worker), threads: 1, address: address.to_owned() }
}

/// Starts the service of a worker with this cache.
fn serve_cache(worker: u64, cache: &Path) -> EpochMember {
    let cache = StoreSettings { cache_folder: Some(cache.to_path_buf()), ..StoreSettings::default() };
    let present = Present::default();
    present.joined.send_replace(Some(MEMBERSHIP));
    serve(worker, ExchangeService::new(Arc::new(present), 0, cache))
}

/// Puts the copy of a shard into a cache.
fn add_copy(cache: &Path, contents: &[u8]) {
    std::fs::write(cache.join(format!("{RUN}-{CHECKSUM:016x}.shard")), contents).unwrap();
}

/// Creates a worker's list of peers with these members.
fn asking(members: &[EpochMember]) -> Arc<PeerCopies> {
    let client =
        ClientOptions { server: String::new(), tls: TlsFiles::default(), token: None, insecure: false };
    let asking = PeerCopies::new(ME, client);
    let asking = PeerCopies { patience: Duration::from_millis(500), ..asking };
    asking.join(members, MEMBERSHIP);
    Arc::new(asking)
}

/// Reads the copies of all peers to their ends.
async fn copies(asking: &Arc<PeerCopies>) -> Vec<io::Result<Vec<u8>>> {
    let asking = Arc::clone(asking);
    let read = move || {
        let read = |mut copy: Box<dyn Read>| {
            let mut bytes = Vec::new();
            copy.read_to_end(&mut bytes).map(|_| bytes)
        };
        asking.copies(&WANTED).map(read).collect()
    };
    tokio::task::spawn_blocking(read).await.unwrap()
}

#[tokio::test]
async fn a_copy_arrives_whole() {
    let (with, without) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let contents: Vec<u8> = (0..600_000).map(|i| (i % 251) as u8).collect();
    add_copy(with.path(), &contents);
    let asking = asking(&[serve_cache(2, with.path()), serve_cache(3, without.path())]);
    // A peer without a copy is asked again, because it may have a copy by then.
    for _ in 0..2 {
        let found = copies(&asking).await;
        assert_eq!(found.len(), 2);
        let (whole, none): (Vec<_>, Vec<_>) = found.into_iter().partition(Result::is_ok);
        assert!(whole.into_iter().map(Result::unwrap).eq([contents.clone()]));
        assert!(none[0].as_ref().unwrap_err().to_string().contains("no copy of shard 0123456789abcdef"));
    }
    asking.leave();
    assert!(copies(&asking).await.is_empty());
}

/// A request for the shard of these tests.
fn sound_request() -> FetchRequest {
    FetchRequest {
        protocol_version: PROTOCOL_VERSION,
        run: Bytes::copy_from_slice(&RUN.0),
        header_checksum: CHECKSUM,
        epoch: MEMBERSHIP.epoch.0,
        secret: Bytes::copy_from_slice(MEMBERSHIP.secret.bytes()),
    }
}

#[tokio::test]
async fn invalid_requests_are_refused() {
    let cache = tempfile::tempdir().unwrap();
    let member = serve_cache(2, cache.path());
    let mut client = ExchangeClient::connect(member.address).await.unwrap();
    let sound = sound_request();
    let unknown = client.fetch(sound.clone()).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound, "{unknown}");
    for run in [&b""[..], &[0xab; 15], &[0xab; 17], b"../../etc/passwd\0"] {
        let run = Bytes::copy_from_slice(run);
        let refused = client.fetch(FetchRequest { run, ..sound.clone() }).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert_eq!(exact2048_net::status::field_of(&refused).as_deref(), Some("run"));
    }
    let other = FetchRequest { protocol_version: PROTOCOL_VERSION + 1, ..sound };
    let refused = client.fetch(other).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
}

#[tokio::test]
async fn a_worker_sends_a_limited_number_of_copies_at_once() {
    let cache = tempfile::tempdir().unwrap();
    // The copy is so long that its transfer cannot finish during the test. As a sparse file, it takes no space on the
    // disk.
    add_copy(cache.path(), &[]);
    let file =
        std::fs::File::options().write(true).open(cache.path().join(format!("{RUN}-{CHECKSUM:016x}.shard")));
    file.unwrap().set_len(1 << 30).unwrap();
    let member = serve_cache(2, cache.path());
    let mut client = ExchangeClient::connect(member.address).await.unwrap();
    let request = sound_request();
    let mut given = Vec::new();
    let refused = loop {
        match client.fetch(request.clone()).await {
            Ok(copy) => given.push(copy),
            Err(status) => break status,
        }
    };
    assert_eq!((refused.code(), given.len()), (Code::ResourceExhausted, 16), "{refused}");
    // Each transfer that ends early allows another one.
    drop(given);
    let begun = std::time::Instant::now();
    while client.fetch(request.clone()).await.is_err() {
        assert!(begun.elapsed() < Duration::from_secs(10), "no transfer became possible");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A worker whose answers a test defines.
struct Fake(Answer);

/// Refuses a request, or sends pieces as its answer.
type Answer = fn(mpsc::Sender<Piece>) -> Result<(), Status>;

type Piece = Result<FetchResponse, Status>;

#[tonic::async_trait]
impl Exchange for Fake {
    type FetchStream = CopyPieces;

    async fn fetch(&self, _: Request<FetchRequest>) -> Result<Response<CopyPieces>, Status> {
        let (send, receive) = mpsc::channel(4);
        (self.0)(send)?;
        Ok(Response::new(CopyPieces::new(receive)))
    }

    async fn push(&self, _: Request<Streaming<PushRequest>>) -> Result<Response<PushResponse>, Status> {
        Err(Status::unimplemented("not needed here"))
    }
}

fn piece(data: &'static [u8]) -> Piece {
    Ok(FetchResponse { data: Bytes::from_static(data) })
}

#[tokio::test]
async fn a_failed_peer_is_not_asked_again_in_the_epoch() {
    let answers: [(&str, Answer); 4] = [
        ("is older", |_| Err(Status::unimplemented("no such call"))),
        ("breaks off", |pieces| {
            pieces.try_send(piece(b"the first bytes")).unwrap();
            pieces.try_send(Err(Status::unavailable("gone"))).unwrap();
            Ok(())
        }),
        ("falls silent", |pieces| {
            pieces.try_send(piece(b"the first bytes")).unwrap();
            tokio::spawn(async move {
                std::future::pending::<()>().await;
                drop(pieces);
            });
            Ok(())
        }),
        ("sends nothing for ever", |pieces| {
            tokio::spawn(async move { while pieces.send(piece(b"")).await.is_ok() {} });
            Ok(())
        }),
    ];
    for (what, answer) in answers {
        let members = [serve(2, Fake(answer))];
        let asking = asking(&members);
        assert!(matches!(copies(&asking).await[..], [Err(_)]), "{what}");
        assert!(copies(&asking).await.is_empty(), "{what}: the peer was asked again");
        asking.join(&members, MEMBERSHIP);
        assert_eq!(copies(&asking).await.len(), 1, "{what}: a new epoch is a new attempt");
    }
    let unreachable = asking(&[member(2, "http://127.0.0.1:9")]);
    assert!(matches!(copies(&unreachable).await[..], [Err(_)]));
    assert!(copies(&unreachable).await.is_empty());
}

#[tokio::test]
async fn the_writer_is_asked_first_and_few_others() {
    let members: Vec<EpochMember> = (0..100).map(|worker| member(worker, "http://127.0.0.1:9")).collect();
    let asking = asking(&members);
    let asked = |header_checksum, writer| -> Vec<u64> {
        let wanted = WantedCopy { header_checksum, writer, ..WANTED };
        asking.candidates(&wanted).iter().map(|peer| peer.member.worker.0).collect()
    };
    let mut others = std::collections::HashSet::new();
    for shard in 0..100 {
        let of_present = asked(shard, Some(42));
        assert_eq!((of_present.len(), of_present[0]), (MOST_ASKED, 42));
        for writer in [None, Some(ME.0), Some(1_000)] {
            let of_others = asked(shard, writer);
            assert_eq!(of_others.len(), MOST_ASKED);
            assert!(!of_others.contains(&ME.0));
            others.extend(of_others);
        }
    }
    assert!(others.len() > 50, "different shards lead to the same few peers: {others:?}");
}
