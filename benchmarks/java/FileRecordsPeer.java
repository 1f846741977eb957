import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.CloseableIterator;

/**
 * Kafka's own reading of a segment, one thread: FileRecords, ensureValid, every field of every
 * record, key and value copied out as a consumer's byte array deserializer does.
 *
 * Reads a path of a .log file a line from standard input, reads that segment once, answers with one
 * line: records, key bytes, value bytes, sum of offsets, sum of timestamps, wall and CPU
 * nanoseconds. So one warm JVM takes its turn among the other readers.
 */
public final class FileRecordsPeer {
    private long records;
    private long keyBytes;
    private long valueBytes;
    private long offsets;
    private long timestamps;
    private long touched; // keeps the copies from being optimised away

    private void add(Record record) {
        byte[] key = copied(record.key());
        byte[] value = copied(record.value());
        records++;
        offsets += record.offset();
        timestamps += record.timestamp();
        if (key != null) {
            keyBytes += key.length;
            touched += key.length == 0 ? 0 : key[key.length - 1];
        }
        if (value != null) {
            valueBytes += value.length;
            touched += value.length == 0 ? 0 : value[value.length - 1];
        }
        for (Header header : record.headers()) touched += header.key().length();
    }

    private static byte[] copied(ByteBuffer field) {
        if (field == null) return null;
        byte[] bytes = new byte[field.remaining()];
        field.get(field.position(), bytes);
        return bytes;
    }

    private void read(File segment, BufferSupplier buffers) throws IOException {
        try (FileRecords log = FileRecords.open(segment, false)) {
            for (FileChannelRecordBatch batch : log.batches()) {
                batch.ensureValid();
                try (CloseableIterator<Record> iterator = batch.streamingIterator(buffers)) {
                    while (iterator.hasNext()) add(iterator.next());
                }
            }
        }
    }

    private static long cpuNanos() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    public static void main(String[] arguments) throws IOException {
        BufferSupplier buffers = BufferSupplier.create();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String path = in.readLine(); path != null; path = in.readLine()) {
            FileRecordsPeer sums = new FileRecordsPeer();
            long cpuStarted = cpuNanos();
            long started = System.nanoTime();
            sums.read(new File(path), buffers);
            long wall = System.nanoTime() - started;
            long cpu = cpuNanos() - cpuStarted;
            System.out.println(sums.records + " " + sums.keyBytes + " " + sums.valueBytes + " " + sums.offsets + " "
                + sums.timestamps + " " + wall + " " + cpu + " " + (sums.touched & 1));
            System.out.flush();
        }
    }
}
