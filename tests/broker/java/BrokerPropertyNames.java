import java.util.Iterator;
import java.util.TreeSet;

import org.apache.kafka.server.config.AbstractKafkaConfig;

/** Prints every property that a broker of this version has. */
public class BrokerPropertyNames {
    public static void main(String[] args) {
        Iterator names = new TreeSet(AbstractKafkaConfig.CONFIG_DEF.names()).iterator();
        while (names.hasNext()) {
            System.out.println("NAME " + names.next());
        }
    }
}
