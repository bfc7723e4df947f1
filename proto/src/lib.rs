//! gRPC interfaces of exact2048. They are generated from the files under `proto/`, where every field is
//! documented.
//!
//! Package names contain a version ([`v1`]). Later releases only add fields to a version. So requests and answers of
//! deployed clients retain their meaning.

use exact2048_game::board::BoardError;
use exact2048_game::huge::NO_HUGE;
use exact2048_game::{BoardSize, Discount, Params, Spawner};

/// Version 1 of all services.
#[allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::doc_markdown,
    reason = "generated; the .proto files are the documentation"
)]
pub mod v1 {
    tonic::include_proto!("exact2048.v1");
}

/// Descriptors of all files. The reflection service uses them, and servers look up method names in them.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

impl v1::RunParameters {
    /// Rows, columns and stones of the board.
    ///
    /// # Errors
    ///
    /// Those of [`BoardSize::new`], [`BoardSize::with_picture`] and [`BoardSize::with_loose`].
    pub fn size(&self) -> Result<BoardSize, BoardError> {
        let plain = BoardSize::new(self.rows.into(), self.columns.into())?;
        let locked = if self.picture.is_empty() { Ok(plain) } else { plain.with_picture(&self.picture) };
        locked?.with_loose(self.loose_stones.into())
    }
}

impl From<&Params> for v1::RunParameters {
    fn from(params: &Params) -> Self {
        Self {
            rows: params.game().board().rows() as u32,
            columns: params.game().board().cols() as u32,
            objective: params.game().objective().to_string(),
            spawn4_numerator: params.game().spawn4().weight4(),
            spawn4_denominator: params.game().spawn4().denominator(),
            precision_bits: u8::from(params.game().precision()).into(),
            until_layer: params.contents().until().map(|layer| layer.0),
            large_exponent: params.split().large().into(),
            huge_exponent: if params.split().huge() == NO_HUGE { 0 } else { params.split().huge().into() },
            discount_numerator: if params.game().discount() == Discount::NONE {
                0
            } else {
                params.game().discount().numerator()
            },
            discount_denominator: if params.game().discount() == Discount::NONE {
                0
            } else {
                params.game().discount().denominator()
            },
            spawner: if params.game().spawner() == Spawner::Random {
                String::new()
            } else {
                params.game().spawner().to_string()
            },
            kept: Some(v1::KeptLayers {
                period: params.contents().kept().period(),
                width: params.contents().kept().width(),
            }),
            best_moves: params.contents().stores_best_moves(),
            value_step: params.contents().value_step().map(String::from).unwrap_or_default(),
            sectors: params.split().sectors().into(),
            picture: params.game().board().picture().unwrap_or_default(),
            loose_stones: params.game().board().loose().into(),
            position: params.game().from().map(|board| board.to_text(params.game().board())),
        }
    }
}
