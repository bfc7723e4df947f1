//! Messages of log lines that tests wait for or count. A reworded message is changed here alone.

/// A worker joined the cluster.
pub const WORKER_JOINED: &str = "a worker joined";
/// A worker said goodbye.
pub const WORKER_LEFT: &str = "a worker left";
/// The lease of a worker has ended.
pub const WORKER_LOST: &str = "a worker is lost";
/// A worker reported a failure.
pub const WORKER_FAILED: &str = "a worker failed";
/// A worker cannot read a shard, and the coordinator can.
pub const SHARD_UNREADABLE: &str = "a worker cannot read a shard that is whole";
/// A shard is missing or damaged, and is computed again.
pub const SHARD_LOST: &str = "a shard was lost";
/// A worker reported a shard that differs from its file.
pub const SHARD_DIFFERS: &str = "says of its shard what is not so";
/// The coordinator committed a shard.
pub const COMMITTED: &str = "committed";
/// The coordinator cannot commit a shard.
pub const NOT_COMMITTED: &str = "cannot be committed";
/// An epoch began.
pub const EPOCH_BEGAN: &str = "an epoch began";
/// An epoch failed, in the log of the coordinator.
pub const EPOCH_FAILED: &str = "an epoch failed";
/// The epoch failed at this worker, in its log.
pub const EPOCH_FAILED_HERE: &str = "the epoch failed here";
/// A peer sent a wrong secret of an epoch.
pub const WRONG_SECRET: &str = "does not know the secret";
/// The address of a worker answers as another worker.
pub const OTHER_WORKER: &str = "another worker than this one";
/// The coordinator cannot connect to a worker.
pub const WORKER_UNREACHABLE: &str = "cannot reach this worker at";
/// A worker runs.
pub const WORKER_STARTS: &str = "worker starts";
/// A worker has no connection to its coordinator.
pub const NO_COORDINATOR: &str = "no answer from the coordinator";
/// The server waited too long for a client to read an answer.
pub const UNREAD_ANSWER: &str = "did not read an answer";
/// An epoch begins, in the log of a worker.
pub const EPOCH_BEGINS: &str = "epoch begins";
/// An epoch ends, in the log of a worker.
pub const EPOCH_ENDS: &str = "epoch ends";
/// A worker wrote a shard.
pub const SHARD_WRITTEN: &str = "shard written";
/// A worker has a connection to its coordinator again.
pub const COORDINATOR_BACK: &str = "the coordinator answers again";
/// A worker stopped without unfinished work.
pub const STOPPED_CLEANLY: &str = "stopped: what ran was committed or handed back";
/// A coordinator stopped before it had read its queue.
pub const STOPPED_EARLY: &str = "stopped before the queue was read";
/// A server stops.
pub const STOPPING: &str = "stopping: requests under way may end";
/// A server stopped after it had answered all requests.
pub const ALL_ANSWERED: &str = "stopped: every request had its answer";
/// A server stops at once, after a second signal.
pub const SECOND_SIGNAL: &str = "a second signal";
/// A query server has found its run solved.
pub const RUN_SOLVED: &str = "the run is solved now";
/// A query server can read its run again.
pub const RUN_READABLE: &str = "all that was asked for can be read";
/// A query server cannot read a part of its run.
pub const RUN_UNREADABLE: &str = "a part of the run cannot be read";
/// A query server cannot read the values of the starts.
pub const STARTS_UNREADABLE: &str = "cannot read what the starts are worth";
/// A client without TLS called a server with TLS.
pub const CLIENT_WITHOUT_TLS: &str = "the client does not speak TLS";
/// A client with TLS called a server without it.
pub const CLIENT_WITH_TLS: &str = "a client speaks TLS, and this server does not";
/// A client refused the certificate of the server.
pub const CERTIFICATE_REFUSED: &str = "the client refuses this server's certificate";
/// A client has no certificate.
pub const NO_CERTIFICATE: &str = "the client showed no certificate";
/// The server refused the certificate of a client.
pub const CLIENT_CERTIFICATE_REFUSED: &str = "the client's certificate is refused";
/// A call has no token.
pub const NO_TOKEN: &str = "no token";
/// A call has another token.
pub const WRONG_TOKEN: &str = "the token is not the server's";

/// All messages.
pub const ALL: [&str; 38] = [
    WORKER_JOINED,
    WORKER_LEFT,
    WORKER_LOST,
    WORKER_FAILED,
    SHARD_UNREADABLE,
    SHARD_LOST,
    SHARD_DIFFERS,
    COMMITTED,
    NOT_COMMITTED,
    EPOCH_BEGAN,
    EPOCH_FAILED,
    EPOCH_FAILED_HERE,
    WRONG_SECRET,
    OTHER_WORKER,
    WORKER_UNREACHABLE,
    WORKER_STARTS,
    NO_COORDINATOR,
    UNREAD_ANSWER,
    EPOCH_BEGINS,
    EPOCH_ENDS,
    SHARD_WRITTEN,
    COORDINATOR_BACK,
    STOPPED_CLEANLY,
    STOPPED_EARLY,
    STOPPING,
    ALL_ANSWERED,
    SECOND_SIGNAL,
    RUN_SOLVED,
    RUN_READABLE,
    RUN_UNREADABLE,
    STARTS_UNREADABLE,
    CLIENT_WITHOUT_TLS,
    CLIENT_WITH_TLS,
    CERTIFICATE_REFUSED,
    NO_CERTIFICATE,
    CLIENT_CERTIFICATE_REFUSED,
    NO_TOKEN,
    WRONG_TOKEN,
];
