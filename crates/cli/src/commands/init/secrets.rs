//! Files of secrets, in a folder that is the user's own.

use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::Path,
};

use rustix::process::geteuid;

use crate::clients::files;

/// Keeps every file of the folder out of a repository.
const IGNORE_ALL: &str = "*\n";

/// Writes files, given by name and text, that their owner alone can read.
///
/// # Errors
/// The folder is a link, open to others of the machine or of another user, or cannot be written to. Nothing in it was changed then.
pub fn write(folder: &Path, secrets: &[&(String, String)]) -> Result<(), String> {
    make(folder)?;
    ignore(folder)?;
    let written = secrets.iter().try_for_each(|(name, value)| {
        let path = folder.join(name);
        if fs::symlink_metadata(&path).is_ok() {
            fs::remove_file(&path)?;
        }
        files::write_new(&path, value, 0o600)
    });
    written.map_err(text)
}

/// Makes the folder. One that is there may have come with a project of somebody else, so it must be the user's own, for nobody else.
fn make(folder: &Path) -> Result<(), String> {
    let found = match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(text);
        }
        found => found.map_err(text)?,
    };
    if found.is_symlink() {
        let target = fs::read_link(folder).unwrap_or_default();
        return Err(format!("it is a symbolic link to {}; remove the link", target.display()));
    }
    if !found.is_dir() {
        return Err("it is not a folder; rename it".to_owned());
    }
    if found.uid() != geteuid().as_raw() {
        return Err("it belongs to another user; rename it".to_owned());
    }
    if found.mode() & 0o077 != 0 {
        return Err(format!("it is open to other users; close it (chmod 700 {})", folder.display()));
    }
    Ok(())
}

fn ignore(folder: &Path) -> Result<(), String> {
    let path = folder.join(".gitignore");
    match files::read(&path).map_err(|problem| format!(".gitignore in it: {problem}"))? {
        None => files::write_new(&path, IGNORE_ALL, 0o600).map_err(text),
        Some(content) if content == IGNORE_ALL => Ok(()),
        Some(_) => Err(".gitignore in it has other lines than `*`; move it away".to_owned()),
    }
}

fn text(error: io::Error) -> String {
    error.to_string()
}
