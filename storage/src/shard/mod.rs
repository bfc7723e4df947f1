//! Shards: immutable files of compressed, checksummed items. One module per section of the file.
//!
//! | Section, in file order | Module |
//! |---|---|
//! | header, of a fixed size | `header` |
//! | frames, each a block of items | `block`, `frame` |
//! | index, itself a block | `index` |

mod block;
mod codec;
mod frame;
mod header;
mod index;
mod reader;
mod writer;

pub use codec::Codec;
pub use frame::Frame;
pub use index::{Entry, FrameInfo};
pub use reader::ShardReader;
pub use writer::{ShardRecord, ShardWriter};
