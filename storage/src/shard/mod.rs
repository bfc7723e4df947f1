//! Shards: immutable files of compressed, checksummed items. One module per section of the file.
//!
//! | Section, in file order | Module |
//! |---|---|
//! | header, of fixed size | `header` |
//! | frames, each a block of items | `block`, `frame` |
//! | index, one block | `index` |

mod block;
mod codec;
mod content;
mod frame;
mod header;
mod index;
mod look;
mod origin;
mod planes;
mod reader;
mod stored;
mod writer;

pub use codec::{Codec, Packing};
pub use frame::Frame;
pub use index::{Entry, FrameInfo};
pub(crate) use look::{HEAD_BYTES, check_head};
pub(crate) use origin::Origin;
pub(crate) use reader::Expected;
pub use reader::ShardReader;
pub(crate) use stored::{StoredShard, open_lone_object};
pub(crate) use writer::Target;
pub use writer::{ShardRecord, ShardWriter};
