# The program in an image of its own: `docker build --tag tidemark .`, or `docker compose build`.
#
# Base images are pinned by tag. No container engine and no registry of images was at hand where this was written, so their
# digests could not be looked up: pin those too where a tag that was moved must not be taken.

FROM rust:1.95.0-slim-bookworm AS build
WORKDIR /src
# Line numbers stay out of the image, which makes 45 MB of 216; the names of functions are left for what is logged of a panic.
ENV CARGO_PROFILE_RELEASE_DEBUG=none CARGO_PROFILE_RELEASE_STRIP=debuginfo
# All that the program is made of. .dockerignore lets nothing else in.
COPY Cargo.toml Cargo.lock build.rs ./
COPY benches benches
COPY docs docs
COPY migrations migrations
COPY schemas schemas
COPY src src
RUN cargo build --locked --release --bin tidemark

FROM debian:bookworm-20260824-slim
# A number, by which Kubernetes and its like can tell that it is not root. Its folder is where volumes are put.
RUN useradd --system --uid 10001 --user-group --shell /usr/sbin/nologin \
        --home-dir /var/lib/tidemark --create-home tidemark \
    && install --directory --owner tidemark --group tidemark --mode 0700 \
        /var/lib/tidemark/search /var/lib/tidemark/sandbox
# Without a list of authorities in the image the program trusts the usual public ones, which it brings along. One that is mounted
# as /etc/ssl/certs/ca-certificates.crt is trusted instead.
COPY --from=build /src/target/release/tidemark /usr/local/bin/tidemark
USER 10001:10001
WORKDIR /var/lib/tidemark
ENV TIDEMARK_LISTEN=0.0.0.0:8080 \
    TIDEMARK_SEARCH_INDEX=/var/lib/tidemark/search \
    TIDEMARK_LOG_FORMAT=json
EXPOSE 8080
# The image has no other HTTP client than the program itself. This is the check of `serve`, which the image runs unless it is told
# otherwise: for another command give `--no-healthcheck`, or a check of its own as docker-compose.yml does.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["tidemark", "probe", "http://127.0.0.1:8080/v2/health"]
ENTRYPOINT ["tidemark"]
CMD ["serve"]
