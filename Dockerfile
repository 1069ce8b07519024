# Build it with a registry: docker build --tag spectacular-bid:0.1.0 . ; without one: make image
# For the very same bytes every time name the base by its digest: --build-arg PYTHON_IMAGE=...@sha256:...
ARG PYTHON_IMAGE=docker.io/library/python:3.13.9-slim-trixie

# hadolint ignore=DL3006
FROM ${PYTHON_IMAGE} AS build
WORKDIR /build
RUN python3 -m venv /tools && python3 -m venv --without-pip /opt/spectacular-bid
COPY .locks/build.txt .locks/run.txt .locks/
RUN /tools/bin/pip install --no-cache-dir --require-hashes --only-binary :all: --requirement .locks/build.txt && \
    /tools/bin/pip --python /opt/spectacular-bid/bin/python install \
        --no-cache-dir --require-hashes --only-binary :all: --requirement .locks/run.txt
COPY pyproject.toml LICENSE ./
COPY engine engine
COPY service service
COPY proto/spectacularbid proto/spectacularbid
COPY clients/python/spectacularbid clients/python/spectacularbid
RUN /tools/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir dist . && \
    /tools/bin/pip --python /opt/spectacular-bid/bin/python install --no-cache-dir --no-deps dist/*.whl

# hadolint ignore=DL3006
FROM ${PYTHON_IMAGE}
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Spectacular Bid" \
      org.opencontainers.image.description="An authoritative gRPC game service for the two-player domino duel Spectacular Bid." \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/spectacular-bid /opt/spectacular-bid
RUN install -d -m 0700 -o 65532 -g 65532 /data
ENV PATH=/opt/spectacular-bid/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    SPECBID_DATABASE=/data/spectacular-bid.sqlite3
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 50051 50052 9464
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 CMD ["spectacular-bid", "healthcheck"]
ENTRYPOINT ["spectacular-bid"]
CMD ["serve"]
