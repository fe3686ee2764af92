//! Settings from variables of the environment.

use campanile_jobfiles::suggest::closest;
use toml::{Table, Value};

/// The value in the type that the setting has.
pub(super) fn typed(known: &Value, text: &str) -> Result<Value, String> {
    match known {
        Value::Integer(_) => {
            text.trim().parse().map(Value::Integer).map_err(|_| format!("'{text}' is not a whole number"))
        }
        Value::Boolean(_) => {
            text.trim().parse().map(Value::Boolean).map_err(|_| format!("'{text}' is not true or false"))
        }
        // A list, separated by commas.
        Value::Array(_) => {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            Ok(Value::Array(items.map(|item| Value::String(item.to_owned())).collect()))
        }
        Value::String(_) | Value::Float(_) | Value::Datetime(_) | Value::Table(_) => Ok(Value::String(text.to_owned())),
    }
}

/// What to say of a setting that is not there.
pub(super) fn unknown(all: &Table, setting: &str) -> String {
    let mut known = Vec::new();
    for (section, keys) in all {
        known.extend(keys.as_table().into_iter().flatten().map(|(key, _)| format!("{section}.{key}")));
    }
    match closest(setting, known.iter().map(String::as_str)) {
        Some(meant) => format!("there is no setting {setting}; did you mean {meant}?"),
        None => format!("there is no setting {setting}; `campanile config default` lists all"),
    }
}
