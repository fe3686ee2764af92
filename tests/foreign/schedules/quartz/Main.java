import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.text.ParseException;
import java.util.Date;
import java.util.TimeZone;
import org.quartz.CronExpression;

/**
 * Asks Quartz' CronExpression when expressions fire.
 *
 * <p>{@code Main FROM UNTIL COUNT < EXPRESSIONS}: instants are seconds since 1970, UTC. Answers a line for each: {@code ERR} or
 * at most COUNT instants after FROM and not after UNTIL.
 */
public final class Main {
    private Main() {}

    public static void main(String[] args) throws Exception {
        long from = Long.parseLong(args[0]);
        long until = Long.parseLong(args[1]);
        int count = Integer.parseInt(args[2]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder out = new StringBuilder();
        String line;
        while ((line = lines.readLine()) != null) {
            out.append(answer(line, from, until, count)).append('\n');
        }
        System.out.print(out);
    }

    private static String answer(String expression, long from, long until, int count) {
        CronExpression parsed;
        try {
            parsed = new CronExpression(expression);
        } catch (ParseException refused) {
            return "ERR";
        }
        parsed.setTimeZone(TimeZone.getTimeZone("UTC"));
        StringBuilder fires = new StringBuilder();
        Date at = new Date(from * 1000);
        for (int found = 0; found < count; found++) {
            try {
                at = parsed.getNextValidTimeAfter(at);
            } catch (RuntimeException broken) {
                // Quartz takes some expressions that it then cannot compute.
                return "ERR";
            }
            if (at == null || at.getTime() / 1000 > until) {
                break;
            }
            fires.append(found == 0 ? "" : " ").append(at.getTime() / 1000);
        }
        return fires.toString();
    }
}
