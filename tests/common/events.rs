//! Messages of log lines that tests wait for or count. A new wording of a message changes only this file.

/// A worker joined the cluster.
pub const WORKER_JOINED: &str = "worker joined";
/// A worker said goodbye.
pub const WORKER_LEFT: &str = "worker left";
/// The lease of a worker has ended.
pub const WORKER_LOST: &str = "worker lost";
/// A worker reported a failure.
pub const WORKER_FAILED: &str = "worker failed";
/// A worker cannot read a shard, but the coordinator can.
pub const SHARD_UNREADABLE: &str = "worker cannot read an intact shard";
/// A shard is missing or damaged, and is computed again.
pub const SHARD_LOST: &str = "shard lost";
/// A worker reported a shard that differs from its file.
pub const SHARD_DIFFERS: &str = "reported a shard that does not match its file";
/// The coordinator committed a shard.
pub const COMMITTED: &str = "committed";
/// The coordinator cannot commit a shard.
pub const NOT_COMMITTED: &str = "cannot commit a range";
/// An epoch began.
pub const EPOCH_BEGAN: &str = "epoch began";
/// An epoch failed, in the log of the coordinator.
pub const EPOCH_FAILED: &str = "epoch failed, uncommitted work is repeated";
/// The epoch failed at this worker, in its log.
pub const EPOCH_FAILED_HERE: &str = "epoch failed on this worker";
/// A peer sent a wrong secret of an epoch.
pub const WRONG_SECRET: &str = "wrong secret of the epoch";
/// A worker runs.
pub const WORKER_STARTS: &str = "worker starts";
/// A worker has no connection to its coordinator.
pub const NO_COORDINATOR: &str = "no answer from the coordinator";
/// An epoch begins, in the log of a worker.
pub const EPOCH_BEGINS: &str = "epoch begins";
/// An epoch ends, in the log of a worker.
pub const EPOCH_ENDS: &str = "epoch ends";
/// A worker wrote a shard.
pub const SHARD_WRITTEN: &str = "shard written";
/// A worker has a connection to its coordinator again.
pub const COORDINATOR_BACK: &str = "coordinator answers again";
/// A worker stopped without unfinished work.
pub const STOPPED_CLEANLY: &str = "stopped: running work was committed or handed back";
/// A coordinator stopped before it had read its queue.
pub const STOPPED_EARLY: &str = "stopped before the queue was read";
/// A server stops.
pub const STOPPING: &str = "stopping";
/// A server stopped after it had answered all requests.
pub const ALL_ANSWERED: &str = "stopped: all requests were answered";
/// A server stops at once, after a second signal.
pub const SECOND_SIGNAL: &str = "second signal";
/// A query server has found its run solved, or can read it again.
pub const RUN_READABLE: &str = "run is solved and readable";
/// A query server cannot read a part of its run.
pub const RUN_UNREADABLE: &str = "part of the run is unreadable";
/// A query server cannot read the values of the starts.
pub const STARTS_UNREADABLE: &str = "cannot read the values of the starts";
/// A client without TLS called a server with TLS.
pub const CLIENT_WITHOUT_TLS: &str = "the client does not speak TLS";
/// A client with TLS called a server without TLS.
pub const CLIENT_WITH_TLS: &str = "client speaks TLS and this server does not";
/// A client refused the certificate of the server.
pub const CERTIFICATE_REFUSED: &str = "the client refuses this server's certificate";
/// A client has no certificate.
pub const NO_CERTIFICATE: &str = "expected a client certificate, found none";
/// The server refused the certificate of a client.
pub const CLIENT_CERTIFICATE_REFUSED: &str = "the client's certificate is refused";
/// A call has no token.
pub const NO_TOKEN: &str = "no token";
/// A call has a wrong token.
pub const WRONG_TOKEN: &str = "the token is wrong";

/// All messages.
pub const ALL: [&str; 34] = [
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
    WORKER_STARTS,
    NO_COORDINATOR,
    EPOCH_BEGINS,
    EPOCH_ENDS,
    SHARD_WRITTEN,
    COORDINATOR_BACK,
    STOPPED_CLEANLY,
    STOPPED_EARLY,
    STOPPING,
    ALL_ANSWERED,
    SECOND_SIGNAL,
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
