//! The chances of afterstates as bytes, from which another process resumes.

use std::io::{self, Read, Write};
use std::sync::Arc;

use exact2048_game::bitset::{BitSet, Number};
use exact2048_game::rowset::{Row, RowSet};
use exact2048_game::value::Value;
use exact2048_game::{Lane, Layer};

use super::blocks::ChanceBlock;
use crate::blocks::BlockMap;
use crate::shared::Shared;

/// Writes the chances of a layer's afterstates, for [`read_afterstates`].
///
/// # Errors
///
/// Those of `out`.
pub fn write_afterstates(
    afterstates: &BlockMap<ChanceBlock>,
    layer: Layer,
    out: &mut dyn Write,
) -> io::Result<()> {
    let blocks = afterstates.of_layer(layer);
    out.write_all(&(blocks.len() as u32).to_le_bytes())?;
    for (lane, block) in blocks {
        out.write_all(&lane.code().to_le_bytes())?;
        out.write_all(&(block.rows.len() as u32).to_le_bytes())?;
        for (row, chances) in block.rows.iter().zip(block.chances.chunks_exact(block.stride.max(1))) {
            let some = || (0u32..).zip(chances).filter(|(_, chance)| **chance != 0.0);
            out.write_all(&row.0.to_le_bytes())?;
            out.write_all(&(some().count() as u32).to_le_bytes())?;
            for (column, chance) in some() {
                out.write_all(&column.to_le_bytes())?;
                out.write_all(&chance.to_le_bytes())?;
            }
        }
    }
    Ok(())
}

/// Reads and holds the chances of a layer's afterstates, as [`write_afterstates`] wrote them.
///
/// # Errors
///
/// Those of `input`, or if the chances are of another run.
pub fn read_afterstates<V: Value>(
    shared: &Shared<V>,
    afterstates: &BlockMap<ChanceBlock>,
    layer: Layer,
    input: &mut dyn Read,
) -> io::Result<()> {
    let (tables, memory) = (&shared.tables, shared.store.memory());
    let other_run = || {
        let what = "expected chances of this run, found chances of another run";
        io::Error::new(io::ErrorKind::InvalidData, what)
    };
    for _ in 0..read_u32(input)? {
        let lane = Lane::from_code(u64::from_le_bytes(read_bytes(input)?)).ok_or_else(other_run)?;
        let class = tables.class(layer, lane).ok_or_else(other_run)?;
        let tables = tables.lane(lane).ok_or_else(other_run)?;
        let (mut rows, mut entries) = (BitSet::with_room(class.rows()), Vec::new());
        for slot in 0..read_u32(input)? as usize {
            let row = Row(read_u32(input)?);
            if row.index() >= class.rows() {
                return Err(other_run());
            }
            rows.insert(row);
            for _ in 0..read_u32(input)? {
                let column = read_u32(input)? as usize;
                if column >= tables.columns.len() {
                    return Err(other_run());
                }
                entries.push((slot, column as u32, f64::from_le_bytes(read_bytes(input)?)));
            }
        }
        let (rows, stride) = (Arc::new(RowSet::new(rows)), tables.stride());
        let mut chances = memory.area::<f64>(rows.len() * stride);
        chances.fill(0.0);
        for (slot, column, chance) in entries {
            *chances.get_mut(slot * stride + column as usize).ok_or_else(other_run)? = chance;
        }
        let chances = memory.settle(chances).map_err(io::Error::other)?;
        afterstates.insert(layer, lane, ChanceBlock { rows, stride, chances });
    }
    Ok(())
}

fn read_bytes<const N: usize>(input: &mut dyn Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_u32(input: &mut dyn Read) -> io::Result<u32> {
    Ok(u32::from_le_bytes(read_bytes(input)?))
}
