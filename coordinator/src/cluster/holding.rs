//! Decides without a clock how long a pull waits for news.
//!
//! A pull without news is held, so workers learn of new work at once and need not ask all the time. Urgent news is
//! answered at once: new work, ended work, and a shard to write. Other news is gathered for some milliseconds: the
//! progress of other members, and acknowledgements of reports. Layers of small boards are finished faster than single
//! answers could report them.

use std::time::Duration;

use super::ids::{EpochId, Incarnation};
use super::messages::{EpochProgress, PullReply, WriteShard};

/// Time for which news that is not urgent is gathered.
const GATHER: Duration = Duration::from_millis(10);

/// Content of an answer that the next answer is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LastReply {
    incarnation: Incarnation,
    share: Option<EpochId>,
    withdrawn: Option<EpochId>,
    write: Option<WriteShard>,
    progress: Option<EpochProgress>,
}

impl LastReply {
    /// Takes the content of a reply to a worker's process.
    #[must_use]
    pub fn of(incarnation: Incarnation, reply: &PullReply) -> Self {
        Self {
            incarnation,
            share: reply.share.as_ref().map(|share| share.epoch),
            withdrawn: reply.withdrawn,
            write: reply.write,
            progress: reply.progress,
        }
    }
}

/// Decision about a pull for now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PullDecision {
    /// The pull is answered.
    Answer,
    /// The answer has news, and waits this long for more news.
    Gather(Duration),
    /// The answer has no news, and waits this long for news.
    Wait(Duration),
}

/// Decides whether a pull is answered now.
///
/// `before` is the last answer to the worker, and `now` is the next one. `has_reports` states whether the pull brings
/// reports to acknowledge. `waited` is the time that the pull has waited, and `most` is the limit of that time.
#[must_use]
pub(super) fn hold(
    before: Option<&LastReply>,
    now: &LastReply,
    has_reports: bool,
    waited: Duration,
    most: Duration,
) -> PullDecision {
    let Some(before) = before.filter(|before| before.incarnation == now.incarnation) else {
        return PullDecision::Answer;
    };
    let is_urgent = (now.share.is_some() && now.share != before.share)
        || (now.withdrawn.is_some() && now.withdrawn != before.withdrawn)
        || (now.write.is_some() && now.write != before.write);
    let is_news = has_reports || now.progress != before.progress;
    let until = if is_news { GATHER.min(most) } else { most };
    match until.saturating_sub(waited) {
        left if is_urgent || left.is_zero() => PullDecision::Answer,
        left if is_news => PullDecision::Gather(left),
        left => PullDecision::Wait(left),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::Layer;

    const MOST: Duration = Duration::from_millis(100);

    const EPOCH: EpochId = EpochId(1);

    fn last_reply() -> LastReply {
        LastReply { incarnation: Incarnation(1), share: None, withdrawn: None, write: None, progress: None }
    }

    fn held(before: LastReply, now: LastReply) -> PullDecision {
        hold(Some(&before), &now, false, Duration::ZERO, MOST)
    }

    #[test]
    fn urgent_news_is_sent_at_once_and_only_once() {
        let write = WriteShard { epoch: EPOCH, first: Layer(4), last: Layer(8) };
        for urgent in [
            LastReply { share: Some(EPOCH), ..last_reply() },
            LastReply { withdrawn: Some(EPOCH), ..last_reply() },
            LastReply { write: Some(write), ..last_reply() },
        ] {
            assert_eq!(held(last_reply(), urgent), PullDecision::Answer);
            // The worker has received the news, and has not acted on it yet.
            assert_eq!(held(urgent, urgent), PullDecision::Wait(MOST));
            // The worker has acted on the news.
            assert_eq!(held(urgent, last_reply()), PullDecision::Wait(MOST));
        }
        assert_eq!(hold(None, &last_reply(), false, Duration::ZERO, MOST), PullDecision::Answer);
        assert_eq!(
            held(last_reply(), LastReply { incarnation: Incarnation(2), ..last_reply() }),
            PullDecision::Answer
        );
    }

    #[test]
    fn other_news_is_gathered() {
        let progress = Some(EpochProgress { epoch: EPOCH, finished_layers: 3, written_layers: 0 });
        assert_eq!(held(last_reply(), LastReply { progress, ..last_reply() }), PullDecision::Gather(GATHER));
        let waited =
            |has_reports, waited| hold(Some(&last_reply()), &last_reply(), has_reports, waited, MOST);
        assert_eq!(waited(true, Duration::ZERO), PullDecision::Gather(GATHER));
        assert_eq!(waited(true, GATHER), PullDecision::Answer);
        assert_eq!(waited(false, GATHER), PullDecision::Wait(MOST - GATHER));
        assert_eq!(waited(false, 2 * MOST), PullDecision::Answer);
    }
}
