//! Puts the console into the program if it was built: `console/dist`, made by `make console`. Without it the crate compiles all the
//! same, and the node says at `/` how to get it. The files are copied first, so that `make console` may replace them meanwhile.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console/dist");
    // The directory is in the repository. One that is not there would have this crate compiled each time.
    if dist.is_dir() {
        println!("cargo::rerun-if-changed={}", dist.display());
    }
    let mut files = Vec::new();
    // What is written last is looked for first: a build that was broken off is none.
    if dist.join("index.html").is_file() {
        files_in(&dist, "", &mut files)?;
    }
    files.sort();
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?);
    let copies = out.join("console");
    if copies.exists() {
        fs::remove_dir_all(&copies)?;
    }
    fs::create_dir_all(&copies)?;
    let mut text = String::from("static FILES: &[File] = &[\n");
    for (number, (name, path)) in files.iter().enumerate() {
        let copied = |ending: &str| -> io::Result<Option<String>> {
            let from = PathBuf::from(format!("{}{ending}", path.display()));
            let to = copies.join(format!("{number}{ending}"));
            if !from.is_file() {
                return Ok(None);
            }
            fs::copy(from, &to)?;
            Ok(Some(format!("include_bytes!({to:?})")))
        };
        let packed = |ending| -> io::Result<String> {
            Ok(copied(ending)?.map_or("None".to_owned(), |bytes| format!("Some({bytes})")))
        };
        let plain = copied("")?.ok_or_else(|| io::Error::other(format!("{name} is gone")))?;
        let (gzip, brotli) = (packed(".gz")?, packed(".br")?);
        text += &format!("    File {{ name: {name:?}, plain: {plain}, gzip: {gzip}, brotli: {brotli} }},\n");
    }
    text.push_str("];\n");
    fs::write(out.join("console.rs"), text)
}

/// Names with `/` between, from the root of the console.
fn files_in(directory: &Path, before: &str, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            files_in(&path, &format!("{before}{name}/"), files)?;
        } else if !name.starts_with('.') && !name.ends_with(".gz") && !name.ends_with(".br") {
            files.push((format!("{before}{name}"), path.canonicalize()?));
        }
    }
    Ok(())
}
