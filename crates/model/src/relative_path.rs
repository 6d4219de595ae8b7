//! Paths of staged files, relative to their staging directory.

/// Joins `path` to `dir` and resolves `.` and `..` textually; `None` if the
/// result would leave the root. Both use `/`.
pub fn join(dir: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in dir.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            other => parts.push(other),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_within_the_root() {
        assert_eq!(join("a/b", "../c.h").as_deref(), Some("a/c.h"));
        assert_eq!(join("", "./c.h").as_deref(), Some("c.h"));
        assert_eq!(join("a", "../../c.h"), None);
    }
}
