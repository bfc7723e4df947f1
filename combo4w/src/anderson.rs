//! Anderson acceleration: a better next iterate than the last image, from how the last few residuals changed.
//!
//! For a map G, iterates u and residuals f = G(u) − u, the next iterate is G(u) − Σ γᵢ ΔGᵢ, with the γ that make f − Σ γᵢ Δfᵢ
//! smallest in the sum of squares. Where G is linear, that is GMRES. Whatever it proposes is only a start: how good the outcome is,
//! a plain application of G says.
//!
//! Source: D. G. Anderson, "Iterative procedures for nonlinear integral equations" (1965).

use rayon::prelude::*;

/// Differences that are kept: more of them save few sweeps, and each takes two vectors.
pub(crate) const DEPTH: usize = 5;

/// Numbers that one thread sums up at a time: sums are of the same bits for any number of threads.
const CHUNK: usize = 1 << 14;

/// What is kept of the last steps.
#[derive(Default)]
pub(crate) struct Anderson {
    last: Option<(Vec<f64>, Vec<f64>)>,
    /// Changes of the residual and of the image, the oldest first.
    changes: Vec<(Vec<f64>, Vec<f64>)>,
}

impl Anderson {
    /// Forgets what was.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Takes an image and its residual, which has the iterate's place on entry, and turns `image` into the next iterate.
    pub fn step(&mut self, image: &mut [f64], residual: Vec<f64>) {
        if let Some((mut old_image, mut old_residual)) = self.last.take() {
            into_difference(&mut old_residual, &residual);
            into_difference(&mut old_image, image);
            if self.changes.len() == DEPTH {
                self.changes.remove(0);
            }
            self.changes.push((old_residual, old_image));
        }
        let weights = self.weights(&residual);
        self.last = Some((image.to_vec(), residual));
        for ((_, change), weight) in self.changes.iter().zip(weights) {
            image.par_iter_mut().zip(change).with_min_len(CHUNK).for_each(|(to, by)| *to -= weight * by);
        }
    }

    /// The γ, by the normal equations; a direction that adds nothing new has weight 0.
    fn weights(&self, residual: &[f64]) -> Vec<f64> {
        let n = self.changes.len();
        let mut matrix = vec![vec![0.0; n + 1]; n];
        for (i, row) in matrix.iter_mut().enumerate() {
            let of = &self.changes[i].0;
            for (j, entry) in row.iter_mut().enumerate() {
                *entry = dot(of, self.changes.get(j).map_or(residual, |(change, _)| change));
            }
        }
        solve(matrix)
    }
}

/// Solves symmetric equations by elimination from the last unknown on, leaving out what is nearly dependent on it.
fn solve(mut matrix: Vec<Vec<f64>>) -> Vec<f64> {
    let n = matrix.len();
    let diagonal: Vec<f64> = (0..n).map(|i| matrix[i][i]).collect();
    let is_kept = |pivot: f64, i: usize| pivot > 1e-13 * diagonal[i] && pivot.is_normal();
    for i in (0..n).rev() {
        let pivot = matrix[i].clone();
        if is_kept(pivot[i], i) {
            for row in &mut matrix[..i] {
                let factor = row[i] / pivot[i];
                for (entry, by) in row.iter_mut().zip(&pivot) {
                    *entry -= factor * by;
                }
            }
        }
    }
    let mut weights = vec![0.0; n];
    for i in 0..n {
        if is_kept(matrix[i][i], i) {
            let known: f64 = (0..i).map(|j| matrix[i][j] * weights[j]).sum();
            weights[i] = (matrix[i][n] - known) / matrix[i][i];
        }
    }
    weights
}

fn into_difference(old: &mut [f64], new: &[f64]) {
    old.par_iter_mut().zip(new).with_min_len(CHUNK).for_each(|(old, new)| *old = new - *old);
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    let parts = a.par_chunks(CHUNK).zip(b.par_chunks(CHUNK));
    let parts: Vec<f64> = parts.map(|(a, b)| a.iter().zip(b).map(|(a, b)| a * b).sum()).collect();
    parts.into_iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_map_is_solved_in_as_many_steps_as_it_has_dimensions() {
        let map = |u: &[f64]| [1.0 + 0.9 * u[1], 2.0 - 0.5 * u[0] + 0.3 * u[2], 0.8 * u[2] + 0.1 * u[0]];
        let mut anderson = Anderson::default();
        let mut iterate = vec![0.0; 3];
        let residual = |u: &[f64]| map(u).iter().zip(u).map(|(g, u)| g - u).collect::<Vec<_>>();
        for _ in 0..5 {
            let residual = residual(&iterate);
            iterate = map(&iterate).to_vec();
            anderson.step(&mut iterate, residual);
        }
        assert!(residual(&iterate).iter().all(|f| f.abs() < 1e-10), "{iterate:?}");
    }

    #[test]
    fn equations_with_a_dependent_one_are_solved() {
        let weights = solve(vec![vec![2.0, 2.0, 4.0], vec![2.0, 2.0, 4.0]]);
        assert_eq!(weights, [0.0, 2.0]);
    }
}
