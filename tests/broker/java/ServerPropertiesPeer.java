import java.io.FileInputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.stream.Collectors;
import kafka.server.KafkaConfig;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * What Kafka makes of files of server properties.
 *
 * For each file named on the command line: a line with its name, lines {@code name=value}, or a
 * line {@code REFUSED reason}. Values are those of topics by default, of the cleaner, and of the
 * broker; {@code property.<key>=<value>} is what java.util.Properties reads, in UTF-16 code units.
 */
public final class ServerPropertiesPeer {
    /** What a broker cannot do without, and says nothing about logs. */
    private static final Map<String, String> NEEDED = Map.of(
        "process.roles", "broker",
        "node.id", "1",
        "controller.quorum.voters", "2@localhost:9093",
        "controller.listener.names", "CONTROLLER",
        "listeners", "PLAINTEXT://localhost:9092");

    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    public static void main(String[] files) throws Exception {
        for (String file : files) {
            OUT.println("FILE " + file);
            Properties properties = new Properties();
            try (InputStream in = new FileInputStream(file)) {
                properties.load(in);
            } catch (IllegalArgumentException malformed) {
                OUT.println("REFUSED " + malformed.getMessage());
                continue;
            }
            properties.forEach((key, value) -> OUT.println("property." + units(key) + "=" + units(value)));
            NEEDED.forEach(properties::putIfAbsent);
            try {
                print(new KafkaConfig(properties, false));
            } catch (RuntimeException refused) {
                OUT.println("REFUSED " + String.valueOf(refused.getMessage()).replace('\n', ' '));
            }
        }
    }

    private static void print(KafkaConfig config) {
        Map<String, Object> topics = new TreeMap<>(config.extractLogConfigMap());
        new LogConfig(topics); // refuses more
        LogConfig.validateBrokerLogConfigValues(topics, false);
        topics.forEach(ServerPropertiesPeer::print);
        CleanerConfig cleaner = new CleanerConfig(config);
        print("log.cleaner.enable", cleaner.enableCleaner);
        print("log.cleaner.threads", cleaner.numThreads);
        print("log.cleaner.dedupe.buffer.size", cleaner.dedupeBufferSize);
        print("log.cleaner.io.buffer.size", cleaner.ioBufferSize);
        print("log.cleaner.io.buffer.load.factor", cleaner.dedupeBufferLoadFactor);
        print("log.cleaner.io.max.bytes.per.second", cleaner.maxIoBytesPerSecond);
        print("log.cleaner.backoff.ms", cleaner.backoffMs);
        print("log.dirs", config.logDirs());
        print("num.partitions", config.numPartitions());
        for (String name : List.of(
                "log.retention.check.interval.ms",
                "log.flush.scheduler.interval.ms",
                "log.flush.offset.checkpoint.interval.ms",
                "num.recovery.threads.per.data.dir")) {
            print(name, config.values().get(name));
        }
    }

    private static void print(String name, Object value) {
        Object text = value instanceof Collection<?> values
            ? values.stream().map(Object::toString).collect(Collectors.joining(","))
            : value;
        OUT.println(name + "=" + text);
    }

    private static String units(Object text) {
        return ((String) text).chars().mapToObj(Integer::toHexString).collect(Collectors.joining(" "));
    }
}
