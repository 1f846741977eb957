import java.io.PrintStream;
import java.util.Iterator;
import java.util.Map;
import org.apache.kafka.common.protocol.types.ArrayOf;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.CompactArrayOf;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.NullableSchema;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

/**
 * The schemas of Kafka's messages, of each version, one field a line.
 *
 * For each message named on the command line and each of its versions: a line with both, then its
 * fields, indented by their depth: {@code name type}, and {@code tag=n} of a tagged field.
 *
 * Compiled by the Janino that comes with Spark: without lambdas, and with casts.
 */
public final class MessageSchemas {
    private static PrintStream out;

    public static void main(String[] names) throws Exception {
        out = new PrintStream(System.out, true, "UTF-8");
        for (int i = 0; i < names.length; i++) {
            Class message = Class.forName("org.apache.kafka.common.message." + names[i] + "Data");
            Schema[] schemas = (Schema[]) message.getField("SCHEMAS").get(null);
            for (int version = 0; version < schemas.length; version++) {
                if (schemas[version] != null) {
                    out.println(names[i] + " " + version);
                    print(schemas[version], "  ");
                }
            }
        }
    }

    private static void print(Schema schema, String indent) {
        BoundField[] fields = schema.fields();
        for (int i = 0; i < fields.length; i++) {
            Field field = fields[i].def;
            if (field.type instanceof TaggedFields) {
                out.println(indent + "_tags");
                Map tags = ((TaggedFields) field.type).fields();
                for (Iterator each = tags.entrySet().iterator(); each.hasNext();) {
                    Map.Entry entry = (Map.Entry) each.next();
                    print((Field) entry.getValue(), indent, " tag=" + entry.getKey());
                }
            } else {
                print(field, indent, "");
            }
        }
    }

    private static void print(Field field, String indent, String tag) {
        Type type = field.type;
        String name = "";
        if (type instanceof ArrayOf || type instanceof CompactArrayOf) {
            name = type instanceof CompactArrayOf ? "COMPACT_" : "";
            name += (type.isNullable() ? "NULLABLE_" : "") + "ARRAY of ";
            type = (Type) type.arrayElementType().get();
        }
        if (type instanceof Schema) {
            name += type instanceof NullableSchema ? "NULLABLE_" : "";
            out.println(indent + field.name + " " + name + "STRUCT" + tag);
            print((Schema) type, indent + "  ");
        } else {
            out.println(indent + field.name + " " + name + type + tag);
        }
    }
}
