"""Every alert of deploy/prometheus at its threshold, with `promtool test rules`: it fires above it when its time is over, not before that,
and not below.

A `Case` has input series in promtool's notation, at one sample a minute: `0+600x60` is a counter that rises by 600 a minute for an hour.
"""

import json
import subprocess
from typing import NamedTuple

from support import RULES, ensure

# Minutes for which series last, and that a condition may need besides, because rates look back five minutes.
LAST = 120
SETTLED = 10


class Case(NamedTuple):
    alert: str
    # Minutes that the condition has to hold.
    holds: int
    above: dict[str, str]
    below: dict[str, str]
    # When the condition begins to hold, minutes.
    since: int = 1


def steady(value):
    return f"{value}x{LAST}"


def rising(a_minute):
    """A counter."""
    return f"0+{a_minute}x{LAST}"


def from_then_on(first, minute, later):
    """A counter that rises faster from a minute on."""
    return f"0+{first}x{minute} {first * minute + later}+{later}x{LAST - minute}"


ONE = 'job="campanile", instance="a:7700"'


def delays(within_2s, within_5s):
    """Runs of which so many a minute were created within 2 s and 5 s."""
    of = {"1000": 0, "2000": within_2s, "5000": within_5s, "+Inf": within_5s}
    return {f'trigger_delay_ms_bucket{{{ONE}, le="{le}"}}': rising(count) for le, count in of.items()}


def mean(total_ms, runs):
    return {f"trigger_delay_ms_sum{{{ONE}}}": rising(total_ms), f"trigger_delay_ms_count{{{ONE}}}": rising(runs)}


def ended(success, failed, timeout, canceled=0):
    counts = {"SUCCESS": success, "FAILED": failed, "TIMEOUT": timeout, "CANCELED": canceled}
    return {f'runs_ended_total{{{ONE}, state="{state}"}}': rising(count) for state, count in counts.items()}


def cpu(seconds_a_minute, processors=2):
    return {f"process_cpu_seconds_total{{{ONE}}}": rising(seconds_a_minute), f"campanile_host_cpus{{{ONE}}}": steady(processors)}


def memory(share):
    return {f"process_resident_memory_bytes{{{ONE}}}": steady(int(share * 1000)), f"campanile_host_memory_bytes{{{ONE}}}": steady(1000)}


def pool(waiting, executors):
    of = f'{ONE}, pool="etl"'
    return {f"campanile_pool_waiting{{{of}}}": steady(waiting), f"campanile_pool_executors{{{of}}}": steady(executors)}


def free(bytes_a_minute):
    # 100 GB, and six hours of it.
    return {f"campanile_disk_free_bytes{{{ONE}}}": f"100000000000-{bytes_a_minute}x{LAST}"}


