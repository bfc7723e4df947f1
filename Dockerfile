# syntax=docker/dockerfile:1
#
#   docker build -t registry.example.com/exact2048:0.2.0 .
#   docker run --rm --user "$(id -u)" -v "$PWD/runs:/runs" registry.example.com/exact2048:0.2.0 solve --board 3x3 --run /runs/3x3

# The version in rust-toolchain.toml; scripts/ci-k8s.sh compares them.
ARG RUST_VERSION=1.95.0

FROM rust:${RUST_VERSION}-slim-bookworm AS build
# The image has a C compiler. RUSTUP_TOOLCHAIN stops rustup from fetching the components of rust-toolchain.toml.
ARG RUST_VERSION
ENV RUSTUP_TOOLCHAIN=${RUST_VERSION}
WORKDIR /source
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    cargo build --profile dist --locked --package exact2048 \
    && cp target/dist/exact2048 /usr/local/bin/exact2048

FROM debian:bookworm-slim
# ca-certificates verifies S3 stores and queried servers.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 65532 --user-group --home-dir /cache --no-create-home --shell /usr/sbin/nologin exact2048 \
    && install --directory --owner=exact2048 --group=exact2048 /cache
COPY --from=build /usr/local/bin/exact2048 /usr/local/bin/exact2048
# A number lets Kubernetes check that the user is not root.
USER 65532:65532
# Folder for copies of shards, and for data that exceeds memory.
ENV XDG_CACHE_HOME=/cache
VOLUME /cache
# The port of every server. Commands listen only on loopback unless --listen names another address.
EXPOSE 2048
STOPSIGNAL SIGTERM
ENTRYPOINT ["exact2048"]
CMD ["--help"]
