//! Services of a server: the program's service, health and reflection, behind the token.

use std::collections::HashMap;
use std::convert::Infallible;

use http::{Request, Response};
use prost::Message;
use prost_types::FileDescriptorSet;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::service::Routes;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_reflection::pb::{v1, v1alpha};
use tonic_reflection::server::Builder;
use tower::Service;

use crate::requests::{Guard, Streams};
use crate::serve::{Bound, ServeError, ServerEnd};
use crate::shutdown::Stop;

/// Names of the services that every server has.
const HEALTH: &str = "grpc.health.v1.Health";
const V1: &str = "grpc.reflection.v1.ServerReflection";
const V1_ALPHA: &str = "grpc.reflection.v1alpha.ServerReflection";

/// Serves `service`, health, and reflection of all these services until `stop`, then waits for running requests.
/// `descriptors` describe the service. Clients need the token for every service, except for health if the options of the
/// server [say so](crate::serve::ServerOptions::is_health_open).
///
/// # Errors
///
/// [`ServeError::Transport`], and [`ServeError::Descriptors`], which a correctly built program never returns.
pub async fn serve<S>(
    bound: Bound,
    health: HealthServer<impl Health>,
    service: S,
    descriptors: &'static [u8],
    stop: Stop,
) -> Result<ServerEnd, ServeError>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
        + NamedService
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    let sets = [
        descriptors,
        tonic_health::pb::FILE_DESCRIPTOR_SET,
        v1::FILE_DESCRIPTOR_SET,
        v1alpha::FILE_DESCRIPTOR_SET,
    ];
    let served = [S::NAME, HEALTH, V1, V1_ALPHA];
    let reflection = || {
        let builder = Builder::configure().include_reflection_service(false);
        let builder = sets.into_iter().fold(builder, Builder::register_encoded_file_descriptor_set);
        served.into_iter().fold(builder, Builder::with_service_name)
    };
    let unusable = |error: &dyn std::error::Error| ServeError::Descriptors(error.to_string());
    let v1 = reflection().build_v1().map_err(|error| unusable(&error))?;
    let v1alpha = reflection().build_v1alpha().map_err(|error| unusable(&error))?;
    let mut methods = HashMap::new();
    // `methods` omits reflection. So the server disconnects a client that opens a reflection stream and sends
    // nothing, as for an unknown method.
    for set in [descriptors, tonic_health::pb::FILE_DESCRIPTOR_SET] {
        methods.extend(methods_of(set, &served).map_err(|error| unusable(&error))?);
    }
    let routes = Routes::new(health).add_service(service).add_service(v1).add_service(v1alpha);
    let guard = Guard { token: bound.check_token(), is_health_open: bound.options.is_health_open };
    bound.serve(routes, methods, Some(guard), stop).await
}

/// Returns the methods of the served services.
fn methods_of(descriptors: &[u8], served: &[&str]) -> Result<HashMap<String, Streams>, prost::DecodeError> {
    let mut methods = HashMap::new();
    for file in FileDescriptorSet::decode(descriptors)?.file {
        for service in &file.service {
            let name = format!("{}.{}", file.package(), service.name());
            if !served.contains(&&*name) {
                continue;
            }
            methods.extend(service.method.iter().map(|method| {
                let streams = match (method.client_streaming(), method.server_streaming()) {
                    (true, _) => Streams::Request,
                    (false, true) => Streams::Answer,
                    (false, false) => Streams::Neither,
                };
                (format!("/{name}/{}", method.name()), streams)
            }));
        }
    }
    Ok(methods)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_have_the_names_of_requests() {
        let methods = methods_of(tonic_health::pb::FILE_DESCRIPTOR_SET, &[HEALTH]).unwrap();
        for (path, streams) in [
            ("/grpc.health.v1.Health/Check", Streams::Neither),
            ("/grpc.health.v1.Health/Watch", Streams::Answer),
        ] {
            assert_eq!(methods.get(path), Some(&streams), "{methods:?}");
        }
        assert_eq!(methods_of(tonic_health::pb::FILE_DESCRIPTOR_SET, &[V1]).unwrap(), HashMap::new());
        assert!(methods_of(&[255], &[]).is_err());
    }
}
