// Kafka's own UnifiedLog, LogCleanerManager and Cleaner on one log directory, job by job.
//
// A line of JSON in, a line of JSON out. It is compiled by the Janino that comes with Spark, so that
// a Java without javac will do: no lambdas here, and casts where javac would infer.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.PreCleanStats;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

public class KafkaLog {
  static final ObjectMapper JSON = new ObjectMapper();

  /** A clock that stands still unless somebody sets it. */
  static class StandingClock implements Time {
    volatile long now;

    public long milliseconds() {
      return now;
    }

    public long nanoseconds() {
      return now * 1000000L;
    }

    public void sleep(long ms) {
      now += ms;
    }

    public void waitObject(Object object, Supplier condition, long deadlineMs) {
      throw new UnsupportedOperationException();
    }
  }

  /** A task that has been run, or never will be. */
  static class Settled implements ScheduledFuture {
    public long getDelay(TimeUnit unit) {
      return 0L;
    }

    public int compareTo(Object other) {
      return 0;
    }

    public boolean cancel(boolean mayInterrupt) {
      return true;
    }

    public boolean isCancelled() {
      return false;
    }

    public boolean isDone() {
      return true;
    }

    public Object get() {
      return null;
    }

    public Object get(long timeout, TimeUnit unit) {
      return null;
    }
  }

  /** Runs at once what has no delay; what has one, such as the removal of deleted files, never. */
  static class ImmediateScheduler implements Scheduler {
    public void startup() {}

    public void shutdown() {}

    public ScheduledFuture schedule(String name, Runnable task, long delayMs, long periodMs) {
      if (delayMs <= 0 && periodMs <= 0) {
        task.run();
      }
      return new Settled();
    }

    public void resizeThreadPool(int threads) {}
  }

  /** What a cleaner's thread asks between steps; nobody aborts it here. */
  static class NeverAborted implements Consumer {
    public void accept(Object topicPartition) {}
  }

  final File root;
  final TopicPartition topicPartition;
  final JsonNode job;
  final StandingClock time = new StandingClock();
  final LogDirFailureChannel failures = new LogDirFailureChannel(10);
  final ObjectNode answer = JSON.createObjectNode();
  UnifiedLog log;

  KafkaLog(JsonNode job) {
    this.job = job;
    root = new File(field(job, "directory").asText());
    if (!root.isAbsolute() || !root.isDirectory() || root.getParent() == null) {
      throw new IllegalArgumentException("not a log directory: " + job);
    }
    topicPartition = new TopicPartition(field(job, "topic").asText(), field(job, "partition").asInt(0));
    time.now = field(job, "now").asLong();
  }

  /** For Janino, which takes path() for the one of TreeNode. */
  static JsonNode field(JsonNode node, String name) {
    return (JsonNode) node.path(name);
  }

  OffsetCheckpointFile checkpoint(String name) throws Exception {
    return new OffsetCheckpointFile(new File(root, name), failures);
  }

  long checkpointed(String name, long otherwise) throws Exception {
    Long value = (Long) checkpoint(name).read().get(topicPartition);
    return value == null ? otherwise : value.longValue();
  }

  /** As LogManager.loadLog and a leader without followers do it. */
  void open() throws Exception {
    Properties properties = new Properties();
    Iterator names = field(job, "config").fieldNames();
    while (names.hasNext()) {
      String name = (String) names.next();
      String kafkas = name.equals("segment.bytes") ? "internal.segment.bytes" : name;
      properties.put(kafkas, field(field(job, "config"), name).asText());
    }
    CleanShutdownFileHandler marker = new CleanShutdownFileHandler(root.getPath());
    log =
        UnifiedLog.create(
            new File(root, topicPartition.topic() + "-" + topicPartition.partition()),
            new LogConfig(properties),
            checkpointed("log-start-offset-checkpoint", 0L),
            checkpointed("recovery-point-offset-checkpoint", 0L),
            new ImmediateScheduler(),
            new BrokerTopicStats(),
            time,
            900000,
            new ProducerStateManagerConfig(field(job, "producerExpirationMs").asInt(86400000), false),
            600000,
            failures,
            true,
            Optional.empty());
    marker.delete();
    log.updateHighWatermark(
        job.has("highWatermark") ? field(job, "highWatermark").asLong() : log.logEndOffset());
  }

  /** As LogManager.shutdown does it, for a directory with this one log. */
  void close() throws Exception {
    log.flush(true);
    try {
      // From Kafka 4.4 on, closing does not cut the active segment's indexes to size.
      log.getClass().getMethod("prepareActiveSegmentForClose", new Class[0])
          .invoke(log, new Object[0]);
    } catch (NoSuchMethodException isOlder) {
      // closing does
    }
    log.close();
    HashMap recoveryPoints = new HashMap();
    recoveryPoints.put(topicPartition, Long.valueOf(log.recoveryPoint()));
    checkpoint("recovery-point-offset-checkpoint").write(recoveryPoints);
    HashMap starts = new HashMap();
    if (log.logStartOffset() > ((LogSegment) log.logSegments().iterator().next()).baseOffset()) {
      starts.put(topicPartition, Long.valueOf(log.logStartOffset()));
    }
    checkpoint("log-start-offset-checkpoint").write(starts);
    HashMap highWatermarks = new HashMap();
    highWatermarks.put(topicPartition, Long.valueOf(log.highWatermark()));
    checkpoint("replication-offset-checkpoint").write(highWatermarks);
    new CleanShutdownFileHandler(root.getPath()).write(-1L);
  }

