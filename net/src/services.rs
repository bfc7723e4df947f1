//! The services of a server: ours behind the token, health for anyone, reflection of both.

use std::convert::Infallible;

use http::{Request, Response};
use prost::Message;
use prost_types::FileDescriptorSet;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::service::Routes;
use tonic::service::interceptor::InterceptedService;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_reflection::server::Builder;
use tower::Service;

use crate::requests::{Method, Streams};
use crate::serve::{Bound, ServeError, ServerEnd};
use crate::shutdown::Stop;

/// A server with its services.
#[derive(Debug)]
pub struct Services {
    bound: Bound,
    routes: Routes,
    methods: Vec<Method>,
}

impl Services {
    /// A server with health, and with reflection of what `descriptors` describe. Health needs no token: programs that
    /// start and stop servers ask for it.
    ///
    /// # Errors
    ///
    /// [`ServeError::Descriptors`], which a program that was built whole does not meet.
    pub fn new(
        bound: Bound,
        health: HealthServer<impl Health>,
        descriptors: &'static [u8],
    ) -> Result<Self, ServeError> {
        let reflection = || {
            Builder::configure()
                .register_encoded_file_descriptor_set(descriptors)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        let (v1, v1alpha) = (reflection().build_v1(), reflection().build_v1alpha());
        let unusable = |error: &dyn std::error::Error| ServeError::Descriptors(error.to_string());
        let mut methods =
            methods_of(tonic_health::pb::FILE_DESCRIPTOR_SET).map_err(|error| unusable(&error))?;
        methods.extend(methods_of(descriptors).map_err(|error| unusable(&error))?);
        let services = Self { bound, routes: Routes::new(health), methods };
        let services = services.with(v1.map_err(|error| unusable(&error))?);
        Ok(services.with(v1alpha.map_err(|error| unusable(&error))?))
    }

    /// The same with one more service, for clients that show the token.
    #[must_use]
    pub fn with<S>(mut self, service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
            + NamedService
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        self.routes = self.routes.add_service(InterceptedService::new(service, self.bound.check_token()));
        self
    }

    /// The same with room of its own for the requests of a method, as much as all others have together.
    #[must_use]
    pub fn with_room_for(mut self, path: &str) -> Self {
        self.methods
            .iter_mut()
            .filter(|method| method.path == path)
            .for_each(|method| method.reserved = true);
        self
    }

    /// Serves until `stop`, and until what is running then has ended.
    ///
    /// # Errors
    ///
    /// [`ServeError::Transport`].
    pub async fn serve(self, stop: Stop) -> Result<ServerEnd, ServeError> {
        self.bound.serve(self.routes, self.methods, stop).await
    }
}

fn methods_of(descriptors: &[u8]) -> Result<Vec<Method>, prost::DecodeError> {
    let mut methods = Vec::new();
    for file in FileDescriptorSet::decode(descriptors)?.file {
        for service in &file.service {
            methods.extend(service.method.iter().map(|method| Method {
                path: format!("/{}.{}/{}", file.package(), service.name(), method.name()),
                streams: match (method.client_streaming(), method.server_streaming()) {
                    (true, _) => Streams::Request,
                    (false, true) => Streams::Answer,
                    (false, false) => Streams::Neither,
                },
                reserved: false,
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
        let methods = methods_of(tonic_health::pb::FILE_DESCRIPTOR_SET).unwrap();
        for (path, streams) in [
            ("/grpc.health.v1.Health/Check", Streams::Neither),
            ("/grpc.health.v1.Health/Watch", Streams::Answer),
        ] {
            let method = Method { path: path.to_owned(), streams, reserved: false };
            assert!(methods.contains(&method), "{methods:?}");
        }
        assert!(methods_of(&[255]).is_err());
    }
}
