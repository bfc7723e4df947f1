//! Answers to workers.

use std::time::Duration;

use exact2048_coordinator::cluster::{
    EpochId, EpochMember, EpochProgress, PROTOCOL_VERSION, Share, WorkerId,
};
use exact2048_proto::v1;
use exact2048_solution::Segment;

use super::{
    Answer, Assignment, OpeningId, WireError, address_of, check_version, job_of, layers_of, params_of,
    pass_message, pass_of, secret_of, threads_of, write_message, write_of,
};

/// Maximum number of members of an epoch, limited by the rule that assigns lanes.
const MAX_MEMBERS: usize = 1 << 16;

/// Converts an answer to its message.
#[must_use]
pub fn answer_message(answer: &Answer) -> v1::PullResponse {
    v1::PullResponse {
        protocol_version: PROTOCOL_VERSION,
        acknowledged: answer.acknowledged,
        withdrawn: answer.withdrawn.map(|epoch| epoch.0),
        share: answer.share.as_ref().map(share_message),
        progress: answer.progress.map(|progress| v1::EpochProgress {
            epoch: progress.epoch.0,
            finished_layers: progress.finished_layers,
            written_layers: progress.written_layers,
        }),
        write: answer.write.map(write_message),
        needed_memory_bytes: answer.needed_memory,
    }
}

/// Checks and converts an answer. Its message does not tell how long the coordinator has held it.
///
/// # Errors
///
/// Those of [`pull_of`](super::pull_of).
pub fn answer_of(message: v1::PullResponse) -> Result<Answer, WireError> {
    check_version(message.protocol_version)?;
    let assignment = message.share.map(assignment_of).transpose();
    let write = message.write.map(write_of).transpose();
    let progress = message.progress.map(|progress| EpochProgress {
        epoch: EpochId(progress.epoch),
        finished_layers: progress.finished_layers,
        written_layers: progress.written_layers,
    });
    Ok(Answer {
        acknowledged: message.acknowledged,
        withdrawn: message.withdrawn.map(EpochId),
        share: assignment.map_err(|error| error.within("share"))?,
        progress,
        write: write.map_err(|error| error.within("write"))?,
        needed_memory: message.needed_memory_bytes,
        hold: Duration::ZERO,
    })
}

fn share_message(assignment: &Assignment) -> v1::Share {
    let Assignment { share, run_url, opening } = assignment;
    let member = |member: &EpochMember| v1::Member {
        worker: member.worker.0,
        threads: member.threads,
        address: member.address.clone(),
    };
    v1::Share {
        job: share.job.0.clone(),
        parameters: Some((&share.params).into()),
        epoch: share.epoch.0,
        pass: pass_message(share.segment.phase).into(),
        first_layer: share.segment.first.0,
        last_layer: share.segment.last.0,
        members: share.members.iter().map(member).collect(),
        window_layers: share.window_layers,
        run_url: run_url.clone(),
        opening: opening.0,
        secret: share.secret.bytes().to_vec(),
    }
}

fn assignment_of(message: v1::Share) -> Result<Assignment, WireError> {
    let parameters = message
        .parameters
        .as_ref()
        .ok_or_else(|| WireError::field("parameters", "expected parameters, found none"))?;
    let params = params_of(parameters).map_err(|error| error.within("parameters"))?;
    let (first, last) = layers_of(message.first_layer, message.last_layer)?;
    WireError::unless(last <= params.last_layer(), "last_layer", || {
        format!("expected at most {}, found {last}", params.last_layer())
    })?;
    let count = message.members.len();
    WireError::unless((1..=MAX_MEMBERS).contains(&count), "members", || {
        format!("expected 1 to {MAX_MEMBERS} members, found {count}")
    })?;
    let members = message
        .members
        .into_iter()
        .enumerate()
        .map(|(i, member)| member_of(member).map_err(|error| error.within(&format!("members[{i}]"))));
    let share = Share {
        job: job_of("job", &message.job)?,
        params,
        epoch: EpochId(message.epoch),
        segment: Segment { phase: pass_of("pass", message.pass)?, first, last },
        members: members.collect::<Result<_, _>>()?,
        window_layers: message.window_layers,
        secret: secret_of("secret", &message.secret)?,
    };
    Ok(Assignment { share, run_url: message.run_url, opening: OpeningId(message.opening) })
}

