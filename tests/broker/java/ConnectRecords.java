import java.io.BufferedReader;
import java.io.FileReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.runtime.AbstractStatus;
import org.apache.kafka.connect.storage.KafkaConfigBackingStore;
import org.apache.kafka.connect.storage.KafkaStatusBackingStore;
import org.apache.kafka.connect.storage.OffsetUtils;
import org.apache.kafka.connect.util.ConnectorTaskId;

/** Prints what Kafka Connect's own classes make of records of its topics, a line for each. */
public class ConnectRecords {
    static final JsonConverter KEYS = converter(true);
    static final JsonConverter VALUES = converter(false);

    static JsonConverter converter(boolean isKey) {
        Map settings = new HashMap();
        settings.put("schemas.enable", "false");
        JsonConverter made = new JsonConverter();
        made.configure(settings, isKey);
        return made;
    }

    static String json(Object value) {
        return value == null ? "null" : new String(VALUES.fromConnectData("t", null, value));
    }

    static String value(byte[] data) {
        return data == null ? "null" : json(VALUES.toConnectData("t", data).value());
    }

    static String offset(byte[] key, byte[] value) {
        Map found = new HashMap();
        OffsetUtils.processPartitionKey(key, new byte[1], KEYS, found);
        if (found.isEmpty()) return "none";
        Map.Entry entry = (Map.Entry) found.entrySet().iterator().next();
        Object partition = ((java.util.Set) entry.getValue()).iterator().next();
        return entry.getKey() + "\t" + json(partition) + "\t" + value(value);
    }

    static Object store() throws Exception {
        Constructor[] all = KafkaStatusBackingStore.class.getDeclaredConstructors();
        for (int at = 0; at < all.length; at++) {
            Class[] types = all[at].getParameterTypes();
            if (types.length == 4 && types[2] == java.util.function.Supplier.class) {
                all[at].setAccessible(true);
                return all[at].newInstance(new Object[] {Time.SYSTEM, VALUES, null, "test"});
            }
        }
        throw new IllegalStateException("no constructor");
    }

    static String status(String key, byte[] value) throws Exception {
        KafkaStatusBackingStore store = (KafkaStatusBackingStore) store();
        Method read = KafkaStatusBackingStore.class.getDeclaredMethod(
            "read", new Class[] {ConsumerRecord.class});
        read.setAccessible(true);
        read.invoke(store, new Object[] {new ConsumerRecord("t", 0, 0L, key, value)});
        if (key.startsWith("status-topic-")) {
            Field topics = KafkaStatusBackingStore.class.getDeclaredField("topics");
            topics.setAccessible(true);
            return String.valueOf(topics.get(store));
        }
        AbstractStatus found;
        String name;
        if (key.startsWith("status-task-")) {
            Method parse = KafkaStatusBackingStore.class.getDeclaredMethod(
                "parseConnectorTaskId", new Class[] {String.class});
            parse.setAccessible(true);
            ConnectorTaskId id = (ConnectorTaskId) parse.invoke(store, new Object[] {key});
            found = store.get(id);
            name = id.connector() + "\t" + id.task();
        } else {
            String connector = (String) store.connectors().iterator().next();
            found = store.get(connector);
            name = connector + "\tnull";
        }
        return name + "\t" + found.state() + "\t" + found.workerId() + "\t" + found.generation()
            + "\t" + found.trace();
    }

    public static void main(String[] arguments) throws Exception {
        Field[] fields = KafkaConfigBackingStore.class.getDeclaredFields();
        for (int at = 0; at < fields.length; at++) {
            boolean isText = fields[at].getType() == String.class;
            if (isText && Modifier.isStatic(fields[at].getModifiers())) {
                fields[at].setAccessible(true);
                System.out.println("KEY " + fields[at].getName() + "=" + fields[at].get(null));
            }
        }
        BufferedReader lines = new BufferedReader(new FileReader(arguments[0]));
        HexFormat hex = HexFormat.of();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split(" ");
            byte[] key = hex.parseHex(parts[1]);
            byte[] value = parts[2].equals("-") ? null : hex.parseHex(parts[2]);
            String found;
            if (parts[0].equals("offsets")) found = offset(key, value);
            else if (parts[0].equals("status")) found = status(new String(key, "UTF-8"), value);
            else found = value(value);
            System.out.println("RECORD " + found.replace("\n", "\\n"));
        }
    }
}