CASES = [
    # R10, in its order.
    Case("CampanileTriggerDelayHigh", 10, delays(94, 100), delays(96, 100)),
    # Six a minute for 100 minutes, then 24: more than three times the average. 15 a minute is not; nor is 1.1 without any before.
    Case(
        "CampanileMisfiresAboveBaseline",
        5,
        {f"misfire_count{{{ONE}}}": from_then_on(6, 100, 60)},
        {f"misfire_count{{{ONE}}}": from_then_on(6, 100, 15)},
        102,
    ),
    Case(
        "CampanileMisfiresAboveBaseline",
        5,
        {f"misfire_count{{{ONE}}}": from_then_on(0, 100, 1.5)},
        {f"misfire_count{{{ONE}}}": from_then_on(0, 100, 1.1)},
        105,
    ),
    Case(
        "CampanileSchedulesStopped",
        10,
        {f"schedule_fires_total{{{ONE}}}": from_then_on(600, 60, 30)},
        {f"schedule_fires_total{{{ONE}}}": from_then_on(600, 60, 90)},
        65,
    ),
    Case("CampanileRunSuccessRateLow", 10, ended(965, 20, 15), ended(975, 13, 12)),
    Case("CampanileRunTimeoutRateHigh", 10, ended(940, 0, 60), ended(960, 0, 40)),
    Case(
        "CampanileExecutorHeartbeatLost",
        0,
        {f"executor_heartbeat_lost{{{ONE}}}": from_then_on(0, 20, 1)},
        {f"executor_heartbeat_lost{{{ONE}}}": steady(7)},
        21,
    ),
    Case(
        "CampanileDispatchQueueLag",
        1,
        {f"dispatch_queue_lag{{{ONE}}}": steady(600000), 'dispatch_queue_lag{job="campanile", instance="b:7700"}': steady(400001)},
        {f"dispatch_queue_lag{{{ONE}}}": steady(1000000)},
        0,
    ),
    Case("CampanileRetryQueueDeep", 10, {f"retry_queue_depth{{{ONE}}}": steady(10001)}, {f"retry_queue_depth{{{ONE}}}": steady(10000)}, 0),
    Case("CampanileDeadLettersGrow", 5, {f"dead_letters_total{{{ONE}}}": rising(510)}, {f"dead_letters_total{{{ONE}}}": rising(490)}, 1),
    # R10's further ones.
    Case("CampanileRunFailureRateHigh", 5, ended(940, 30, 30), ended(960, 20, 20)),
    Case("CampanileMeanTriggerDelayHigh", 5, mean(110_000, 100), mean(90_000, 100)),
    Case("CampanileCpuHigh", 10, cpu(100), cpu(90)),
    Case("CampanileMemoryHigh", 10, memory(0.81), memory(0.79), 0),
    # Ours.
    Case("CampanileNodeDown", 1, {f"up{{{ONE}}}": steady(0)}, {f"up{{{ONE}}}": steady(1)}, 0),
    Case("CampanilePoolWithoutExecutor", 2, pool(1, 0), pool(1, 1), 0),
    Case("CampanilePoolWithoutExecutor", 2, pool(1, 0), pool(0, 0), 0),
    Case(
        "CampanileBodiesDoNotStop",
        5,
        {f"campanile_attempts_stop_overdue{{{ONE}}}": steady(1)},
        {f"campanile_attempts_stop_overdue{{{ONE}}}": steady(0)},
        0,
    ),
    Case(
        "CampanileHistoryBehind",
        10,
        {f"campanile_projection_lag_seconds{{{ONE}}}": steady(61)},
        {f"campanile_projection_lag_seconds{{{ONE}}}": steady(60)},
        0,
    ),
    Case(
        "CampanileSnapshotOverdue",
        5,
        {f"campanile_snapshot_owed_seconds{{{ONE}}}": steady(3601)},
        {f"campanile_snapshot_owed_seconds{{{ONE}}}": steady(3600)},
        0,
    ),
    Case(
        "CampanileDiskShort",
        5,
        {f'campanile_disk_short{{{ONE}, reason="FREE_ROOM_LOW"}}': steady(1)},
        {f'campanile_disk_short{{{ONE}, reason="FREE_ROOM_LOW"}}': steady(0)},
        0,
    ),
    # 100 GB go in 23 hours and 20 minutes, or in 28 hours.
    Case("CampanileDiskFullWithinADay", 30, free(71_500_000), free(60_000_000), 1),
    Case(
        "CampanileDiskUnseen",
        15,
        {f"campanile_journal_stored_bytes{{{ONE}}}": steady(1)},
        {f"campanile_journal_stored_bytes{{{ONE}}}": steady(1), f"campanile_disk_free_bytes{{{ONE}}}": steady(1)},
        0,
    ),
    Case(
        "CampanileTokenFileNotInForce",
        1,
        {f"campanile_token_file_in_force{{{ONE}}}": steady(0)},
        {f"campanile_token_file_in_force{{{ONE}}}": steady(1)},
        0,
    ),
    # Of the clock of promtool, which begins at 0.
    Case(
        "CampanileCertificateExpires",
        60,
        {f"campanile_tls_certificate_expiry_timestamp_seconds{{{ONE}}}": steady(13 * 86400)},
        {f"campanile_tls_certificate_expiry_timestamp_seconds{{{ONE}}}": steady(15 * 86400)},
        0,
    ),
]


def test(name, series, asked):
    """One test of promtool: whether the alert fires at each of some minutes."""
    return {
        "name": name,
        "interval": "1m",
        "input_series": [{"series": key, "values": values} for key, values in series.items()],
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{alert}", alertstate="firing"}})',
                "eval_time": f"{minute}m",
                "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
            }
            for alert, minute, fires in asked
        ],
    }


def tests():
    for case in CASES:
        # Late enough for a condition that needs a minute or two of its rate's window.
        after = case.since + case.holds + SETTLED
        early = case.since + case.holds - 1
        asked = [(case.alert, after, True)]
        if case.holds > 0:
            asked.insert(0, (case.alert, early, False))
        yield test(f"{case.alert} fires", case.above, asked)
        yield test(f"{case.alert} does not fire", case.below, [(case.alert, minute, False) for minute in range(0, LAST, 5)])


def check(alerts, directory):
    """`alerts`: those that there are. Each must have a case."""
    tried = {case.alert for case in CASES}
    ensure(tried == alerts, f"alerts without a test: {sorted(alerts - tried)}; tests without an alert: {sorted(tried - alerts)}")
    file = directory / "thresholds.json"
    document = {"rule_files": [str(path) for path in RULES], "evaluation_interval": "1m", "tests": list(tests())}
    # JSON is YAML, too.
    file.write_text(json.dumps(document, indent=1))
    ran = subprocess.run(["promtool", "test", "rules", file], capture_output=True, text=True)
    ensure(ran.returncode == 0, f"promtool test rules:\n{ran.stdout}{ran.stderr}")
    return len(document["tests"])
