//! Limits of a command, checked when its job is created.

use campanile_schema::{job::CommandLimits, limits as bounds};

/// Refuses what no system takes, or no program lives with. Errors begin with the field.
pub(super) fn check_limits(limits: &CommandLimits, nice: u8) -> Result<(), String> {
    for (field, value, least, most) in [
        ("cpuSec", limits.cpu_sec, 1, bounds::SECONDS_MAX),
        ("memoryMb", limits.memory_mb, bounds::COMMAND_MEMORY_LEAST_MB, bounds::COMMAND_MEMORY_MOST_MB),
        ("openFiles", limits.open_files, bounds::COMMAND_FILES_LEAST, bounds::COMMAND_COUNT_MOST),
        ("fileSizeMb", limits.file_size_mb, 1, bounds::COMMAND_MEMORY_MOST_MB),
        ("processes", limits.processes, 1, bounds::COMMAND_COUNT_MOST),
    ] {
        if value.is_some_and(|value| !(least..=most).contains(&value)) {
            return Err(format!("limits.{field} must be {least} to {most}"));
        }
    }
    if nice > bounds::COMMAND_NICE_MOST {
        return Err(format!("nice must be 0 to {}", bounds::COMMAND_NICE_MOST));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_out_of_range_are_refused_by_name() {
        let none = CommandLimits::default();
        assert_eq!(check_limits(&none, 19), Ok(()));
        for (limits, field) in [
            (CommandLimits { cpu_sec: Some(0), ..none }, "limits.cpuSec"),
            (CommandLimits { memory_mb: Some(15), ..none }, "limits.memoryMb must be 16 to"),
            (CommandLimits { open_files: Some(7), ..none }, "limits.openFiles"),
            (CommandLimits { file_size_mb: Some(0), ..none }, "limits.fileSizeMb"),
            (CommandLimits { processes: Some(1 << 21), ..none }, "limits.processes"),
        ] {
            assert!(check_limits(&limits, 0).is_err_and(|why| why.starts_with(field)), "{field}");
        }
        assert!(check_limits(&none, 20).is_err_and(|why| why.starts_with("nice must be 0 to 19")));
    }
}
