import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Base64;
import org.apache.spark.sql.avro.AvroDataToCatalyst;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map$;

/**
 * Reads values as the expression of Spark's from_avro does, without a session of Spark.
 *
 * <p>Each line of the input is a writer's schema, a reader's schema and values, each of the output
 * the values: what JSON has no type for is an object with its text, times are numbers.
 */
public class SparkAvro {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        System.setOut(System.err);
        String line;
        while ((line = in.readLine()) != null) {
            JsonNode request = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            try {
                read(request, answer);
            } catch (Exception error) {
                Throwable cause = error;
                while (cause.getCause() != null) {
                    cause = cause.getCause();
                }
                answer.put("error", String.valueOf(cause));
            }
            out.println(JSON.writeValueAsString(answer));
        }
        out.flush();
    }

    private static void read(JsonNode request, ObjectNode answer) throws Exception {
        scala.collection.immutable.Map options =
                (scala.collection.immutable.Map) Map$.MODULE$.empty();
        options = (scala.collection.immutable.Map) options.updated("mode", request.get("mode").asText());
        options = (scala.collection.immutable.Map) options.updated("avroSchema", request.get("reader").asText());
        ArrayNode values = answer.putArray("values");
        for (int i = 0; i < request.get("payloads").size(); i++) {
            JsonNode content = (JsonNode) request.get("payloads").get(i);
            Expression payload =
                    Literal$.MODULE$.create(
                            (Object) Base64.getDecoder().decode(content.asText()),
                            DataTypes.BinaryType);
            AvroDataToCatalyst expression =
                    new AvroDataToCatalyst(payload, request.get("writer").asText(), options);
            DataType type = expression.dataType();
            answer.put("type", type.simpleString());
            values.add(node(expression.eval((InternalRow) null), type));
        }
    }

    private static JsonNode node(Object value, DataType type) {
        if (value == null) {
            return NODES.nullNode();
        }
        if (type instanceof StructType) {
            InternalRow row = (InternalRow) value;
            StructField[] fields = ((StructType) type).fields();
            ObjectNode made = NODES.objectNode();
            for (int i = 0; i < fields.length; i++) {
                DataType of = fields[i].dataType();
                made.set(fields[i].name(), node(row.isNullAt(i) ? null : row.get(i, of), of));
            }
            return made;
        }
        if (type instanceof ArrayType) {
            return items((ArrayData) value, ((ArrayType) type).elementType());
        }
        if (type instanceof MapType) {
            MapData map = (MapData) value;
            ArrayNode values = items(map.valueArray(), ((MapType) type).valueType());
            ObjectNode made = NODES.objectNode();
            for (int i = 0; i < map.numElements(); i++) {
                made.set(String.valueOf(map.keyArray().get(i, DataTypes.StringType)), (JsonNode) values.get(i));
            }
            return made;
        }
        if (value instanceof byte[]) {
            return NODES.objectNode().put("bytes", Base64.getEncoder().encodeToString((byte[]) value));
        }
        if (value instanceof Boolean) {
            return NODES.booleanNode(((Boolean) value).booleanValue());
        }
        if (value instanceof Integer || value instanceof Long) {
            return NODES.numberNode(((Number) value).longValue());
        }
        if (value instanceof Float || value instanceof Double) {
            return NODES.numberNode(((Number) value).doubleValue());
        }
        return NODES.textNode(String.valueOf(value));
    }

    private static ArrayNode items(ArrayData items, DataType type) {
        ArrayNode made = NODES.arrayNode();
        for (int i = 0; i < items.numElements(); i++) {
            made.add(node(items.isNullAt(i) ? null : items.get(i, type), type));
        }
        return made;
    }
}
