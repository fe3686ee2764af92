//! Figures of the process and its machine for `/metrics`, read from `/proc` when the page is read. Elsewhere than on
//! Linux there is no `/proc`, and a figure that cannot be read is left out.

use campanile_actors::measure::Page;
use std::{fs, sync::OnceLock, thread};

/// Clock ticks of `/proc`, a second: part of the interface between Linux and programs, on all its processors.
const TICKS: f64 = 100.0;

/// Writes `process_...` and `campanile_host_...`.
pub(super) fn show(page: &mut Page) {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (stat, status) = (read("/proc/self/stat"), read("/proc/self/status"));
    let mut single = |name: &str, value: Option<f64>| {
        if let Some(value) = value {
            page.single(name, value);
        }
    };
    let cpu = Option::zip(field(&stat, 14), field(&stat, 15)).map(|(user, system)| (user + system) / TICKS);
    single("process_cpu_seconds_total", cpu);
    single("process_threads", field(&stat, 20));
    single("process_virtual_memory_bytes", field(&stat, 23));
    single("process_resident_memory_bytes", line(&status, "VmRSS:").map(|kib| kib * 1024.0));
    let booted = line(&read("/proc/stat"), "btime ");
    single("process_start_time_seconds", Option::zip(booted, field(&stat, 22)).map(|(at, after)| at + after / TICKS));
    // The directory that is read is open, too.
    single("process_open_fds", fs::read_dir("/proc/self/fd").ok().map(|files| files.count().saturating_sub(1) as f64));
    single("process_max_fds", line(&read("/proc/self/limits"), "Max open files"));
    single("campanile_host_cpus", thread::available_parallelism().ok().map(|count| count.get() as f64));
    static MEMORY: OnceLock<Option<f64>> = OnceLock::new();
    single("campanile_host_memory_bytes", *MEMORY.get_or_init(|| memory(read)));
}

/// A field of `/proc/self/stat`, counted from 1 as proc(5) does. The second one is a name with spaces in parentheses.
fn field(stat: &str, number: usize) -> Option<f64> {
    stat.rsplit_once(") ")?.1.split_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
}

/// The number after a name that begins a line.
fn line(text: &str, name: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// What the machine has, or less if the control group may not use as much.
fn memory(read: impl Fn(&str) -> String) -> Option<f64> {
    let machine = line(&read("/proc/meminfo"), "MemTotal:").map(|kib| kib * 1024.0)?;
    let group = read("/proc/self/cgroup");
    let own = group.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default();
    let limits = [
        format!("/sys/fs/cgroup{own}/memory.max"),
        "/sys/fs/cgroup/memory.max".to_owned(),
        "/sys/fs/cgroup/memory/memory.limit_in_bytes".to_owned(),
    ];
    // Without a limit they have the word "max", or a number that no machine has.
    let limit = limits.iter().filter_map(|path| read(path).trim().parse::<f64>().ok()).fold(machine, f64::min);
    Some(limit)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn fields_are_counted_behind_a_name_with_spaces_and_parentheses() {
        let stat = "7 (a ) 1 2) S 1 7 7 0 -1 4 5 0 6 0 120 30 0 0 20 0 9 0 5000 1048576 300";
        assert_eq!(
            [14, 15, 20, 22, 23].map(|number| field(stat, number).unwrap()),
            [120.0, 30.0, 9.0, 5000.0, 1048576.0]
        );
        assert_eq!(field(stat, 40), None);
        assert_eq!(field("", 14), None);
    }

    #[test]
    fn the_smallest_limit_of_memory_counts() {
        let with = |limit: &'static str| {
            move |path: &str| {
                match path {
                    "/proc/meminfo" => "MemTotal:        1000 kB\nMemFree: 1 kB\n",
                    "/proc/self/cgroup" => "0::/system.slice/campanile.service\n",
                    "/sys/fs/cgroup/system.slice/campanile.service/memory.max" => limit,
                    _ => "",
                }
                .to_owned()
            }
        };
        assert_eq!(memory(with("max\n")), Some(1_024_000.0));
        assert_eq!(memory(with("4096\n")), Some(4096.0));
        assert_eq!(memory(with("9223372036854771712\n")), Some(1_024_000.0));
        assert_eq!(memory(|_: &str| String::new()), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_all_figures() {
        let mut page = campanile_actors::measure::page();
        show(&mut page);
        let text = page.text();
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.unwrap_or_else(|| panic!("{name} is not in {text}")).parse::<f64>().unwrap()
        };
        assert_eq!(value("process_threads").fract(), 0.0);
        assert!(value("process_open_fds") < value("process_max_fds"));
        assert!(value("process_resident_memory_bytes") < value("campanile_host_memory_bytes"));
        assert!(value("process_cpu_seconds_total") >= 0.0);
        assert!(value("process_start_time_seconds") > 1.0e9);
        assert!(value("process_virtual_memory_bytes") >= value("process_resident_memory_bytes"));
        assert!(value("campanile_host_cpus") >= 1.0);
    }
}
