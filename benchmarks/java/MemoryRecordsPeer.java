import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;

/**
 * Kafka's own writing of batches, one thread: MemoryRecordsBuilder as a producer uses it, with
 * hasRoomFor, append of key and value byte arrays, and close, into one buffer used again and again.
 *
 * Arguments: a .log file, how many of its leading records to write, and the batch size. They are
 * loaded first; each line read from standard input then stands for one repetition, answered by one
 * line: records, batches, bytes, sum of checksums, wall and CPU nanoseconds.
 */
public final class MemoryRecordsPeer {
    private static final int CRC_POSITION = 17;

    private final List<byte[]> keys = new ArrayList<>();
    private final List<byte[]> values = new ArrayList<>();
    private final List<Long> stamps = new ArrayList<>();
    private final ByteBuffer buffer;
    private long batches;
    private long bytes;
    private long checksums;

    private MemoryRecordsPeer(int batchSize) {
        buffer = ByteBuffer.allocate(batchSize);
    }

    private static byte[] copied(ByteBuffer field) {
        if (field == null) return null;
        byte[] copy = new byte[field.remaining()];
        field.get(field.position(), copy);
        return copy;
    }

    private void load(File segment, int count) throws IOException {
        try (FileRecords log = FileRecords.open(segment, false)) {
            for (FileChannelRecordBatch batch : log.batches()) {
                for (Record record : batch) {
                    if (keys.size() == count) return;
                    keys.add(copied(record.key()));
                    values.add(copied(record.value()));
                    stamps.add(record.timestamp());
                }
            }
        }
    }

    private MemoryRecordsBuilder begun(long baseOffset) {
        buffer.clear();
        return MemoryRecords.builder(buffer, Compression.NONE, TimestampType.CREATE_TIME, baseOffset);
    }

    private void finish(MemoryRecordsBuilder builder) {
        builder.close();
        MemoryRecords records = builder.build();
        batches++;
        bytes += records.sizeInBytes();
        checksums += records.buffer().getInt(CRC_POSITION) & 0xffffffffL;
    }

    private void write(byte[][] keys, byte[][] values, long[] stamps) {
        batches = bytes = checksums = 0;
        MemoryRecordsBuilder builder = begun(0);
        for (int i = 0; i < stamps.length; i++) {
            if (!builder.hasRoomFor(stamps[i], keys[i], values[i], Record.EMPTY_HEADERS)) {
                finish(builder);
                builder = begun(i);
            }
            builder.append(stamps[i], keys[i], values[i], Record.EMPTY_HEADERS);
        }
        finish(builder);
    }

    private static long cpuNanos() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    public static void main(String[] arguments) throws IOException {
        MemoryRecordsPeer peer = new MemoryRecordsPeer(Integer.parseInt(arguments[2]));
        peer.load(new File(arguments[0]), Integer.parseInt(arguments[1]));
        byte[][] keys = peer.keys.toArray(new byte[0][]);
        byte[][] values = peer.values.toArray(new byte[0][]);
        long[] stamps = peer.stamps.stream().mapToLong(Long::longValue).toArray();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        while (in.readLine() != null) {
            long cpuStarted = cpuNanos();
            long started = System.nanoTime();
            peer.write(keys, values, stamps);
            long wall = System.nanoTime() - started;
            long cpu = cpuNanos() - cpuStarted;
            System.out.println(stamps.length + " " + peer.batches + " " + peer.bytes + " " + peer.checksums + " "
                + wall + " " + cpu);
            System.out.flush();
        }
    }
}
