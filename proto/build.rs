//! Generates the services and messages from `proto/`, without protoc.

use std::path::PathBuf;

/// Files that define services; the compiler finds their imports.
const FILES: [&str; 3] =
    ["exact2048/v1/coordinator.proto", "exact2048/v1/exchange.proto", "exact2048/v1/query.proto"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).include_source_info(true).open_files(FILES)?;
    std::fs::write(out.join("descriptors.bin"), compiler.encode_file_descriptor_set())?;
    // `Bytes` fields share the message's buffer, so large blocks are not copied.
    tonic_prost_build::configure()
        .bytes(".exact2048.v1.PushRequest")
        .bytes(".exact2048.v1.PushBlock")
        .bytes(".exact2048.v1.FetchRequest")
        .bytes(".exact2048.v1.FetchResponse")
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
