//! A fixed time for kernels that use the time of their compilation.

use gfxpack_model::Language;
use gfxpack_model::date::Date;

/// A clock that always shows the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clock {
    arguments: Vec<String>,
}

impl Clock {
    /// A clock that shows this many seconds since 1970, in UTC.
    ///
    /// Source: ISO/IEC 9899:2018, 6.10.8.1, for `__DATE__` and `__TIME__`;
    /// GCC's manual, "Common Predefined Macros", for `__TIMESTAMP__`.
    pub fn at(seconds: u64) -> Self {
        let date = Date::at(seconds);
        let (month, day, year) = (date.month_name(), date.day, date.year);
        let (weekday, time) = (date.weekday(), date.time());
        let arguments = vec![
            "-Wno-builtin-macro-redefined".to_owned(),
            // A preceding macro that ends in a backslash, or a trigraph for one, swallows the next
            // line: this one, which does no harm.
            "-U__DATE__".to_owned(),
            format!("-D__DATE__=\"{month} {day:2} {year}\""),
            format!("-D__TIME__=\"{time}\""),
            format!("-D__TIMESTAMP__=\"{weekday} {month} {day:2} {time} {year}\""),
        ];
        Self { arguments }
    }

    /// The arguments after the options of a key, so that they take effect. None for assembly, which
    /// is not preprocessed.
    pub fn definitions(&self, language: Language) -> &[String] {
        match language {
            Language::Hip | Language::OpenclC => &self.arguments,
            Language::Assembly => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use gfxpack_model::compiler::is_of_clock;

    use super::*;

    #[test]
    fn clocks_are_spelled_as_compilers_spell_them() {
        // `date -u -d @N "+%b %e %Y, %T, %a %b %e %T %Y"`
        let shown = |seconds| Clock::at(seconds).definitions(Language::Hip)[2..].join(" ");
        assert_eq!(
            shown(1_735_689_600),
            "-D__DATE__=\"Jan  1 2025\" -D__TIME__=\"00:00:00\" \
             -D__TIMESTAMP__=\"Wed Jan  1 00:00:00 2025\""
        );
        assert_eq!(
            shown(1_709_210_096),
            "-D__DATE__=\"Feb 29 2024\" -D__TIME__=\"12:34:56\" \
             -D__TIMESTAMP__=\"Thu Feb 29 12:34:56 2024\""
        );
        assert!(shown(u64::MAX).contains("__TIME__"));
        assert!(Clock::at(0).definitions(Language::Assembly).is_empty());
    }

    #[test]
    fn time_macros_are_recognised() {
        for word in ["-D__DATE__=1", "-U__TIME__", "-D__TIMESTAMP__(x)=x", "-D__DATE__ =1"] {
            assert!(is_of_clock(word), "{word}");
        }
        for word in ["-D__DATE=1", "-D__DATE__S", "-DA=__DATE__", "-D", "__DATE__"] {
            assert!(!is_of_clock(word), "{word}");
        }
        let clock = Clock::at(0);
        assert!(clock.definitions(Language::OpenclC).iter().skip(1).all(|arg| is_of_clock(arg)));
    }
}
