//! Files that an operator names.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

/// Reads a regular file of at most `longest` bytes. It never waits for a writer, as reading a pipe does. Call it off the async threads: a
/// network file system may hang.
///
/// # Errors
/// The file cannot be read, is not a regular one, or is longer.
pub fn read_file(path: &Path, longest: u64) -> io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(longest.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest {
        return Err(io::Error::other(format!("it is longer than {longest} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_files_up_to_the_limit_are_read_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_file(&path, 5).unwrap(), b"12345");
        assert!(read_file(&path, 4).unwrap_err().to_string().contains("longer than 4 bytes"));
        for other in [folder.path(), Path::new("/dev/zero")] {
            assert!(read_file(other, 5).unwrap_err().to_string().contains("not a regular file"));
        }
        assert_eq!(read_file(&folder.path().join("b"), 5).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
