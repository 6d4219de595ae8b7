//! Formats errors.

use std::error::Error;

/// An error with its causes, on one line.
#[must_use]
pub fn in_full(error: &dyn Error) -> String {
    with_causes(error.to_string(), error)
}

/// `text` followed by the error's causes. A cause is left out if the message
/// before it already ends with it, as in some libraries.
#[must_use]
pub fn with_causes(mut text: String, error: &dyn Error) -> String {
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Failure(&'static str, Option<Box<Failure>>);

    impl std::fmt::Display for Failure {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Failure {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    #[test]
    fn each_cause_is_mentioned_once() {
        let cause = |text, cause| Some(Box::new(Failure(text, cause)));
        let error = Failure("no page", cause("no answer: refused", cause("refused", None)));
        assert_eq!(in_full(&error), "no page: no answer: refused");
        assert_eq!(with_causes("a".to_owned(), &error), "a: no answer: refused");
        assert_eq!(in_full(&Failure("alone", None)), "alone");
        let named = Failure("no file `refused.txt`", cause("refused", None));
        assert_eq!(in_full(&named), "no file `refused.txt`: refused");
    }
}
