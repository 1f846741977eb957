# The command line in a container: docker build -t pylog . && docker run --rm -v /mnt/kafka-logs:/logs:ro pylog ls /logs
# The kernels are compiled here, for every x86-64: a container writes nothing but what its command writes.

FROM python:3.13-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN python -m venv /opt/pylog \
 && /opt/pylog/bin/python -m pip install --no-cache-dir --require-hashes -r requirements/core.lock \
 && /opt/pylog/bin/python -m pip install --no-cache-dir --no-deps . \
 && chmod -R go-w /opt/pylog \
 && /opt/pylog/bin/pylog compile --all-levels

FROM python:3.13-slim-bookworm
COPY --from=build /opt/pylog /opt/pylog
RUN useradd --system --uid 10001 --no-create-home pylog
USER pylog
WORKDIR /logs
ENTRYPOINT ["/opt/pylog/bin/pylog"]
CMD ["--help"]
