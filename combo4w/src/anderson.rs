//! Anderson acceleration: improves the next iterate with the changes of the last few residuals.
//!
//! For a map G and iterates u, the residuals are f = G(u) − u. The next iterate is G(u) − Σ γᵢ ΔGᵢ, with the γ that minimise
//! the sum of squares of f − Σ γᵢ Δfᵢ. For a linear G and without a limit on the number of differences, the
//! method is equivalent to GMRES. The next application of G shows the quality of the new iterate.
//!
//! Source: D. G. Anderson, "Iterative procedures for nonlinear integral equations" (1965).

use rayon::prelude::*;

/// Number of differences to keep. More differences would save few sweeps, and each difference takes two vectors.
pub(crate) const DEPTH: usize = 5;

/// Count of numbers that one thread sums at a time. The count is fixed, so sums do not depend on the number of threads.
const CHUNK: usize = 1 << 14;

/// History of the last steps. Vectors are allocated once.
#[derive(Default)]
pub(crate) struct Anderson {
    /// Number of steps since the beginning or the last [`Self::reset`].
    steps: usize,
    last: Change,
    /// Changes in the last `DEPTH` steps. The change in step n has place n mod `DEPTH`.
    changes: [Change; DEPTH],
    /// Scalar products of the residuals' changes.
    products: [[f64; DEPTH]; DEPTH],
}

/// A residual f and an image G(u), or the changes of both in one step.
#[derive(Default)]
struct Change {
    residual: Vec<f64>,
    image: Vec<f64>,
}

impl Anderson {
    /// Forgets all previous steps.
    pub fn reset(&mut self) {
        self.steps = 0;
    }

    /// Replaces the image G(u) by the next iterate, given the residual G(u) − u.
    pub fn step(&mut self, image: &mut [f64], residual: &[f64]) {
        if self.steps == 0 {
            self.last = Change { residual: residual.to_vec(), image: image.to_vec() };
            self.steps = 1;
            return;
        }
        let known = self.steps.min(DEPTH);
        let place = (self.steps - 1) % DEPTH;
        let (products, with_residual) = self.take(place, known, image, residual);
        for (other, &product) in products.iter().enumerate().take(known) {
            self.products[place][other] = product;
            self.products[other][place] = product;
        }
        let equation = |i: usize| [&self.products[i][..known], &[with_residual[i]]].concat();
        let weights = solve((0..known).map(equation).collect());
        let changes = &self.changes;
        image.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, image)| {
            for (change, weight) in changes.iter().zip(&weights) {
                let change = &change.image[chunk * CHUNK..];
                image.iter_mut().zip(change).for_each(|(to, by)| *to -= weight * by);
            }
        });
        self.steps += 1;
    }

    /// Stores the newest change in its place, in one pass over all vectors.
    ///
    /// Returns two lists of scalar products with the residuals of the `known` changes: those of the new change's
    /// residual, and those of `residual`.
    fn take(
        &mut self,
        place: usize,
        known: usize,
        image: &[f64],
        residual: &[f64],
    ) -> ([f64; DEPTH], [f64; DEPTH]) {
        let mut new = std::mem::take(&mut self.changes[place]);
        new.residual.resize(residual.len(), 0.0);
        new.image.resize(image.len(), 0.0);
        let others = &self.changes[..known];
        let parts: Vec<([f64; DEPTH], [f64; DEPTH])> = (
            new.residual.par_chunks_mut(CHUNK),
            new.image.par_chunks_mut(CHUNK),
            self.last.residual.par_chunks_mut(CHUNK),
            self.last.image.par_chunks_mut(CHUNK),
            residual.par_chunks(CHUNK),
            image.par_chunks(CHUNK),
        )
            .into_par_iter()
            .enumerate()
            .map(|(chunk, (new_residual, new_image, old_residual, old_image, residual, image))| {
                replace(old_residual, residual, new_residual);
                replace(old_image, image, new_image);
                let (mut products, mut with_residual) = ([0.0; DEPTH], [0.0; DEPTH]);
                for (other, change) in others.iter().enumerate() {
                    let change = match other == place {
                        true => &*new_residual,
                        false => &change.residual[chunk * CHUNK..][..residual.len()],
                    };
                    products[other] = dot(new_residual, change);
                    with_residual[other] = dot(residual, change);
                }
                (products, with_residual)
            })
            .collect();
        self.changes[place] = new;
        let add = |mut sum: [f64; DEPTH], part: &[f64; DEPTH]| {
            sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
            sum
        };
        parts.iter().fold(([0.0; DEPTH], [0.0; DEPTH]), |(a, b), (c, d)| (add(a, c), add(b, d)))
    }
}

/// Replaces old numbers by new ones and writes the differences.
fn replace(old: &mut [f64], new: &[f64], difference: &mut [f64]) {
    for ((old, new), difference) in old.iter_mut().zip(new).zip(difference) {
        *difference = new - *old;
        *old = *new;
    }
}

/// Solves symmetric equations by elimination, starting with the last unknown. Skips unknowns that nearly depend on later
/// unknowns.
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

/// The scalar product, in eight parallel sums for the vector unit.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (a, b) = (a.chunks(8), b.chunks(8));
    for (a, b) in a.zip(b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sums.into_iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_map_is_solved_in_few_steps() {
        let map = |u: &[f64]| [1.0 + 0.9 * u[1], 2.0 - 0.5 * u[0] + 0.3 * u[2], 0.8 * u[2] + 0.1 * u[0]];
        let mut anderson = Anderson::default();
        let mut iterate = vec![0.0; 3];
        let residual = |u: &[f64]| map(u).iter().zip(u).map(|(g, u)| g - u).collect::<Vec<_>>();
        for _ in 0..5 {
            let residual = residual(&iterate);
            iterate = map(&iterate).to_vec();
            anderson.step(&mut iterate, &residual);
        }
        assert!(residual(&iterate).iter().all(|f| f.abs() < 1e-10), "{iterate:?}");
    }

    #[test]
    fn equations_with_a_dependent_one_are_solved() {
        let weights = solve(vec![vec![2.0, 2.0, 4.0], vec![2.0, 2.0, 4.0]]);
        assert_eq!(weights, [0.0, 2.0]);
    }
}
