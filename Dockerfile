# Two stages: what builds does not ship. The image holds Python, the locked dependencies (those of the
# extras server and cluster, too) and us. It has no shell and no package manager: `kubectl debug` brings them.
#
# Tags, not digests: both bases get Debian's security updates every few days. A release resolves them to
# digests, verifies the signature of the second, and notes both in the provenance (.github/workflows/release.yaml).
ARG BUILD_BASE=docker.io/library/python:3.13-slim
ARG BASE=gcr.io/distroless/python3-debian13:nonroot

FROM ${BUILD_BASE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ONLY_BINARY=:all: \
    PIP_ROOT_USER_ACTION=ignore
# Where the base has its Python: the environment names it.
RUN test -e /usr/bin/python3.13 || ln -s /usr/local/bin/python3.13 /usr/bin/python3.13; \
    /usr/bin/python3.13 -m venv --without-pip /opt/venv
WORKDIR /src
COPY requirements.txt requirements-build.txt ./
# Of kubernetes we use the configuration and the authentication. The client for asyncio, with what only
# it needs, and the classes of all APIs would be half of the image; the base has time zones.
# tests/release/test_image.py runs us without all this.
RUN pip --python /opt/venv install --no-compile --require-hashes -r requirements.txt \
 && pip install --require-hashes -r requirements-build.txt \
 && pip --python /opt/venv uninstall --yes \
    aiohappyeyeballs aiohttp aiohttp-retry aiosignal attrs frozenlist multidict propcache tzdata yarl \
 && cd /opt/venv/lib/python3.13/site-packages \
 && rm -r kubernetes/aio kubernetes/client/api/[!_]* kubernetes/client/models/[!_]*
COPY pyproject.toml README.md LICENSE ./
COPY webhook ./webhook
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
 && pip --python /opt/venv install --no-compile --no-deps /wheels/*.whl

# What is in the image, for scanners: `docker build --target sbom --output=. .` writes sbom.cdx.json.
FROM build AS inspect
COPY requirements-release.txt ./
RUN python -m venv /opt/tools && /opt/tools/bin/pip install --require-hashes -r requirements-release.txt \
 && /opt/tools/bin/cyclonedx-py environment --output-reproducible --output-file /sbom.cdx.json /opt/venv
FROM scratch AS sbom
COPY --from=inspect /sbom.cdx.json /

FROM ${BASE}
LABEL org.opencontainers.image.title="gpu-admission-webhook" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/venv /opt/venv
# Compiled by the Python that runs it, whose own modules the base ships as text only.
USER 0:0
RUN ["/usr/bin/python3.13", "-m", "compileall", "-q", "--invalidation-mode=unchecked-hash", "/usr/lib/python3.13", "/opt/venv/lib"]
# No shell user, no home: gunicorn's heartbeat files go to /tmp, which may be the only writable place.
USER 65532:65532
WORKDIR /tmp
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
EXPOSE 8443
ENTRYPOINT ["gpu-webhook"]
CMD ["serve"]
