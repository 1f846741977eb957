# The command line in a container: docker build -t pylog . && docker run --rm -v /mnt/kafka-logs:/logs:ro pylog ls /logs
# The kernels are compiled here, for every processor of this kind; what compiles them stays behind.

FROM python:3.13-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN python -m venv /opt/pylog \
 && /opt/pylog/bin/python -m pip install --no-cache-dir --require-hashes -r requirements/core.lock \
 && /opt/pylog/bin/python -m pip install --no-cache-dir --no-deps . \
 && chmod -R go-w /opt/pylog

FROM python:3.13-slim-bookworm
COPY --from=build /opt/pylog /opt/pylog
RUN useradd --system --uid 10001 --no-create-home pylog
USER pylog
WORKDIR /logs
ENTRYPOINT ["/opt/pylog/bin/pylog"]
CMD ["--help"]
