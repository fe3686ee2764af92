//! Conditions of edges: CEL expressions over `parent.result`, such as `parent.result.rows > 0`.
//!
//! The `cel` crate parses and evaluates them. It bounds neither the steps nor the memory of an evaluation, so this module takes only
//! expressions that cannot need many: every part of one is evaluated at most once. That leaves out the macros that loop (`all`,
//! `exists`, `map`, `filter`), and with a text of at most [`limits::CONDITION_BYTES`] over a result of at most
//! [`limits::NODE_RESULT_BYTES`] nothing grows beyond their product. An expression names the fields that it reads, so what has to be
//! kept of a result is known when the DAG is compiled.

use super::fields::FieldPath;
use campanile_schema::{limits, shape::shortened, text::Text};
use cel::{
    Context, Env, Value,
    common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue, operators},
    objects::{Key, Map},
};
use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

/// Functions that a condition may call, operators included. None of them loops over more than its operands.
const FUNCTIONS: [&str; 28] = [
    operators::CONDITIONAL,
    operators::LOGICAL_AND,
    operators::LOGICAL_OR,
    operators::LOGICAL_NOT,
    operators::EQUALS,
    operators::NOT_EQUALS,
    operators::LESS,
    operators::LESS_EQUALS,
    operators::GREATER,
    operators::GREATER_EQUALS,
    operators::ADD,
    operators::SUBSTRACT,
    operators::MULTIPLY,
    operators::DIVIDE,
    operators::MODULO,
    operators::NEGATE,
    operators::INDEX,
    operators::IN,
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "int",
    "uint",
    "double",
    "string",
    "bool",
    "type",
];

static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib().with_optional_support(false)));

/// The only name that a condition may use, and the only field of it.
const PARENT: &str = "parent";
const RESULT: &str = "result";

/// A condition that was checked.
pub struct Condition {
    text: Text,
    expression: IdedExpr,
    fields: Vec<FieldPath>,
}

impl std::fmt::Debug for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Condition").field(&self.text).finish()
    }
}

impl Condition {
    /// Errors are sentences that name what is wrong, without the field.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > limits::CONDITION_BYTES {
            return Err(format!("a condition has at most {} bytes", limits::CONDITION_BYTES));
        }
        check_nesting(text)?;
        let parser = ENV.parser().max_recursion_depth(limits::CONDITION_DEPTH as u16).error_recovery_limit(1);
        let expression = parser.parse(text).map_err(|errors| {
            let first = errors
                .errors
                .first()
                .map_or_else(String::new, |error| format!(" at character {}: {}", error.pos.1, shortened(&error.msg)));
            format!("this is not a CEL expression{first}")
        })?;
        let mut fields = Vec::new();
        judge(&expression, 0, &mut fields)?;
        Ok(Self { text: text.into(), expression, fields })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The fields of the parent's result that it reads.
    pub fn fields(&self) -> &[FieldPath] {
        &self.fields
    }

    /// Whether the edge is taken. An error says why the expression has no value for this parent.
    pub fn evaluate(&self, parent: &Parent) -> Result<bool, String> {
        match Value::resolve(&self.expression, &parent.0) {
            Ok(Value::Bool(taken)) => Ok(taken),
            Ok(_) => Err("its value is neither true nor false".to_owned()),
            Err(error) => Err(shortened(&error.to_string())),
        }
    }
}

/// A node that succeeded, as the conditions behind it see it: made once for all of them.
pub struct Parent(Context<'static, 'static>);

impl Parent {
    /// With the fields of its result that the DAG reads.
    pub fn new(result: &serde_json::Value) -> Self {
        let mut context = Context::with_env(Arc::clone(&ENV));
        let parent = HashMap::from([(Key::from(RESULT), value_of(result))]);
        context.add_variable_from_value(PARENT, Value::Map(Map { map: Arc::new(parent) }));
        Self(context)
    }
}

