# syntax=docker/dockerfile:1
# The gateway on a distroless base: no shell, no package manager, not root. Build from the root of the repository:
#   docker build -t gatewright .
# Apps that are commands need their own runtime: copy the binary into an image that has it, such as node:22-slim.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --profile dist --locked --package gatewright-cli --bin gatewright \
    && install -D target/dist/gatewright /out/gatewright

FROM gcr.io/distroless/cc-debian12:nonroot
LABEL org.opencontainers.image.title="gatewright" \
      org.opencontainers.image.source="https://github.com/gatewright/gatewright" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
COPY --from=build /out/gatewright /usr/local/bin/gatewright
COPY deploy/docker/gatewright.yaml /etc/gatewright/gatewright.yaml
EXPOSE 3000
# nonroot; a number, so that Kubernetes can tell that it is not root.
USER 65532:65532
HEALTHCHECK --interval=15s --timeout=6s --start-period=5s --retries=3 \
    CMD ["/usr/local/bin/gatewright", "health", "--url", "http://127.0.0.1:3000"]
ENTRYPOINT ["/usr/local/bin/gatewright"]
CMD ["serve", "--config", "/etc/gatewright/gatewright.yaml", "--log-format", "json"]
