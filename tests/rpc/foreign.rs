//! Programs that share no code with us: pynvim's msgpack-rpc client calls the node, and the Python executor of the wire spec
//! runs the job. They need Python and the package index, so: `cargo test --test rpc foreign:: -- --ignored`.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

/// Ends what it started, whatever becomes of the test.
struct EndsAtDrop(Child);
impl Drop for EndsAtDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign").join(name)
}

/// A Python with pynvim, made once under the build directory.
fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(made_python)
}

fn made_python() -> PathBuf {
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("foreign-python");
    let python = venv.join("bin/python");
    let works = |python: &Path| {
        let imports = Command::new(python).args(["-c", "import pynvim, msgpack"]).stderr(Stdio::null()).status();
        imports.is_ok_and(|status| status.success())
    };
    if !works(&python) {
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv));
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "pynvim", "msgpack"]));
    }
    python
}

fn run(command: &mut Command) -> String {
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    text
}

/// The three lines with which `campanile dev` tells programs where it is.
fn facts(child: &mut Child) -> (String, String) {
    let (mut rpc, mut token) = (None, None);
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        rpc = line.strip_prefix("rpc=").map(str::to_owned).or(rpc);
        token = line.strip_prefix("token=").map(str::to_owned).or(token);
        if let (Some(rpc), Some(token)) = (&rpc, &token) {
            return (rpc.clone(), token.clone());
        }
    }
    panic!("the node ended without saying where it is");
}

#[test]
#[ignore = "installs pynvim from the package index"]
fn a_foreign_client_calls_and_a_foreign_executor_runs() {
    served(python(), &file("executor.py"));
}

/// A language without CLOCK_BOOTTIME uses the substitute of the wire spec.
#[test]
#[ignore = "installs pynvim from the package index"]
fn an_executor_with_the_substitute_for_the_clock_runs() {
    let dir = tempfile::tempdir().unwrap();
    let spec = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/rpc.md")).unwrap();
    let substitute = spec.split("```python\nimport time\n").nth(1).unwrap().split("```").next().unwrap();
    let code = std::fs::read_to_string(file("executor.py")).unwrap();
    let own = "def boot_ms():\n    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000\n";
    assert!(substitute.contains("def boot_ms()"));
    assert_eq!(code.matches(own).count(), 1);
    let other = dir.path().join("executor.py");
    std::fs::write(&other, code.replace(own, substitute)).unwrap();
    served(python(), &other);
}

/// A node whose jobs this executor runs and pynvim's client calls.
fn served(python: &Path, executor: &Path) {
    let data = tempfile::tempdir().unwrap();
    let mut node = Command::new(env!("CARGO_BIN_EXE_campanile"));
    node.args(["dev", "--no-demo", "--http", "127.0.0.1:0", "--rpc", "127.0.0.1:0", "--data"]).arg(data.path());
    let mut node = EndsAtDrop(node.stdout(Stdio::piped()).spawn().unwrap());
    let (rpc, token) = facts(&mut node.0);
    let mut program = Command::new(python);
    let mut executor = EndsAtDrop(program.arg(executor).args([&rpc, &token, "python"]).spawn().unwrap());

    let mut caller = Command::new(python);
    let mut caller = EndsAtDrop(caller.arg(file("pynvim_caller.py")).args([&rpc, &token]).spawn().unwrap());
    let until = Instant::now() + Duration::from_secs(60);
    let status = loop {
        if let Some(status) = caller.0.try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < until, "the caller hangs");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(status.success(), "the caller failed: {status}");
    assert!(executor.0.try_wait().unwrap().is_none(), "the executor is still there");
}

/// The wire spec shows the executor that this test runs.
#[test]
fn the_spec_shows_this_executor() {
    let spec = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/rpc.md")).unwrap();
    let code = std::fs::read_to_string(file("executor.py")).unwrap();
    assert!(spec.contains(&code), "copy tests/foreign/executor.py into docs/rpc.md");
}
