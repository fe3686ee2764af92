//! `glue_type`: what a task runs.

use crate::{sql::Row, text};
use campanile_schema::{job::Action, limits::OUTPUT_CAP_KB};
use std::collections::BTreeMap;

pub struct Made {
    pub action: Action,
    /// The task's parameter goes to it as params; else it is an argument of the command.
    pub takes_params: bool,
}

/// A script that its interpreter gets as an argument, or by its standard input.
enum Script {
    Argument(&'static [&'static str]),
    Input(&'static [&'static str]),
}

pub fn of(row: &Row, param: &str, changed: &mut Vec<String>) -> Result<Made, (String, &'static str)> {
    let kind = row.words("glue_type");
    let script = match kind.as_str() {
        "BEAN" | "" => return bean(row),
        // Its own standard input is not the script's: a command in it may read.
        "GLUE_SHELL" => Script::Argument(&["bash", "-c"]),
        "GLUE_PYTHON" => Script::Input(&["python3", "-"]),
        "GLUE_PHP" => Script::Input(&["php", "--"]),
        "GLUE_NODEJS" => Script::Input(&["node", "-"]),
        "GLUE_POWERSHELL" => Script::Argument(&["pwsh", "-NoProfile", "-Command"]),
        "GLUE_GROOVY" => {
            let reason = "GLUE_GROOVY is source text of Java that only XXL-JOB's own executor compiles".to_owned();
            return Err((reason, "make a handler of it in an executor, or a script"));
        }
        other => {
            return Err((format!("the GLUE_TYPE '{}' is not known", text::shown(other)), "make it a script there"));
        }
    };
    let source = row.words("glue_source").replace("\r\n", "\n");
    if source.trim().is_empty() {
        return Err((format!("its {kind} is empty"), "write the script in XXL-JOB and dump again"));
    }
    if source.contains('\0') {
        return Err((format!("its {kind} has a character NUL"), "correct the script"));
    }
    changed.push(format!(
        "the {kind} script is kept in the job: it runs on the machine of an executor, as the executor's user"
    ));
    // XXL-JOB hands the parameter, the index of the shard and their number to a script.
    let arguments = [param, "0", "1"].map(str::to_owned);
    let (words, argument, stdin) = match script {
        Script::Argument(words) => (words, Some(source), None),
        Script::Input(words) => (words, None, Some(source)),
    };
    let mut command: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    if let Some(source) = argument {
        command.push(source);
        // The name that the script sees as its own, before its arguments.
        command.extend((kind == "GLUE_SHELL").then(|| "xxl".to_owned()));
    }
    if kind == "GLUE_POWERSHELL" {
        changed
            .push("a PowerShell script has no $args here: the parameter is in the variable XXL_JOB_PARAM".to_owned());
    } else {
        command.extend(arguments);
    }
    let env = BTreeMap::from([("XXL_JOB_PARAM".to_owned(), param.to_owned())]);
    let env = if kind == "GLUE_POWERSHELL" { env } else { BTreeMap::new() };
    let (output_cap_kb, limits) = (OUTPUT_CAP_KB, Default::default());
    let action = Action::Command { command, env, cwd: None, stdin, output_cap_kb, limits, nice: 0 };
    Ok(Made { action, takes_params: false })
}

fn bean(row: &Row) -> Result<Made, (String, &'static str)> {
    let handler = row.words("executor_handler");
    if handler.trim().is_empty() {
        return Err(("it is of the type BEAN and has no executor_handler".to_owned(), "name its handler there"));
    }
    Ok(Made { action: Action::Handler { name: text::part(handler.trim()) }, takes_params: true })
}