  /** Appends bytes as they are, rolls, deletes records. */
  void prepare() throws Exception {
    Iterator steps = field(job, "steps").elements();
    while (steps.hasNext()) {
      JsonNode step = (JsonNode) steps.next();
      if (step.has("now")) {
        time.now = field(step, "now").asLong();
      }
      if (step.has("append")) {
        byte[] bytes = Base64.getDecoder().decode(field(step, "append").asText());
        log.appendAsFollower(
            MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)), Integer.MAX_VALUE);
        log.updateHighWatermark(log.logEndOffset());
      }
      if (step.has("roll")) {
        log.roll();
      }
      if (step.has("deleteRecords")) {
        log.maybeIncrementLogStartOffset(
            Math.min(field(step, "deleteRecords").asLong(), log.highWatermark()),
            LogStartOffsetIncrementReason.ClientRecordDeletion);
      }
    }
  }

  static long cpuNanos() {
    return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
        .getProcessCpuTime();
  }

  /** One turn of a cleaner's thread: LogCleaner.CleanerThread.cleanFilthiestLog. */
  void clean() throws Exception {
    JsonNode config = field(job, "cleaner");
    int bufferSize = field(config, "ioBufferSize").asInt(512 * 1024);
    Cleaner cleaner =
        new Cleaner(
            0,
            new SkimpyOffsetMap(field(config, "dedupeBufferSize").asInt(4 << 20)),
            bufferSize / 2,
            field(config, "maxMessageSize").asInt(1048588),
            field(config, "loadFactor").asDouble(0.9),
            new Throttler(Double.MAX_VALUE, 300L, "cleaner-io", "bytes", time),
            time,
            new NeverAborted());
    ConcurrentHashMap logs = new ConcurrentHashMap();
    logs.put(topicPartition, log);
    LogCleanerManager manager =
        new LogCleanerManager(Collections.singletonList(root), logs, failures);
    PreCleanStats before = new PreCleanStats();
    Optional grabbed = manager.grabFilthiestCompactedLog(time, before);
    answer.put("compactionDelay", before.maxCompactionDelayMs());
    if (grabbed.isPresent()) {
      LogToClean candidate = (LogToClean) grabbed.get();
      answer
          .putObject("candidate")
          .put("firstDirtyOffset", candidate.firstDirtyOffset())
          .put("firstUncleanableOffset", candidate.firstUncleanableOffset())
          .put("cleanBytes", candidate.cleanBytes())
          .put("cleanableBytes", candidate.cleanableBytes())
          .put("totalBytes", candidate.totalBytes())
          .put("cleanableRatio", candidate.cleanableRatio());
      long end = candidate.firstDirtyOffset();
      long cpuStarted = cpuNanos();
      long started = System.nanoTime();
      try {
        Map.Entry cleaned = (Map.Entry) cleaner.clean(candidate);
        answer.put("cleanNanos", System.nanoTime() - started);
        answer.put("cleanCpuNanos", cpuNanos() - cpuStarted);
        end = ((Long) cleaned.getKey()).longValue();
        report((CleanerStats) cleaned.getValue());
      } catch (Throwable error) {
        answer.put("cleanerError", error.toString());
      }
      manager.doneCleaning(topicPartition, root, end);
      answer.put("endOffset", end);
    }
    if (field(job, "retention").asBoolean(true)) {
      Map deletable = manager.deletableLogs();
      answer.put("deletable", deletable.size());
      if (!deletable.isEmpty()) {
        answer.put("deletedSegments", log.deleteOldSegments());
        manager.doneDeleting(new ArrayList(deletable.keySet()));
      }
    }
    manager.updateCheckpoints(root, Optional.empty(), Optional.empty());
  }

  void report(CleanerStats stats) {
    answer
        .putObject("stats")
        .put("bytesRead", stats.bytesRead())
        .put("bytesWritten", stats.bytesWritten())
        .put("mapMessagesRead", stats.mapMessagesRead())
        .put("messagesRead", stats.messagesRead())
        .put("messagesWritten", stats.messagesWritten())
        .put("invalidMessagesRead", stats.invalidMessagesRead())
        .put("bufferUtilization", stats.bufferUtilization());
  }

  void describe() {
    answer.put("logStartOffset", log.logStartOffset());
    answer.put("logEndOffset", log.logEndOffset());
    answer.put("highWatermark", log.highWatermark());
    answer.put("lastStableOffset", log.lastStableOffset());
    ArrayNode bases = answer.putArray("segments");
    Iterator segments = log.logSegments().iterator();
    while (segments.hasNext()) {
      bases.add(((LogSegment) segments.next()).baseOffset());
    }
  }

  ObjectNode run() throws Exception {
    open();
    String what = field(job, "what").asText();
    if (what.equals("prepare")) {
      prepare();
    } else if (what.equals("clean")) {
      clean();
    } else if (what.equals("retention")) {
      answer.put("deletedSegments", log.deleteOldSegments());
    } else if (!what.equals("open")) {
      throw new IllegalArgumentException(what);
    }
    describe();
    close();
    return answer;
  }

  public static void main(String[] arguments) throws Exception {
    PrintStream out = System.out;
    System.setOut(System.err); // whatever else prints
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      ObjectNode answer;
      try {
        answer = new KafkaLog(JSON.readTree(line)).run();
      } catch (Throwable error) {
        answer = JSON.createObjectNode();
        answer.put("error", error.toString());
      }
      out.println(JSON.writeValueAsString(answer));
      out.flush();
    }
  }
}
