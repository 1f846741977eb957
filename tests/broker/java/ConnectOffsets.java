import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.util.Iterator;
import java.util.Map;
import org.apache.kafka.connect.runtime.rest.entities.ConnectorOffsets;
import org.apache.kafka.connect.util.SinkUtils;

/** Prints what Kafka Connect makes of the body of PATCH /connectors/NAME/offsets of a sink. */
public class ConnectOffsets {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        ConnectorOffsets body =
            (ConnectorOffsets) mapper.readValue(new File(arguments[0]), ConnectorOffsets.class);
        Map found = SinkUtils.parseSinkConnectorOffsets(body.toMap());
        for (Iterator each = found.entrySet().iterator(); each.hasNext();) {
            Map.Entry entry = (Map.Entry) each.next();
            System.out.println(entry.getKey() + " " + entry.getValue());
        }
    }
}
