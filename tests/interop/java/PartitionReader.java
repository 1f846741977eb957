import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Reads partitions with Kafka's consumer: in and out as ../go/main.go. */
public class PartitionReader {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final long SECONDS = 30;

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String error = "";
            try {
                read(MAPPER.readTree(line));
            } catch (Exception problem) {
                error = problem.toString();
            }
            say(Collections.singletonMap("error", error));
        }
    }

    private static void read(JsonNode wanted) throws Exception {
        TopicPartition where =
            new TopicPartition(wanted.get("topic").asText(), wanted.get("partition").asInt());
        long end = wanted.get("end").asLong();
        KafkaConsumer consumer = new KafkaConsumer(properties(wanted));
        try {
            consumer.assign(Collections.singletonList(where));
            consumer.seek(where, wanted.get("start").asLong());
            long deadline = System.nanoTime() + SECONDS * 1000000000L;
            while (consumer.position(where) < end) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("no end within " + SECONDS + " s");
                }
                Iterator found = consumer.poll(Duration.ofMillis(100)).iterator();
                while (found.hasNext()) {
                    say(told((ConsumerRecord) found.next()));
                }
            }
        } finally {
            consumer.close();
        }
    }

    private static Properties properties(JsonNode wanted) {
        boolean isCommitted = wanted.get("committed").asBoolean();
        Properties properties = new Properties();
        properties.put("bootstrap.servers", wanted.get("address").asText());
        properties.put("key.deserializer", ByteArrayDeserializer.class.getName());
        properties.put("value.deserializer", ByteArrayDeserializer.class.getName());
        properties.put("isolation.level", isCommitted ? "read_committed" : "read_uncommitted");
        properties.put("enable.auto.commit", "false");
        properties.put("auto.offset.reset", "none");
        properties.put("fetch.max.wait.ms", "50");
        return properties;
    }

    private static Map told(ConsumerRecord record) {
        List headers = new ArrayList();
        Iterator found = record.headers().iterator();
        while (found.hasNext()) {
            Header header = (Header) found.next();
            headers.add(Arrays.asList(new Object[] {header.key(), header.value()}));
        }
        Map line = new LinkedHashMap();
        line.put("offset", Long.valueOf(record.offset()));
        line.put("timestamp", Long.valueOf(record.timestamp()));
        line.put("timestampType", Integer.valueOf(record.timestampType().id));
        line.put("leaderEpoch", record.leaderEpoch().orElse(Integer.valueOf(0)));
        line.put("key", record.key());
        line.put("value", record.value());
        line.put("headers", headers);
        return line;
    }

    private static void say(Map line) throws Exception {
        System.out.println(MAPPER.writeValueAsString(line));
        System.out.flush();
    }
}
