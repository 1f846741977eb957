import com.amazonaws.services.schemaregistry.common.AWSSchemaRegistryClient;
import com.amazonaws.services.schemaregistry.deserializers.GlueSchemaRegistryDeserializationFacade;
import com.amazonaws.services.schemaregistry.deserializers.GlueSchemaRegistryKafkaDeserializer;
import com.amazonaws.services.schemaregistry.serializers.GlueSchemaRegistryKafkaSerializer;
import com.amazonaws.services.schemaregistry.serializers.json.JsonDataWithSchema;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.protobuf.DescriptorProtos;
import com.google.protobuf.Descriptors;
import com.google.protobuf.DynamicMessage;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.DecoderFactory;
import software.amazon.awssdk.auth.credentials.AnonymousCredentialsProvider;
import software.amazon.awssdk.services.glue.GlueClient;
import software.amazon.awssdk.services.glue.model.GetSchemaVersionResponse;

/**
 * Writes values by the serializer of AWS Glue's schema registry, without a registry: the client of
 * AWS is this program, which knows the one schema of a line.
 *
 * <p>Each line of the input is a schema with values, each of the output what was written. What the
 * deserializer reads of Avro has to be equal to what was given.
 */
public class GlueSerdes {
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
        Map config = new HashMap();
        config.put("region", "us-east-1");
        config.put("dataFormat", format);
        config.put("compression", request.get("compression").asText());
        config.put("avroRecordType", "GENERIC_RECORD");
        AnonymousCredentialsProvider nobody = AnonymousCredentialsProvider.create();
        UUID id = UUID.fromString(request.get("uuid").asText());
        GlueSchemaRegistryKafkaSerializer serializer =
                new GlueSchemaRegistryKafkaSerializer(nobody, id, config);
        serializer.configure(config, false);
        GlueClient registry =
                (GlueClient)
                        Proxy.newProxyInstance(
                                GlueSerdes.class.getClassLoader(),
                                new Class[] {GlueClient.class},
                                new Registry(request));
        GlueSchemaRegistryKafkaDeserializer deserializer =
                new GlueSchemaRegistryKafkaDeserializer(nobody, config);
        deserializer.setGlueSchemaRegistryDeserializationFacade(
                GlueSchemaRegistryDeserializationFacade.builder()
                        .credentialProvider(nobody)
                        .configs(config)
                        .schemaRegistryClient(new AWSSchemaRegistryClient(registry))
                        .build());
        for (int i = 0; i < request.get("payloads").size(); i++) {
            JsonNode content = (JsonNode) request.get("payloads").get(i);
            byte[] payload = Base64.getDecoder().decode(content.asText());
            Object value = value(request, payload);
            byte[] bytes = serializer.serialize(TOPIC, value);
            if (format.equals("AVRO")) {
                Object read = deserializer.deserialize(TOPIC, bytes);
                if (!value.equals(read)) {
                    throw new IllegalStateException("wrote " + value + ", read " + read);
                }
            }
            ObjectNode one = written.addObject();
            one.put("value", Base64.getEncoder().encodeToString(bytes));
            one.putArray("headers");
        }
    }

    private static Object value(JsonNode request, byte[] payload) throws Exception {
        String format = request.get("format").asText();
        String text = request.get("schema").asText();
        if (format.equals("AVRO")) {
            GenericDatumReader reader = new GenericDatumReader(new Schema.Parser().parse(text));
            return reader.read(null, DecoderFactory.get().binaryDecoder(payload, null));
        }
        if (format.equals("PROTOBUF")) {
            String[] names = request.get("message").asText().split("\\.");
            Descriptors.Descriptor message = file(text).findMessageTypeByName(names[0]);
            for (int i = 1; i < names.length; i++) {
                message = message.findNestedTypeByName(names[i]);
            }
            return DynamicMessage.parseFrom(message, payload);
        }
        return JsonDataWithSchema.builder(text, new String(payload, "UTF-8")).build();
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

    /** What AWS would answer: of one schema, whatever is asked. */
    private static class Registry implements InvocationHandler {
        private final JsonNode request;

        Registry(JsonNode request) {
            this.request = request;
        }

        public Object invoke(Object proxy, Method method, Object[] arguments) {
            if (!method.getName().equals("getSchemaVersion")) {
                throw new IllegalStateException(method.toString());
            }
            return GetSchemaVersionResponse.builder()
                    .schemaVersionId(request.get("uuid").asText())
                    .schemaDefinition(request.get("schema").asText())
                    .schemaArn("arn:aws:glue:us-east-1:1:schema/registry/name")
                    .dataFormat(request.get("format").asText())
                    .status("AVAILABLE")
                    .build();
        }
    }
}
