# Two stages: what builds does not ship. The image holds Python, the locked dependencies (those of the
# extras server and cluster, too) and us.
FROM python:3.13-slim AS build
WORKDIR /src
COPY requirements.txt ./
RUN python -m venv /opt/venv \
 && /opt/venv/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements.txt
COPY pyproject.toml README.md LICENSE ./
COPY webhook ./webhook
RUN pip install --no-cache-dir --disable-pip-version-check 'flit_core>=3.12' \
 && pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
 && /opt/venv/bin/pip install --no-cache-dir --no-deps /wheels/*.whl \
 && /opt/venv/bin/pip uninstall --yes pip

FROM python:3.13-slim
LABEL org.opencontainers.image.title="gpu-admission-webhook" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/venv /opt/venv
# No shell user, no home: gunicorn's heartbeat files go to /tmp, which may be the only writable place.
USER 65532:65532
WORKDIR /tmp
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
EXPOSE 8443
ENTRYPOINT ["gpu-webhook"]
CMD ["serve"]