/// JSON has one kind of number. Those without a fraction are integers here, so that `rows > 0` compares like with like.
fn value_of(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) => Value::Int(int),
            (None, Some(uint)) => Value::UInt(uint),
            (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Value::String(Arc::new(text.clone())),
        serde_json::Value::Array(items) => Value::List(Arc::new(items.iter().map(value_of).collect())),
        serde_json::Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (Key::from(name.as_str()), value_of(value)));
            Value::Map(Map { map: Arc::new(fields.collect()) })
        }
    }
}

/// Brackets, and the operators before a value that nest without them, are counted before the parser sees them: it is recursive.
fn check_nesting(text: &str) -> Result<(), String> {
    let (mut depth, mut deepest) = (0usize, 0usize);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' | b'?' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    if deepest > limits::CONDITION_DEPTH {
        return Err(format!("a condition is nested at most {} levels deep", limits::CONDITION_DEPTH));
    }
    Ok(())
}

/// Refuses whatever is not known to be cheap, and collects the fields that are read.
fn judge(expression: &IdedExpr, depth: usize, fields: &mut Vec<FieldPath>) -> Result<(), String> {
    if depth > 2 * limits::CONDITION_DEPTH {
        return Err(format!("a condition is nested at most {} levels deep", 2 * limits::CONDITION_DEPTH));
    }
    if let Some(path) = path_of(expression) {
        let [RESULT, names @ ..] = path.as_slice() else {
            return Err(format!("'{PARENT}' has only '{RESULT}', as in parent.result.rows"));
        };
        fields.push(FieldPath::new(names.iter().copied().map(Text::from).collect())?);
        return Ok(());
    }
    let next = depth + 1;
    match &expression.expr {
        Expr::Literal(_) => Ok(()),
        Expr::Ident(name) => Err(format!("'{}' is not known; there is parent.result", shortened(name))),
        Expr::Select(select) => judge(&select.operand, next, fields),
        Expr::List(list) => list.elements.iter().try_for_each(|element| judge(element, next, fields)),
        Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => {
                judge(&entry.key, next, fields)?;
                judge(&entry.value, next, fields)
            }
            EntryExpr::StructField(_) => Err("a condition makes no structures".to_owned()),
        }),
        Expr::Call(call) => {
            if !FUNCTIONS.contains(&call.func_name.as_str()) {
                let name = shortened(&call.func_name);
                return Err(format!("'{name}' cannot be used in a condition (nor can macros that loop over a list)"));
            }
            call.target.iter().try_for_each(|target| judge(target, next, fields))?;
            call.args.iter().try_for_each(|argument| judge(argument, next, fields))
        }
        Expr::Comprehension(_) => Err("a condition does not loop".to_owned()),
        Expr::Struct(_) => Err("a condition makes no structures".to_owned()),
        Expr::Unspecified => Err("a part of the condition is empty".to_owned()),
    }
}

/// `parent.result.a["b"]` is `[result, a, b]`: a chain of names that begins with the parent. None: it is something else.
fn path_of(expression: &IdedExpr) -> Option<Vec<&str>> {
    match &expression.expr {
        Expr::Ident(name) => (name == PARENT).then(Vec::new),
        Expr::Select(select) => {
            let mut path = path_of(&select.operand)?;
            path.push(&select.field);
            Some(path)
        }
        Expr::Call(call) if call.func_name == operators::INDEX && call.target.is_none() => match call.args.as_slice() {
            [of, IdedExpr { expr: Expr::Literal(LiteralValue::String(name)), .. }] => {
                let mut path = path_of(of)?;
                path.push(name.inner());
                Some(path)
            }
            _ => None,
        },
        Expr::Call(_)
        | Expr::Comprehension(_)
        | Expr::List(_)
        | Expr::Literal(_)
        | Expr::Map(_)
        | Expr::Struct(_)
        | Expr::Unspecified => None,
    }
}
