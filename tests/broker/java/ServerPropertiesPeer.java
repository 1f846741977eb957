import java.io.FileInputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import kafka.server.KafkaConfig;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * What Kafka makes of files of server properties.
 *
 * For each file named on the command line: a line with its name, lines {@code name=value}, or a
 * line {@code REFUSED reason}. Values are those of topics by default, of the cleaner, and of the
 * broker; {@code property.<key>=<value>} is what java.util.Properties reads, in UTF-16 code units.
 *
 * Compiled by the Janino that comes with Spark: without lambdas, and with casts.
 */
public final class ServerPropertiesPeer {
    /** What a broker cannot do without, and says nothing about logs: names and values. */
    private static final String[] NEEDED = {
        "process.roles", "broker",
        "node.id", "1",
        "controller.quorum.voters", "2@localhost:9093",
        "controller.listener.names", "CONTROLLER",
        "listeners", "PLAINTEXT://localhost:9092",
    };
    private static final String[] OF_THE_BROKER = {
        "log.retention.check.interval.ms",
        "log.flush.scheduler.interval.ms",
        "log.flush.offset.checkpoint.interval.ms",
        "num.recovery.threads.per.data.dir",
    };

    private static PrintStream out;

    public static void main(String[] files) throws Exception {
        out = new PrintStream(System.out, true, "UTF-8");
        for (int i = 0; i < files.length; i++) {
            out.println("FILE " + files[i]);
            Properties properties = new Properties();
            InputStream in = new FileInputStream(files[i]);
            try {
                properties.load(in);
            } catch (IllegalArgumentException malformed) {
                out.println("REFUSED " + malformed.getMessage());
                continue;
            } finally {
                in.close();
            }
            for (Iterator each = properties.keySet().iterator(); each.hasNext();) {
                String key = (String) each.next();
                print("property." + units(key), units(properties.getProperty(key)));
            }
            for (int j = 0; j < NEEDED.length; j += 2) {
                if (!properties.containsKey(NEEDED[j])) {
                    properties.setProperty(NEEDED[j], NEEDED[j + 1]);
                }
            }
            try {
                print(new KafkaConfig(properties, false));
            } catch (RuntimeException refused) {
                out.println("REFUSED " + String.valueOf(refused.getMessage()).replace('\n', ' '));
            }
        }
    }

    private static void print(KafkaConfig config) {
        TreeMap topics = new TreeMap((Map) config.extractLogConfigMap());
        new LogConfig(topics); // refuses more
        LogConfig.validateBrokerLogConfigValues(topics, false);
        for (Iterator each = topics.keySet().iterator(); each.hasNext();) {
            String name = (String) each.next();
            print(name, topics.get(name));
        }
        CleanerConfig cleaner = new CleanerConfig(config);
        print("log.cleaner.enable", String.valueOf(cleaner.enableCleaner));
        print("log.cleaner.threads", String.valueOf(cleaner.numThreads));
        print("log.cleaner.dedupe.buffer.size", String.valueOf(cleaner.dedupeBufferSize));
        print("log.cleaner.io.buffer.size", String.valueOf(cleaner.ioBufferSize));
        print("log.cleaner.io.buffer.load.factor", String.valueOf(cleaner.dedupeBufferLoadFactor));
        print("log.cleaner.io.max.bytes.per.second", String.valueOf(cleaner.maxIoBytesPerSecond));
        print("log.cleaner.backoff.ms", String.valueOf(cleaner.backoffMs));
        print("log.dirs", config.logDirs());
        print("num.partitions", String.valueOf(config.numPartitions()));
        for (int i = 0; i < OF_THE_BROKER.length; i++) {
            print(OF_THE_BROKER[i], config.values().get(OF_THE_BROKER[i]));
        }
    }

    private static void print(String name, Object value) {
        if (!(value instanceof Collection)) {
            out.println(name + "=" + value);
            return;
        }
        List texts = new ArrayList();
        for (Iterator each = ((Collection) value).iterator(); each.hasNext();) {
            texts.add(String.valueOf(each.next()));
        }
        out.println(name + "=" + String.join(",", (Iterable) texts));
    }

    private static String units(String text) {
        StringBuilder found = new StringBuilder();
        for (int i = 0; i < text.length(); i++) {
            found.append(i == 0 ? "" : " ").append(Integer.toHexString(text.charAt(i)));
        }
        return found.toString();
    }
}
