//! Secrets in messages, and the worker id derived from a secret.

use exact2048_coordinator::cluster::{Incarnation, Secret, WorkerId};
use sha2::{Digest, Sha256};

use super::WireError;

/// Prefix of the hash input for a worker's id. It makes the hash useless for other purposes.
const DOMAIN: &[u8] = b"exact2048 worker";

/// Prefix of the hash input for the answer to a challenge.
const MEETING: &[u8] = b"exact2048 meet";

/// Returns the id of the worker with this secret.
///
/// The id is visible in `status` and logs. Pulling under it would require another secret with the same id, which
/// takes about 2^64 hashes.
#[must_use]
pub fn worker_of(secret: &Secret) -> WorkerId {
    let sum = Sha256::new().chain_update(DOMAIN).chain_update(secret.bytes()).finalize();
    let (first, _) = sum.split_first_chunk().unwrap_or((&[0; 8], &[]));
    WorkerId(u64::from_be_bytes(*first))
}

/// Returns the answer of a worker's process to a challenge. Its computation requires the worker's secret.
#[must_use]
pub fn proof_of(secret: &Secret, incarnation: Incarnation, challenge: &[u8]) -> [u8; 32] {
    let sum = Sha256::new().chain_update(MEETING).chain_update(secret.bytes());
    sum.chain_update(incarnation.0.to_be_bytes()).chain_update(challenge).finalize().into()
}

/// Checks the secret in a field of a message.
///
/// # Errors
///
/// [`WireError::Field`] if the length is wrong. The error does not repeat the bytes.
pub fn secret_of(field: &str, bytes: &[u8]) -> Result<Secret, WireError> {
    let found =
        || WireError::field(field, format!("expected {} bytes, found {}", Secret::BYTES, bytes.len()));
    bytes.try_into().map(Secret::new).map_err(|_| found())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workers_id_follows_from_its_secret() {
        // Computed independently: SHA-256 of "exact2048 worker" and 16 bytes of 1.
        assert_eq!(worker_of(&Secret::new([1; 16])), WorkerId(0x5764_db26_ae9d_8328));
        assert_ne!(worker_of(&Secret::new([1; 16])), worker_of(&Secret::new([2; 16])));
    }

    #[test]
    fn proofs_are_bound_to_one_process_and_one_challenge() {
        let proof_of = |secret: u8, incarnation: u64, challenge: u8| {
            super::proof_of(&Secret::new([secret; 16]), Incarnation(incarnation), &[challenge; 16])
        };
        let proof = proof_of(1, 2, 3);
        assert_eq!(proof, proof_of(1, 2, 3));
        for other in [proof_of(2, 2, 3), proof_of(1, 1, 3), proof_of(1, 2, 4)] {
            assert_ne!(proof, other);
        }
    }

    #[test]
    fn secrets_of_other_lengths_are_refused_and_not_repeated() {
        assert_eq!(secret_of("secret", &[7; 16]), Ok(Secret::new([7; 16])));
        for wrong in [&b""[..], &[7; 15], &[7; 17]] {
            let refused = secret_of("secret", wrong).unwrap_err().to_string();
            assert!(refused.starts_with("secret: ") && !refused.contains("07"), "{refused}");
        }
    }
}
