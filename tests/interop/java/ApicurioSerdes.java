import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.protobuf.DescriptorProtos;
import com.google.protobuf.Descriptors;
import com.google.protobuf.DynamicMessage;
import io.apicurio.registry.resolver.ParsedSchemaImpl;
import io.apicurio.registry.resolver.SchemaLookupResult;
import io.apicurio.registry.resolver.SchemaParser;
import io.apicurio.registry.resolver.SchemaResolver;
import io.apicurio.registry.resolver.strategy.ArtifactReference;
import io.apicurio.registry.serde.avro.AvroKafkaDeserializer;
import io.apicurio.registry.serde.avro.AvroKafkaSerializer;
import io.apicurio.registry.serde.jsonschema.JsonSchemaKafkaDeserializer;
import io.apicurio.registry.serde.jsonschema.JsonSchemaKafkaSerializer;
import io.apicurio.registry.serde.protobuf.ProtobufKafkaDeserializer;
import io.apicurio.registry.serde.protobuf.ProtobufKafkaSerializer;
import io.apicurio.registry.utils.protobuf.schema.FileDescriptorUtils;
import io.apicurio.registry.utils.protobuf.schema.ProtobufSchema;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.DecoderFactory;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serializer;

/**
 * Writes values by the serializers of Apicurio Registry, versions 2 and 3, without a registry: the
 * resolver of schemas is this program, which knows the one schema of a line.
 *
 * <p>Each line of the input is a schema with values, each of the output what was written. What the
 * deserializers read of it has to be equal to what was given.
 */
