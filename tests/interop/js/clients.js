// kafkajs, as tests use it: `clients.js read` reads partitions, `clients.js member ADDRESS GROUP
// TOPIC...` is a member of a consumer group. See ../go/main.go for what it takes and prints.
"use strict";

const readline = require("node:readline");
const fzstd = require("fzstd");
const kafkajs = require("kafkajs");
const lz4 = require("lz4js");

const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = kafkajs;
const QUIET_MS = 1500;
const FIRST_MS = 15000;
// As in tests/interop/group_member.py.
const SESSION_MS = 2000;
const HEARTBEAT_MS = 300;
const COMMIT_MS = 200;

CompressionCodecs[CompressionTypes.Snappy] = require("kafkajs-snappy");
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  decompress: async (packed) => Buffer.from(lz4.decompress(packed)),
});
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  decompress: async (packed) => Buffer.from(fzstd.decompress(packed)),
});

function say(what) {
  process.stdout.write(JSON.stringify(what) + "\n");
}

function encoded(content) {
  return content === null || content === undefined ? null : content.toString("base64");
}

function connection(address) {
  return new Kafka({
    brokers: [address],
    clientId: "tests",
    logLevel: logLevel.NOTHING,
    retry: { retries: 0 },
  });
}

function sayMessage(message) {
  const headers = Object.entries(message.headers || {}).flatMap(([name, values]) =>
    (Array.isArray(values) ? values : [values]).map((value) => [name, encoded(value)]),
  );
  // A timestamp may be no number of JavaScript's: it stays the text that it is.
  const line = JSON.stringify({
    timestamp: 0,
    offset: Number(message.offset),
    key: encoded(message.key),
    value: encoded(message.value),
    headers,
  });
  process.stdout.write(line.replace("0", message.timestamp ?? "-1") + "\n");
}

// It can read as a member of a group alone, so each partition has a group of its own.
async function read({ address, topic, partition, start, end, committed }, number) {
  const consumer = connection(address).consumer({
    groupId: `reader-${process.pid}-${number}`,
    readUncommitted: !committed,
    maxWaitTimeInMs: 50,
  });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  const failure = await new Promise((resolve) => {
    let timer = setTimeout(() => resolve("nothing arrived"), FIRST_MS);
    const watch = () => {
      clearTimeout(timer);
      timer = setTimeout(() => resolve(""), QUIET_MS);
    };
    consumer.on(consumer.events.CRASH, ({ payload }) => resolve(String(payload.error)));
    consumer.on(consumer.events.GROUP_JOIN, watch);
    consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) => {
      watch();
      if (payload.partition === partition && Number(payload.lastOffset) + 1 >= end) {
        resolve("");
      }
    });
    consumer
      .run({
        autoCommit: false,
        eachBatch: async ({ batch }) => {
          if (batch.partition === partition) {
            batch.messages.forEach(sayMessage);
          }
        },
      })
      .catch((error) => resolve(String(error)));
    consumer.seek({ topic, partition, offset: String(start) });
  });
  await consumer.disconnect();
  return failure;
}

async function readAll() {
  let number = 0;
  for await (const line of readline.createInterface({ input: process.stdin })) {
    say({ error: await read(JSON.parse(line), (number += 1)) });
  }
}

async function join(address, groupId, topics) {
  const consumer = connection(address).consumer({
    groupId,
    sessionTimeout: SESSION_MS,
    heartbeatInterval: HEARTBEAT_MS,
    rebalanceTimeout: 10000,
    maxWaitTimeInMs: 100,
    readUncommitted: true,
  });
  let assigned = [];
  const offsets = {};
  const report = () => say({ assigned, read: offsets });
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    assigned = Object.entries(payload.memberAssignment)
      .flatMap(([topic, partitions]) => partitions.map((each) => `${topic}-${each}`))
      .sort();
    report();
  });
  process.on("SIGTERM", async () => {
    await consumer.disconnect();
    process.exit(0);
  });
  await consumer.connect();
  await consumer.subscribe({ topics, fromBeginning: true });
  await consumer.run({
    autoCommitInterval: COMMIT_MS,
    eachMessage: async ({ topic, partition, message }) => {
      const name = `${topic}-${partition}`;
      const offset = Number(message.offset);
      offsets[name] = [offsets[name]?.[0] ?? offset, offset + 1];
      report();
    },
  });
}

const [mode, address, group, ...topics] = process.argv.slice(2);
(mode === "member" ? join(address, group, topics) : readAll()).catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
