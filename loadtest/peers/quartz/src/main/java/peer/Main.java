package peer;

import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.Statement;
import java.util.Date;
import java.util.HashSet;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import org.quartz.CronScheduleBuilder;
import org.quartz.Job;
import org.quartz.JobBuilder;
import org.quartz.JobDetail;
import org.quartz.JobExecutionContext;
import org.quartz.Scheduler;
import org.quartz.SimpleScheduleBuilder;
import org.quartz.Trigger;
import org.quartz.TriggerBuilder;
import org.quartz.impl.StdSchedulerFactory;

/**
 * One-time and recurring jobs on Quartz with its JDBC store, clustered. Called by `campanile-loadtest peers`; the lines it prints are
 * described in ../README.md.
 *
 * <p>Settings: those that its documentation names for many triggers: acquisition in batches under the lock that this needs, as many
 * threads as a batch, a connection pool (HikariCP) with more connections than threads that use it at once. All triggers belong to one job,
 * whose bodies may run side by side.
 */
public final class Main {
    private static final int THREADS = 50;
    private static final int CONNECTIONS = 30;
    private static final int ACQUIRED_AT_ONCE = 50;
    private static final int INSERT_BATCH = 1_000;
    private static final int LATE_BATCH = 10_000;
    /** Late bodies count until so long after the window, milliseconds. */
    private static final long GRACE_MS = 1_000;
    /** For completions that are still on their way, milliseconds. */
    private static final long SETTLE_MS = 500;

    private static Seen seen;

    /** What is scheduled. Quartz makes one for each run. */
    public static final class Body implements Job {
        @Override
        public void execute(JobExecutionContext context) {
            seen.body(context.getScheduledFireTime().toInstant());
        }
    }

    private static void say(String event, String fields) {
        System.out.println("{\"event\":\"" + event + "\"" + fields + "}");
        System.out.flush();
    }

    private static void sleepUntil(long ms) throws InterruptedException {
        long left = ms - System.currentTimeMillis();
        if (left > 0) {
            Thread.sleep(left);
        }
    }

    /** The tables as the library ships them. */
    private static void makeTables(String url) throws Exception {
        String script;
        try (InputStream in = Scheduler.class.getResourceAsStream("/org/quartz/impl/jdbcjobstore/tables_postgres.sql")) {
            script = new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
        try (Connection connection = DriverManager.getConnection(url); Statement statement = connection.createStatement()) {
            statement.execute(script);
        }
    }

    private static Scheduler scheduler(String url) throws Exception {
        Properties p = new Properties();
        p.put("org.quartz.scheduler.instanceName", "peer");
        p.put("org.quartz.scheduler.instanceId", "AUTO");
        p.put("org.quartz.scheduler.skipUpdateCheck", "true");
        p.put("org.quartz.scheduler.batchTriggerAcquisitionMaxCount", Integer.toString(ACQUIRED_AT_ONCE));
        p.put("org.quartz.threadPool.class", "org.quartz.simpl.SimpleThreadPool");
        p.put("org.quartz.threadPool.threadCount", Integer.toString(THREADS));
        p.put("org.quartz.jobStore.class", "org.quartz.impl.jdbcjobstore.JobStoreTX");
        p.put("org.quartz.jobStore.driverDelegateClass", "org.quartz.impl.jdbcjobstore.PostgreSQLDelegate");
        p.put("org.quartz.jobStore.isClustered", "true");
        p.put("org.quartz.jobStore.acquireTriggersWithinLock", "true");
        p.put("org.quartz.jobStore.useProperties", "true");
        p.put("org.quartz.jobStore.dataSource", "peer");
        p.put("org.quartz.dataSource.peer.provider", "hikaricp");
        p.put("org.quartz.dataSource.peer.driver", "org.postgresql.Driver");
        p.put("org.quartz.dataSource.peer.URL", url);
        p.put("org.quartz.dataSource.peer.maxConnections", Integer.toString(CONNECTIONS));
        return new StdSchedulerFactory(p).getScheduler();
    }

    public static void main(String[] args) throws Exception {
        String url = "jdbc:" + args[0];
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
            case "once" -> "a simple trigger for each instant";
            case "recurring" -> "simple triggers that repeat each second";
            case "cron" -> "cron triggers * * * * * ?";
            default -> throw new IllegalArgumentException("no jobs of the kind " + mode);
        };
        makeTables(url);
        Scheduler scheduler = scheduler(url);
        say("system", ",\"version\":\"" + scheduler.getMetaData().getVersion() + ", Java " + System.getProperty("java.version")
            + "\",\"settings\":\"JobStoreTX, clustered, batchTriggerAcquisitionMaxCount " + ACQUIRED_AT_ONCE
            + ", acquireTriggersWithinLock, " + THREADS + " threads, " + CONNECTIONS + " connections (HikariCP), one process; " + schedule
            + "\"");

        int due = rate * seconds;
        seen = new Seen(fromMs * 1000, untilMs * 1000, due);
        long begin = System.currentTimeMillis();
        // Those of the warm-up come first; they are not counted.
        int jobs = mode.equals("once") ? due + rate * warm : rate;
        long firstMs = fromMs - warm * 1000L;
        JobDetail body = JobBuilder.newJob(Body.class).withIdentity("body").storeDurably().build();
        Set<Trigger> batch = new HashSet<>(INSERT_BATCH * 2);
        for (int n = 0; n < jobs; n++) {
            TriggerBuilder<Trigger> trigger = TriggerBuilder.newTrigger().withIdentity("t" + n).forJob(body);
            Date at = new Date(firstMs + n * 1000L / rate);
            batch.add(switch (mode) {
                case "once" -> trigger.startAt(at).build();
                case "cron" -> trigger.startAt(new Date(firstMs)).withSchedule(CronScheduleBuilder.cronSchedule("* * * * * ?")).build();
                default -> trigger.startAt(at)
                    .withSchedule(SimpleScheduleBuilder.simpleSchedule().withIntervalInSeconds(1).repeatForever()).build();
            });
            if (batch.size() == INSERT_BATCH || n == jobs - 1) {
                // One transaction for all of them.
                scheduler.scheduleJobs(Map.of(body, batch), true);
                batch = new HashSet<>(INSERT_BATCH * 2);
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
