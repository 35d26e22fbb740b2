//! Reads files that other programs own, and replaces them in one step.

use std::{
    fs::{self, OpenOptions, Permissions},
    io::{self, ErrorKind, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

/// Longest file that is changed, in bytes.
pub const LONGEST: u64 = 8 << 20;

/// Permissions of files that may contain secrets.
const PRIVATE: u32 = 0o600;

/// The text of a file; `None` if there is none.
///
/// # Errors
/// It is a link, no regular file, too long or not UTF-8, or cannot be read; with what to do.
pub fn read(path: &Path) -> Result<Option<String>, String> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    if metadata.is_symlink() {
        let target = fs::read_link(path).unwrap_or_default();
        return Err(format!("it is a symbolic link to {}; name that file instead", target.display()));
    }
    if !metadata.is_file() {
        return Err("it is not a regular file; name another".to_owned());
    }
    let bytes = gatewright_core::read_file(path, LONGEST).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => {
            "it cannot be read: permission denied; run the command as its owner".to_owned()
        }
        _ => format!("it cannot be read: {error}"),
    })?;
    String::from_utf8(bytes).map(Some).map_err(|_| "it is not UTF-8".to_owned())
}

/// Like [`read`], of a file that is going to be changed.
///
/// # Errors
/// As [`read`], and if it is read-only.
pub fn read_to_change(path: &Path) -> Result<Option<String>, String> {
    let text = read(path)?;
    if text.is_some() {
        mode_of(path)?;
    }
    Ok(text)
}

/// Permissions of a file that may be changed.
fn mode_of(path: &Path) -> Result<u32, String> {
    let mode = fs::metadata(path).map_err(|error| error.to_string())?.permissions().mode();
    match mode & 0o200 {
        0 => Err("it is read-only; make it writable (chmod u+w) if it may be changed".to_owned()),
        _ => Ok(mode),
    }
}

/// Replaces the content of a file that was read as `before`. It keeps its permissions; a new one is for its owner only. Folders are made.
///
/// # Errors
/// The file is read-only, was changed meanwhile, or cannot be written. Then it is as it was.
pub fn replace(path: &Path, before: Option<&str>, after: &str) -> Result<(), String> {
    let mode = match before {
        Some(_) => mode_of(path)?,
        None => PRIVATE,
    };
    let failed = |error: io::Error| format!("it cannot be written: {error}; nothing was changed");
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = path.with_file_name(name);
    let written = write_new(&new, after, mode).map_err(failed).and_then(|()| {
        // The client may have written it in between.
        if read(path)?.as_deref() != before {
            return Err("it was changed meanwhile; nothing was written, run the command again".to_owned());
        }
        fs::rename(&new, path).map_err(failed)
    });
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

/// Writes a copy of `text` to `path` with the permissions of `original`.
///
/// # Errors
/// It cannot be written.
pub fn keep_copy(path: &Path, original: &Path, text: &str) -> io::Result<()> {
    let mode = fs::metadata(original)?.permissions().mode();
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => write_new(path, text, mode),
    }
}

/// Writes a file that does not exist yet. It never has more permissions than `mode`.
///
/// # Errors
/// It exists, or cannot be written.
pub fn write_new(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode & 0o777 & PRIVATE).open(path)?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(Permissions::from_mode(mode & 0o777))?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changed_meanwhile_or_is_read_only_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        fs::write(&path, "newer").unwrap();
        assert!(replace(&path, Some("older"), "mine").unwrap_err().contains("meanwhile"));
        assert!(replace(&path, None, "mine").unwrap_err().contains("meanwhile"));
        fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
        assert!(replace(&path, Some("newer"), "mine").unwrap_err().contains("read-only"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "newer");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left over");
    }

    #[test]
    fn permissions_stay_and_new_files_are_private() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let old = folder.path().join("old");
        fs::write(&old, "a").unwrap();
        fs::set_permissions(&old, Permissions::from_mode(0o640)).unwrap();
        replace(&old, Some("a"), "b").unwrap();
        let new = folder.path().join("deep/er/new");
        replace(&new, None, "c").unwrap();
        assert_eq!((mode(&old), mode(&new)), (0o640, 0o600));
        assert_eq!(
            (fs::read_to_string(&old).unwrap(), fs::read_to_string(&new).unwrap()),
            ("b".into(), "c".into())
        );
    }
}
