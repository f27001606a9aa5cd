# The image of the program: `docker build --tag tidemark .`, or `docker compose build`.
#
# Base images are pinned by tag, not by digest: pin digests where a moved tag must not be used.

FROM rust:1.95.0-slim-bookworm AS build
WORKDIR /src
# Only these are in the build context (.dockerignore).
COPY Cargo.toml Cargo.lock build.rs ./
COPY benches benches
COPY crates crates
COPY docs docs
COPY migrations migrations
COPY schemas schemas
COPY src src
COPY ui/dist ui/dist
RUN cargo build --locked --release --bin tidemark

FROM debian:bookworm-20260824-slim
# A numeric user, so that Kubernetes can verify that it is not root. Volumes are mounted below its home.
RUN useradd --system --uid 10001 --user-group --shell /usr/sbin/nologin \
        --home-dir /var/lib/tidemark --create-home tidemark \
    && install --directory --owner tidemark --group tidemark --mode 0700 \
        /var/lib/tidemark/search /var/lib/tidemark/media /var/lib/tidemark/sandbox
# The image has no CA certificates: the program trusts its built-in public ones. Mount /etc/ssl/certs/ca-certificates.crt to
# replace them.
COPY --from=build /src/target/release/tidemark /usr/local/bin/tidemark
USER 10001:10001
WORKDIR /var/lib/tidemark
ENV TIDEMARK_LISTEN=0.0.0.0:8080 \
    TIDEMARK_SEARCH_INDEX=/var/lib/tidemark/search \
    TIDEMARK_LOG_FORMAT=json
EXPOSE 8080
# The check of `serve`, the default command. Use `--no-healthcheck` or another check for other commands, as docker-compose.yml
# does. The program is the image's only HTTP client.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["tidemark", "probe", "http://127.0.0.1:8080/v2/health"]
ENTRYPOINT ["tidemark"]
CMD ["serve"]
