package peer;

import com.github.kagkarlsson.scheduler.Scheduler;
import com.github.kagkarlsson.scheduler.task.AbstractTask;
import com.github.kagkarlsson.scheduler.task.CompletionHandler.OnCompleteReschedule;
import com.github.kagkarlsson.scheduler.task.SchedulableInstance;
import com.github.kagkarlsson.scheduler.task.helper.Tasks;
import com.github.kagkarlsson.scheduler.task.schedule.Schedule;
import com.github.kagkarlsson.scheduler.task.schedule.Schedules;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;

/**
 * One-time and recurring jobs on db-scheduler. Called by `campanile-loadtest peers`; the lines it prints are described in ../README.md.
 *
 * <p>Settings: the polling strategy that its documentation names for high throughput on PostgreSQL (lock and fetch), with the limits and
 * the number of threads of its author's own benchmark (0.5, 4.0, 50 threads); a short polling interval, because a job that becomes due
 * later is found by polling. Jobs are created in batches.
 */
public final class Main {
    private static final int THREADS = 50;
    private static final int CONNECTIONS = 20;
    private static final double LOWER = 0.5;
    private static final double UPPER = 4.0;
    private static final Duration POLL = Duration.ofMillis(20);
    private static final int INSERT_BATCH = 5_000;
    private static final int LATE_BATCH = 10_000;
    /** Late bodies count until so long after the window, milliseconds. */
    private static final long GRACE_MS = 1_000;
    /** For completions that are still on their way, milliseconds. */
    private static final long SETTLE_MS = 500;

    private static final String TABLE = """
        create table scheduled_tasks (
          task_name text not null, task_instance text not null, task_data bytea, execution_time timestamptz not null,
          picked boolean not null, picked_by text, last_success timestamptz, last_failure timestamptz, consecutive_failures int,
          last_heartbeat timestamptz, version bigint not null, priority smallint, primary key (task_name, task_instance));
        create index execution_time_idx on scheduled_tasks (execution_time);
        create index last_heartbeat_idx on scheduled_tasks (last_heartbeat);
        """;

    private static void say(String event, String fields) {
        System.out.println("{\"event\":\"" + event + "\"" + fields + "}");
        System.out.flush();
    }

    private static String version(String path) {
        Properties properties = new Properties();
        try (InputStream in = Scheduler.class.getResourceAsStream("/META-INF/maven/" + path + "/pom.properties")) {
            properties.load(in);
            return properties.getProperty("version");
        } catch (Exception e) {
            return "?";
        }
    }

    private static void sleepUntil(long ms) throws InterruptedException {
        long left = ms - System.currentTimeMillis();
        if (left > 0) {
            Thread.sleep(left);
        }
    }

    public static void main(String[] args) throws Exception {
        String url = args[0];
        String mode = args[1];
        int rate = Integer.parseInt(args[2]);
        int seconds = Integer.parseInt(args[3]);
        long fromMs = Long.parseLong(args[4]);
        int warm = Integer.parseInt(args[5]);
        long untilMs = fromMs + seconds * 1000L;

        // The driver says when to go on; without it there is nothing to do.
        CountDownLatch told = new CountDownLatch(1);
        Thread input = new Thread(() -> {
            try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in))) {
                while (lines.readLine() != null) {
                    told.countDown();
                }
            } catch (Exception e) {
                System.err.println(e);
            }
            Runtime.getRuntime().halt(1);
        });
        input.setDaemon(true);
        input.start();

        String schedule = switch (mode) {
            case "once" -> "one-time tasks";
            case "recurring" -> "a custom task whose next execution is its due time + 1 s";
            case "cron" -> "a custom task rescheduled by cron * * * * * *";
            default -> throw new IllegalArgumentException("no jobs of the kind " + mode);
        };
        say("system", ",\"version\":\"" + version("com.github.kagkarlsson/db-scheduler") + ", Java " + System.getProperty("java.version")
            + "\",\"settings\":\"pollUsingLockAndFetch(" + LOWER + ", " + UPPER + "), " + THREADS + " threads, " + CONNECTIONS
            + " connections (HikariCP), pollingInterval " + POLL.toMillis() + " ms, reWriteBatchedInserts, one process; " + schedule + "\"");

        HikariConfig pool = new HikariConfig();
        pool.setJdbcUrl("jdbc:" + url + "&reWriteBatchedInserts=true");
        pool.setMaximumPoolSize(CONNECTIONS);
        HikariDataSource database = new HikariDataSource(pool);
        try (var connection = database.getConnection(); var statement = connection.createStatement()) {
            statement.execute(TABLE);
        }

        int due = rate * seconds;
        Seen seen = new Seen(fromMs * 1000, untilMs * 1000, due);
        Schedule cron = Schedules.cron("* * * * * *");
        AbstractTask<Void> task = switch (mode) {
            case "once" -> Tasks.oneTime("body").execute((instance, context) -> seen.body(context.getExecution().executionTime));
            case "cron" -> Tasks.custom("body", Void.class).execute((instance, context) -> {
                seen.body(context.getExecution().executionTime);
                return new OnCompleteReschedule<>(cron);
            });
            default -> Tasks.custom("body", Void.class).execute((instance, context) -> {
                seen.body(context.getExecution().executionTime);
                return (done, operations) -> operations.reschedule(done, done.getExecution().executionTime.plusSeconds(1));
            });
        };
        Scheduler scheduler = Scheduler.create(database, task)
            .threads(THREADS)
            .pollUsingLockAndFetch(LOWER, UPPER)
            .pollingInterval(POLL)
            .build();

        long begin = System.currentTimeMillis();
        // Those of the warm-up come first; they are not counted.
        int jobs = mode.equals("once") ? due + rate * warm : rate;
        long firstMs = fromMs - warm * 1000L;
        List<SchedulableInstance<?>> batch = new ArrayList<>(INSERT_BATCH);
        for (int n = 0; n < jobs; n++) {
            // Cron knows whole seconds only.
            long at = mode.equals("cron") ? (firstMs + 999) / 1000 * 1000 : firstMs + n * 1000L / rate;
            batch.add(SchedulableInstance.of(task.instance(Integer.toString(n)), Instant.ofEpochMilli(at)));
            if (batch.size() == INSERT_BATCH || n == jobs - 1) {
                scheduler.scheduleBatch(batch);
                batch.clear();
            }
        }
        scheduler.start();
        say("inserted", ",\"jobs\":" + jobs + ",\"ms\":" + (System.currentTimeMillis() - begin));

        if (mode.equals("once")) {
            while (seen.counted() < due && System.currentTimeMillis() < untilMs + GRACE_MS) {
                Thread.sleep(20);
            }
            Thread.sleep(SETTLE_MS);
        } else {
            sleepUntil(untilMs);
        }
        say("done", ",\"ran\":" + seen.began());
        told.await();
        sleepUntil(untilMs + GRACE_MS);
        long[] late = seen.late();
        for (int first = 0; first < late.length; first += LATE_BATCH) {
            StringBuilder line = new StringBuilder(",\"us\":[");
            for (int n = first; n < Math.min(first + LATE_BATCH, late.length); n++) {
                line.append(n == first ? "" : ",").append(late[n]);
            }
            say("late", line.append(']').toString());
        }
        say("end", "");
        // Nothing is kept: the database goes next.
        Runtime.getRuntime().halt(0);
    }
}