public class ApicurioSerdes {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String TOPIC = "topic";

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        System.setOut(System.err);
        String line;
        while ((line = in.readLine()) != null) {
            JsonNode request = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            try {
                write(request, answer.putArray("values"));
            } catch (Exception error) {
                error.printStackTrace();
                answer.put("error", String.valueOf(error));
            }
            out.println(JSON.writeValueAsString(answer));
        }
        out.flush();
    }

    private static void write(JsonNode request, ArrayNode written) throws Exception {
        String format = request.get("format").asText();
        boolean isKey = request.get("field").asText().equals("key");
        Map config = new HashMap();
        for (java.util.Iterator names = request.get("config").fieldNames(); names.hasNext(); ) {
            String name = (String) names.next();
            config.put(name, request.get("config").get(name).asText());
        }
        Resolver resolver = new Resolver(request);
        SchemaResolver known =
                (SchemaResolver)
                        Proxy.newProxyInstance(
                                ApicurioSerdes.class.getClassLoader(),
                                new Class[] {SchemaResolver.class},
                                resolver);
        Serializer serializer;
        Deserializer deserializer;
        String returned = "apicurio.registry.deserializer." + request.get("field").asText();
        if (format.equals("PROTOBUF")) {
            config.put(returned + ".return-class", DynamicMessage.class);
        }
        if (format.equals("AVRO")) {
            serializer = new AvroKafkaSerializer();
            deserializer = new AvroKafkaDeserializer();
        } else if (format.equals("PROTOBUF")) {
            serializer = new ProtobufKafkaSerializer();
            deserializer = new ProtobufKafkaDeserializer();
        } else {
            serializer = new JsonSchemaKafkaSerializer();
            deserializer = new JsonSchemaKafkaDeserializer();
        }
        config.put("apicurio.registry.schema-resolver", known);
        serializer.configure(config, isKey);
        deserializer.configure(config, isKey);
        for (int i = 0; i < request.get("payloads").size(); i++) {
            JsonNode content = (JsonNode) request.get("payloads").get(i);
            byte[] payload = Base64.getDecoder().decode(content.asText());
            Object value = resolver.value(payload);
            RecordHeaders headers = new RecordHeaders();
            byte[] bytes = serializer.serialize(TOPIC, headers, value);
            // By headers version 3 asks for the class of a message, and a dynamic one has none.
            if (format.equals("AVRO") || (format.equals("PROTOBUF") && headers.toArray().length == 0)) {
                Object read = deserializer.deserialize(TOPIC, headers, bytes);
                if (!value.equals(read)) {
                    throw new IllegalStateException("wrote " + value + ", read " + read);
                }
            }
            ObjectNode one = written.addObject();
            one.put("value", Base64.getEncoder().encodeToString(bytes));
            ArrayNode entries = one.putArray("headers");
            Header[] all = headers.toArray();
            for (int j = 0; j < all.length; j++) {
                ArrayNode entry = entries.addArray();
                entry.add(all[j].key());
                entry.add(Base64.getEncoder().encodeToString(all[j].value()));
            }
        }
    }

    /** What a registry would answer: of one schema, whatever is asked. */
    private static class Resolver implements InvocationHandler {
        private final JsonNode request;
        private final Object schema;
        private SchemaParser parser;

        Resolver(JsonNode request) throws Exception {
            this.request = request;
            String format = request.get("format").asText();
            String text = request.get("schema").asText();
            if (format.equals("AVRO")) {
                schema = new Schema.Parser().parse(text);
            } else if (format.equals("PROTOBUF")) {
                Descriptors.FileDescriptor file = file(text);
                schema =
                        new ProtobufSchema(
                                file,
                                FileDescriptorUtils.fileDescriptorToProtoFile(file.toProto()));
            } else {
                schema = null;
            }
        }

        public Object invoke(Object proxy, Method method, Object[] arguments) {
            String name = method.getName();
            if (name.equals("configure")) {
                parser = (SchemaParser) arguments[1];
            } else if (name.equals("getSchemaParser")) {
                return parser;
            } else if (name.startsWith("resolveSchema")) {
                return found();
            }
            return null;
        }

        private Object found() {
            ParsedSchemaImpl parsed = new ParsedSchemaImpl();
            if (schema == null) {
                byte[] text = request.get("schema").asText().getBytes();
                parsed.setRawSchema(text);
                parsed.setParsedSchema(parser.parseSchema(text, new HashMap()));
            } else {
                parsed.setParsedSchema(schema);
            }
            SchemaLookupResult.SchemaLookupResultBuilder result = SchemaLookupResult.builder();
            result.parsedSchema(parsed);
            result.globalId(request.get("globalId").asLong());
            result.contentId(request.get("contentId").asLong());
            result.groupId("default");
            result.artifactId(TOPIC + "-value");
            result.version("1");
            return result.build();
        }

        Object value(byte[] payload) throws Exception {
            if (schema instanceof Schema) {
                GenericDatumReader reader = new GenericDatumReader((Schema) schema);
                return reader.read(null, DecoderFactory.get().binaryDecoder(payload, null));
            }
            if (schema != null) {
                String name = request.get("message").asText();
                Descriptors.FileDescriptor file = ((ProtobufSchema) schema).getFileDescriptor();
                return DynamicMessage.parseFrom(file.findMessageTypeByName(name), payload);
            }
            return JSON.readTree(payload);
        }

        private static Descriptors.FileDescriptor file(String descriptor) throws Exception {
            return Descriptors.FileDescriptor.buildFrom(
                    DescriptorProtos.FileDescriptorProto.parseFrom(
                            Base64.getDecoder().decode(descriptor)),
                    new Descriptors.FileDescriptor[] {
                        com.google.protobuf.TimestampProto.getDescriptor(),
                        com.google.protobuf.DurationProto.getDescriptor(),
                        com.google.protobuf.WrappersProto.getDescriptor(),
                        com.google.protobuf.StructProto.getDescriptor(),
                        com.google.protobuf.FieldMaskProto.getDescriptor(),
                        com.google.protobuf.AnyProto.getDescriptor(),
                        com.google.protobuf.EmptyProto.getDescriptor()
                    });
        }
    }
}
