//! The layers to check, and the other layers that a check must read.

use exact2048_game::Layer;
use exact2048_solution::{Commit, Phase};

use super::game::CheckedGame;

/// A range of layers, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The lowest layer.
    pub first: Layer,
    /// The highest layer.
    pub last: Layer,
}

impl Span {
    /// This span, widened to whole committed ranges of values, because the journal has one fingerprint for each range.
    ///
    /// Checks of several spans that together cover all layers check the whole run.
    pub fn widened(self, commits: &[Commit]) -> Self {
        let touched = |commit: &&Commit| commit.phase == Phase::BackUp && self.touches(commit);
        commits.iter().filter(touched).fold(self, |span, commit| Self {
            first: span.first.min(commit.first),
            last: span.last.max(commit.last),
        })
    }

    /// Whether the span has a layer.
    pub fn contains(self, layer: Layer) -> bool {
        (self.first..=self.last).contains(&layer)
    }

    /// Whether the span has any layer of a commit.
    pub fn touches(self, commit: &Commit) -> bool {
        commit.first <= self.last && self.first <= commit.last
    }

    /// The layers above the span that its values follow from, highest first.
    ///
    /// The first of them is the upper layer of the next cut, whose values are stored.
    pub fn above(self, game: &CheckedGame) -> impl Iterator<Item = Layer> {
        let next = self.last.up(1);
        let of_cut = Layer(game.next_cut(next.0)).up(1);
        next.to(of_cut.min(Layer(game.last_layer()))).rev()
    }

    /// The layers of the span, highest first.
    pub fn layers(self) -> impl Iterator<Item = Layer> {
        self.first.to(self.last).rev()
    }

    /// The layers below the span that can lead to its lowest layers, highest first.
    pub fn below(self) -> impl Iterator<Item = Layer> {
        (1..=Layer::RISE).filter_map(move |layers| self.first.down(layers))
    }

    /// The span that remains to be checked when all layers from `down_to` upward are checked; `None` if none remains.
    pub fn left_below(self, down_to: Layer, commits: &[Commit]) -> Option<Self> {
        // A partly checked range of values must be checked again as a whole.
        let begun = commits.iter().filter(|commit| commit.phase == Phase::BackUp);
        let begun = begun.filter(|commit| commit.first < down_to && down_to <= commit.last);
        let done = begun.map(|commit| commit.last.up(1)).max().unwrap_or(down_to);
        let last = done.down(1).filter(|&last| self.first <= last)?.min(self.last);
        Some(Self { first: self.first, last })
    }
}

#[cfg(test)]
mod tests {
    use exact2048_game::{KeptLayers, Params};

    use super::*;

    fn span(first: u32, last: u32) -> Span {
        Span { first: Layer(first), last: Layer(last) }
    }

    fn values(first: u32, last: u32) -> Commit {
        let (first, last) = (Layer(first), Layer(last));
        Commit { phase: Phase::BackUp, first, last, layers: vec![], fingerprint: Some(0) }
    }

    #[test]
    fn spans_cover_whole_commits() {
        let commits = [values(4, 14), values(16, 30), values(32, 60)];
        assert_eq!(span(20, 40).widened(&commits), span(16, 60));
        assert_eq!(span(16, 30).widened(&commits), span(16, 30));
        assert_eq!(span(20, 40).widened(&[]), span(20, 40));
    }

    #[test]
    fn the_rest_begins_with_the_unfinished_commit() {
        let commits = [values(4, 14), values(16, 30), values(32, 60)];
        let whole = span(4, 60);
        assert_eq!(whole.left_below(Layer(32), &commits), Some(span(4, 30)));
        assert_eq!(whole.left_below(Layer(36), &commits), Some(span(4, 60)));
        assert_eq!(whole.left_below(Layer(18), &commits), Some(span(4, 30)));
        assert_eq!(whole.left_below(Layer(64), &commits), Some(whole));
        assert_eq!(whole.left_below(Layer(4), &commits), None);
        assert_eq!(span(16, 60).left_below(Layer(32), &[]), Some(span(16, 30)));
    }

    #[test]
    fn values_follow_from_the_next_cut_above() {
        let layers =
            |layers: &mut dyn Iterator<Item = Layer>| layers.map(|layer| layer.0).collect::<Vec<_>>();
        let params = |kept: &str| {
            let kept: KeptLayers = kept.parse().unwrap();
            Params::usual("2x2", "score").kept(kept).build().unwrap()
        };
        let above =
            |first, last, kept| layers(&mut span(first, last).above(&CheckedGame::new(&params(kept))));
        assert_eq!(above(16, 30, "4"), [34, 32]);
        assert_eq!(above(16, 28, "4"), [34, 32, 30]);
        assert_eq!(above(16, 32, "4"), [42, 40, 38, 36, 34]);
        assert_eq!(above(16, 58, "4"), [60]);
        assert!(above(16, 60, "4").is_empty());
        assert_eq!(above(16, 20, "3/8"), [34, 32, 30, 28, 26, 24, 22]);
        assert_eq!(above(16, 16, "3/8"), [20, 18]);
        assert_eq!(above(16, 20, "all"), [24, 22]);
        assert_eq!(layers(&mut span(16, 60).below()), [14, 12]);
        assert_eq!(layers(&mut span(6, 60).below()), [4]);
        assert!(layers(&mut span(4, 60).below()).is_empty());
        assert_eq!(layers(&mut span(8, 14).layers()), [14, 12, 10, 8]);
    }
}
