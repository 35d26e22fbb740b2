//! Files and folders that saved plans are read from.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Most files of one app.
const MOST_FILES: usize = 1_000;

/// Files and folders of plans: a path, or a list of them. Of a folder, all `*.js` and `*.ts` directly in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "OneOrMany")]
pub struct PlanSources(Vec<PathBuf>);

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(PathBuf),
    Many(Vec<PathBuf>),
}

impl From<OneOrMany> for PlanSources {
    fn from(paths: OneOrMany) -> Self {
        Self(match paths {
            OneOrMany::One(path) => vec![path],
            OneOrMany::Many(paths) => paths,
        })
    }
}

impl From<PathBuf> for PlanSources {
    fn from(path: PathBuf) -> Self {
        Self(vec![path])
    }
}

impl JsonSchema for PlanSources {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "PlanSources".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "array"], "items": {"type": "string"}})
    }
}

impl PlanSources {
    /// Takes relative paths as relative to `folder`.
    pub fn relative_to(&mut self, folder: &Path) {
        for path in &mut self.0 {
            *path = folder.join(&*path);
        }
    }

    /// The files, sorted. Declarations (`*.d.ts`) and hidden files are left out.
    ///
    /// # Errors
    /// A path does not exist or cannot be read, or there are too many files: a sentence with the path.
    pub fn files(&self) -> Result<Vec<PathBuf>, String> {
        let mut files = BTreeSet::new();
        for path in &self.0 {
            let told = |error: io::Error| format!("{} cannot be read: {error}", path.display());
            if !fs::metadata(path).map_err(told)?.is_dir() {
                files.insert(path.clone());
                continue;
            }
            for entry in fs::read_dir(path).map_err(told)? {
                let file = entry.map_err(told)?.path();
                if is_plan(&file) && file.is_file() {
                    files.insert(file);
                }
            }
            if files.len() > MOST_FILES {
                return Err(format!("{} has more than {MOST_FILES} plans", path.display()));
            }
        }
        Ok(files.into_iter().collect())
    }
}

fn is_plan(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let extension = file.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("js" | "ts")) && !name.ends_with(".d.ts") && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_the_scripts_directly_in_it() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.ts", "a.js", "types.d.ts", ".hidden.js", "README.md", "c.mjs"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        fs::create_dir(folder.path().join("d.js")).unwrap();
        let mut sources: PlanSources = serde_json::from_str(r#"[".", "c.mjs"]"#).unwrap();
        sources.relative_to(folder.path());
        let files = sources.files().unwrap();
        let names: Vec<_> = files.iter().filter_map(|file| file.file_name()?.to_str()).collect();
        assert_eq!(names, ["a.js", "b.ts", "c.mjs"]);
        let gone: PlanSources = serde_json::from_str(r#""/nonexistent/plans""#).unwrap();
        assert!(gone.files().unwrap_err().starts_with("/nonexistent/plans cannot be read"));
    }
}