fn member_of(message: v1::Member) -> Result<EpochMember, WireError> {
    Ok(EpochMember {
        worker: WorkerId(message.worker),
        threads: threads_of(message.threads)?,
        address: address_of(message.address)?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::damaged::{any_damage, damaged};
    use super::super::params::tests::any_params;
    use super::*;
    use exact2048_coordinator::cluster::{JobId, Secret, WriteShard};
    use exact2048_game::Layer;
    use exact2048_solution::Phase;
    use proptest::prelude::*;

    fn any_assignment() -> impl Strategy<Value = Assignment> {
        let member = (any::<u64>(), 1u32..1000, "http://[a-z]{1,20}:[1-9][0-9]{0,3}").prop_map(
            |(worker, threads, address)| EpochMember { worker: WorkerId(worker), threads, address },
        );
        let members = prop::collection::vec(member, 1..5);
        let layers = (any::<bool>(), any::<prop::sample::Index>(), any::<prop::sample::Index>());
        (any_params(), members, layers, any::<u64>(), any::<u32>(), ".{0,20}", any::<u64>()).prop_map(
            |(params, members, (up, a, b), epoch, window_layers, run_url, opening)| {
                let layers = (params.last_layer().0 - 4) as usize / 2 + 1;
                let (a, b) = (a.index(layers) as u32, b.index(layers) as u32);
                let layer = |position: u32| Layer(4 + 2 * position);
                let phase = if up { Phase::Enumerate } else { Phase::BackUp };
                let segment = Segment { phase, first: layer(a.min(b)), last: layer(a.max(b)) };
                let job = JobId("some-job".to_owned());
                let secret = Secret::new(u128::from(epoch).to_be_bytes());
                let epoch = EpochId(epoch);
                let share = Share { job, params, epoch, segment, members, window_layers, secret };
                Assignment { share, run_url, opening: OpeningId(opening) }
            },
        )
    }

    fn any_answer() -> impl Strategy<Value = Answer> {
        let progress = (any::<u64>(), any::<u32>(), any::<u32>()).prop_map(|(epoch, finished, written)| {
            EpochProgress { epoch: EpochId(epoch), finished_layers: finished, written_layers: written }
        });
        let write = (any::<u64>(), 2u32..500, 0u32..500).prop_map(|(epoch, first, more)| WriteShard {
            epoch: EpochId(epoch),
            first: Layer(2 * first),
            last: Layer(2 * (first + more)),
        });
        let numbers = (any::<u64>(), any::<Option<u64>>(), any::<Option<u64>>());
        let assignment = prop::option::of(any_assignment());
        (numbers, assignment, prop::option::of(progress), prop::option::of(write)).prop_map(
            |((acknowledged, withdrawn, needed_memory), share, progress, write)| Answer {
                acknowledged,
                withdrawn: withdrawn.map(EpochId),
                share,
                progress,
                write,
                needed_memory,
                hold: Duration::ZERO,
            },
        )
    }

    proptest! {
        #[test]
        fn answers_round_trip(answer in any_answer()) {
            prop_assert_eq!(answer_of(answer_message(&answer)).unwrap(), answer);
        }

        #[test]
        fn damaged_answers_are_refused_or_sound(answer in any_answer(), damage in any_damage()) {
            let Some(message) = damaged(&answer_message(&answer), &damage) else { return Ok(()) };
            if let Ok(read) = answer_of(message) {
                prop_assert_eq!(answer_of(answer_message(&read)).unwrap(), read);
            }
        }
    }

    #[test]
    fn answers_with_invalid_fields_are_refused() {
        let params = exact2048_game::Params::small("3x3");
        let good = v1::Share {
            job: "3x3".to_owned(),
            parameters: Some((&params).into()),
            pass: 1,
            first_layer: 4,
            last_layer: 8,
            members: vec![v1::Member { worker: 1, threads: 1, address: "http://127.0.0.1:1".to_owned() }],
            secret: vec![7; 16],
            ..v1::Share::default()
        };
        assert!(assignment_of(good.clone()).is_ok());
        for (wrong, named) in [
            (v1::Share { job: "no/path".to_owned(), ..good.clone() }, "job"),
            (v1::Share { parameters: None, ..good.clone() }, "parameters"),
            (v1::Share { parameters: Some(v1::RunParameters::default()), ..good.clone() }, "parameters.rows"),
            (v1::Share { pass: 0, ..good.clone() }, "pass"),
            (v1::Share { first_layer: 0, ..good.clone() }, "first_layer"),
            (v1::Share { last_layer: 1 << 30, ..good.clone() }, "last_layer"),
            (v1::Share { members: vec![], ..good.clone() }, "members"),
            (v1::Share { secret: vec![7; 15], ..good.clone() }, "secret"),
            (v1::Share { members: vec![v1::Member::default()], ..good.clone() }, "members[0].threads"),
        ] {
            match assignment_of(wrong) {
                Err(WireError::Field { field, .. }) => assert_eq!(field, named),
                other => panic!("{named}: {other:?}"),
            }
        }
        let other = v1::PullResponse { protocol_version: 99, ..v1::PullResponse::default() };
        let expected = WireError::Version { expected: PROTOCOL_VERSION, got: 99 };
        assert_eq!(answer_of(other), Err(expected));
    }
}
