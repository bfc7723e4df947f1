//! The gRPC interfaces of exact2048, generated from the files under `proto/`, which document every field.
//!
//! A package name carries its version ([`v1`]). Within a version fields are only added: what a deployed client
//! sends and reads keeps its meaning.

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

/// The descriptors of all files, for the reflection service.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// A method of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// Its path as requests name it: `/package.Service/Method`.
    pub path: String,
    /// Whether either side sends more than one message.
    pub streaming: bool,
}

/// All methods.
///
/// # Errors
///
/// None in a crate that was built whole: the descriptors were written by its build.
pub fn methods() -> Result<Vec<Method>, prost::DecodeError> {
    use prost::Message;

    let mut methods = Vec::new();
    for file in prost_types::FileDescriptorSet::decode(DESCRIPTORS)?.file {
        for service in &file.service {
            methods.extend(service.method.iter().map(|method| Method {
                path: format!("/{}.{}/{}", file.package(), service.name(), method.name()),
                streaming: method.client_streaming() || method.server_streaming(),
            }));
        }
    }
    Ok(methods)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_named_as_requests_name_them() {
        let methods = methods().unwrap();
        for (path, streaming) in
            [("/exact2048.v1.Query/BatchGetValues", true), ("/exact2048.v1.Query/GetRun", false)]
        {
            assert!(methods.contains(&Method { path: path.to_owned(), streaming }), "{methods:?}");
        }
    }
}
