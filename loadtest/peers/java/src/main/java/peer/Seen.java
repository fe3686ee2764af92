package peer;

import java.time.Instant;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;

/** Counts the bodies whose instant falls into the window, and how late they began. */
final class Seen {
    private final long fromUs;
    private final long untilUs;
    private final long[] late;
    private final AtomicInteger next = new AtomicInteger();
    private final LongAdder began = new LongAdder();

    Seen(long fromUs, long untilUs, int most) {
        this.fromUs = fromUs;
        this.untilUs = untilUs;
        this.late = new long[most];
    }

    private static long micros(Instant at) {
        return at.getEpochSecond() * 1_000_000 + at.getNano() / 1_000;
    }

    void body(Instant dueAt) {
        long now = micros(Instant.now());
        long due = micros(dueAt);
        if (now >= fromUs) {
            began.increment();
        }
        if (due < fromUs || due >= untilUs) {
            return;
        }
        int at = next.getAndIncrement();
        if (at < late.length) {
            late[at] = now - due;
        }
    }

    int counted() {
        return Math.min(next.get(), late.length);
    }

    /** Bodies that began since the window did, whenever they were due. */
    long began() {
        return began.sum();
    }

    long[] late() {
        return Arrays.copyOf(late, counted());
    }
}
