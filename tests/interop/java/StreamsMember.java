import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.PrintStream;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.TaskMetadata;
import org.apache.kafka.streams.ThreadMetadata;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.api.RecordMetadata;

/** A Kafka Streams application that only reads: prints what tests.interop.group_member prints. */
public class StreamsMember {
    private static final Map READ = new TreeMap();

    /** Takes the address, the application's id, a topic, and a directory for its state. */
    public static void main(String[] arguments) throws Exception {
        PrintStream reports = System.out;
        System.setOut(System.err); // where logs go
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(arguments[2]).process(new Reading(), new String[0]);
        final KafkaStreams streams = new KafkaStreams(builder.build(), properties(arguments));
        Runtime.getRuntime().addShutdownHook(new Thread() {
            public void run() {
                streams.close();
            }
        });
        streams.start();
        ObjectMapper mapper = new ObjectMapper();
        String told = "";
        while (true) {
            Map report = new LinkedHashMap();
            report.put("assigned", assigned(streams));
            synchronized (READ) {
                report.put("read", new LinkedHashMap(READ));
            }
            String now = mapper.writeValueAsString(report);
            if (!now.equals(told)) {
                reports.println(now);
                reports.flush();
                told = now;
            }
            Thread.sleep(50);
        }
    }

    private static TreeSet assigned(KafkaStreams streams) {
        TreeSet names = new TreeSet();
        Iterator threads = streams.metadataForLocalThreads().iterator();
        while (threads.hasNext()) {
            Iterator tasks = ((ThreadMetadata) threads.next()).activeTasks().iterator();
            while (tasks.hasNext()) {
                Iterator places = ((TaskMetadata) tasks.next()).topicPartitions().iterator();
                while (places.hasNext()) {
                    names.add(places.next().toString());
                }
            }
        }
        return names;
    }

    private static Properties properties(String[] arguments) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        properties.put("application.id", arguments[1]);
        properties.put("state.dir", arguments[3]);
        properties.put("default.key.serde", Serdes.ByteArraySerde.class.getName());
        properties.put("default.value.serde", Serdes.ByteArraySerde.class.getName());
        properties.put("commit.interval.ms", "200");
        // It writes nothing, and a read-only server refuses what an idempotent producer begins with.
        properties.put("producer.enable.idempotence", "false");
        properties.put("main.consumer.auto.offset.reset", "earliest");
        properties.put("main.consumer.session.timeout.ms", "2000");
        properties.put("main.consumer.heartbeat.interval.ms", "300");
        return properties;
    }

    private static class Reading implements ProcessorSupplier {
        public Processor get() {
            return new Noting();
        }
    }

    private static class Noting extends ContextualProcessor {
        public void process(Record record) {
            RecordMetadata where = (RecordMetadata) context().recordMetadata().get();
            String name = where.topic() + "-" + where.partition();
            synchronized (READ) {
                Object[] before = (Object[]) READ.get(name);
                Object first = before == null ? Long.valueOf(where.offset()) : before[0];
                READ.put(name, new Object[] {first, Long.valueOf(where.offset() + 1)});
            }
        }
    }
}
