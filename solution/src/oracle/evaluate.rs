//! Answers about states: the values of their moves.

use std::sync::Arc;

use exact2048_game::board::Board;
use exact2048_game::packed::LegalMoves;
use exact2048_game::rules::{self, Move};
use exact2048_game::value::Stored;
use exact2048_game::{Layer, PerSpawn, Precision, SpawnKind, Spawner};
use exact2048_storage::ItemKey;

use super::cones::Known;
use super::decoded::Part;
use super::{Entry, Evaluation, MoveOutcome, MoveValue, Oracle, QueryError, QuestionLimits};
use crate::read_error::ReadError;

/// A question about the moves of a state.
struct Question {
    board: Board,
    key: ItemKey,
    /// The part of the state, and its rank in the part; `None` if the reach of the layer is not stored.
    found: Option<(Arc<Part>, usize)>,
    moves: LegalMoves,
}

impl Oracle {
    /// Answers the questions for some entries.
    pub(super) fn evaluate_some(
        &self,
        boards: &[Board],
        entries: &[(Entry, usize)],
        question: &QuestionLimits<'_>,
        answers: &mut [Result<Evaluation, QueryError>],
    ) -> Result<(), QueryError> {
        let (mut states, mut questions) = (Vec::new(), Vec::with_capacity(entries.len()));
        for (entry, i) in entries {
            question.check()?;
            questions.extend(self.question(boards[*i], entry, &mut states)?.map(|question| (question, *i)));
        }
        let known = self.cones.settle(&self.stored, states, question)?;
        for (question, i) in questions {
            answers[i] = Ok(self.answer(question, &known)?);
        }
        Ok(())
    }

    /// The question about a board; `None` if the board is not reachable. Adds the states after its moves and spawns to
    /// `states`.
    fn question(
        &self,
        board: Board,
        entry: &Entry,
        states: &mut Vec<(Layer, Board)>,
    ) -> Result<Option<Question>, QueryError> {
        let found = match self.stored.part(entry)? {
            Some(part) => match part.rank(entry.number) {
                Some(rank) => Some((part, rank)),
                None => return Ok(None),
            },
            None if self.stored.has_reach(entry.layer()) => return Ok(None),
            None => None,
        };
        let moves = self.rules().moves(board);
        for (_, after, _) in moves.iter().filter(|(_, after, _)| !self.is_won(*after)) {
            for spawn in SpawnKind::ALL {
                let layer = self.stored.layer(board).after(spawn);
                states.extend(self.spawned(after, spawn).map(|state| (layer, state)));
            }
        }
        Ok(Some(Question { board, key: entry.key, found, moves }))
    }

    /// Answers a question from the values of the states after its moves and spawns.
    fn answer(&self, question: Question, known: &Known) -> Result<Evaluation, QueryError> {
        let Question { board, key, found: place, moves } = question;
        let mut found = Vec::with_capacity(4);
        for direction in Move::ALL {
            let value = |(after, score): (Board, u32)| {
                let stored = self.after_value(after, known).ok_or(ReadError::no_values(key))?;
                Ok::<_, QueryError>((after, score, stored))
            };
            found.push(moves.get(direction).map(value).transpose()?);
        }
        let most = found.iter().flatten().map(|&(.., stored)| stored).max();
        let layer = self.stored.layer(board);
        let bound = |stored| most.map_or(0.0, |_| self.scale.error_bound(layer, stored));
        // In fixed point the bound of the best move covers all moves.
        let of_all = self.scale.fraction_bits().and(most);
        let of_move = |stored| (self.seen_from(board, stored), bound(of_all.unwrap_or(stored)));
        let is_rounded = self.params().contents().value_step().is_some();
        let best = most.filter(|_| is_rounded).map(of_move);
        let outcome = |(after, score, stored)| {
            let (value, error_bound) = of_move(stored);
            let may_be_best =
                best.map(|(best, bound): (f64, f64)| (best - value).abs() <= bound + error_bound);
            let worst_spawn = self.worst_spawn(after, known);
            let is_best = Some(stored) == most;
            MoveOutcome { after, score, value, error_bound, worst_spawn, is_best, may_be_best }
        };
        let moves: Vec<_> = std::iter::zip(Move::ALL, found)
            .map(|(direction, found)| MoveValue { direction, outcome: found.map(outcome) })
            .collect();
        let is_known_reachable = place.is_some();
        let known = place.as_ref().map(|(part, rank)| part.value(*rank)).transpose()?.flatten();
        let stored = known.unwrap_or_else(|| most.unwrap_or_else(|| self.backup.terminal_of(board)));
        if let Some((part, rank)) = place {
            part.keep(rank, stored);
        }
        // A rounded value may differ from that of the best move, which is as precise.
        let shown = most.filter(|_| is_rounded).unwrap_or(stored);
        Ok(Evaluation {
            board,
            canonical: self.rules().canonical(board),
            layer,
            is_known_reachable,
            value: self.seen_from(board, shown),
            error_bound: bound(shown),
            best: moves
                .iter()
                .find(|m| m.outcome.is_some_and(|outcome| outcome.is_best))
                .map(|m| m.direction),
            moves,
        })
    }

    /// The value of an afterstate, from the values after its spawns; `None` if one of them is not known.
    fn after_value(&self, after: Board, known: &Known) -> Option<Stored> {
        if self.is_won(after) {
            return Some(self.scale.won());
        }
        let values = |spawn| -> Option<Vec<Stored>> {
            self.spawned(after, spawn).map(|state| known.get(&state).copied()).collect()
        };
        let mut spawned = PerSpawn::<Vec<Stored>>::default();
        for (values_of_kind, spawn) in spawned.iter_mut().zip(SpawnKind::ALL) {
            *values_of_kind = values(spawn)?;
        }
        let spawned = spawned.each_ref().map(Vec::as_slice);
        Some(match self.params().game().precision() {
            Precision::Bits32 => self.backup.of_spawns::<u32>(spawned),
            Precision::Bits64 => self.backup.of_spawns::<u64>(spawned),
        })
    }

    /// See [`MoveOutcome::worst_spawn`].
    fn worst_spawn(&self, after: Board, known: &Known) -> Option<Board> {
        if self.params().game().spawner() == Spawner::Random || self.is_won(after) {
            return None;
        }
        let spawn4 = self.params().game().spawn4();
        // The potential counts points for a spawned tile that the player did not score.
        let kinds = SpawnKind::ALL
            .map(|spawn| (spawn, spawn.weight(spawn4), self.scale.points(spawn.unscored_potential())));
        let spawns = rules::empty_cells(after, self.params().game().board()).flat_map(|cell| {
            kinds.iter().filter(|(_, weight, _)| *weight > 0).filter_map(
                move |&(spawn, _, unscored_potential)| {
                    let board = after.with(cell, spawn.exponent());
                    Some((board, known.get(&self.rules().canonical(board))?.future_value(unscored_potential)))
                },
            )
        });
        spawns.min_by_key(|(_, value)| *value).map(|(board, _)| board)
    }
}
