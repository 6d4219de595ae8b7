//! The edit distance of two texts, by words or letters, and their differences.

/// Longer lists of words are not compared: no kernel has so many arguments, but
/// a kdb may come from anywhere.
const MAX_WORDS: usize = 512;

/// The words of kernel arguments, separated by blanks. Two blanks in a row have
/// an empty word between them, since keys are compared byte for byte.
fn words(args: &str) -> Vec<&str> {
    args.split(' ').collect()
}

/// Number of words to change, insert or remove to turn one text into the other;
/// `None` if there are too many words.
pub(crate) fn distance(asked: &str, stored: &str) -> Option<usize> {
    edits(&words(asked), &words(stored))
}

/// Number of letters to change, insert or remove, as for [`distance`].
pub(crate) fn letters(asked: &str, stored: &str) -> Option<usize> {
    edits(&asked.chars().collect::<Vec<_>>(), &stored.chars().collect::<Vec<_>>())
}

fn edits<T: PartialEq>(asked: &[T], stored: &[T]) -> Option<usize> {
    let few = asked.len() <= MAX_WORDS && stored.len() <= MAX_WORDS;
    few.then(|| table(asked, stored)[0])
}

/// For each pair of positions, row by row, the number of edits from there to
/// the ends of both lists.
fn table<T: PartialEq>(asked: &[T], stored: &[T]) -> Vec<usize> {
    let width = stored.len() + 1;
    let mut table = vec![0; (asked.len() + 1) * width];
    for row in (0..=asked.len()).rev() {
        for column in (0..=stored.len()).rev() {
            let at = row * width + column;
            table[at] = match (asked.get(row), stored.get(column)) {
                (None, None) => 0,
                (Some(_), None) => table[at + width] + 1,
                (None, Some(_)) => table[at + 1] + 1,
                (Some(word), Some(other)) => (table[at + width + 1] + usize::from(word != other))
                    .min(table[at + width] + 1)
                    .min(table[at + 1] + 1),
            };
        }
    }
    table
}

/// Both texts with the differing words in braces: `-DA=1 {-DB=2}`. A word that
/// only one side has is marked there.
pub(crate) fn marked(asked: &str, stored: &str) -> (String, String) {
    let (left, right) = (words(asked), words(stored));
    let same = common(&left, &right);
    let mark = |words: &[&str], kept: &[bool]| {
        let marked = words
            .iter()
            .zip(kept)
            .map(|(word, kept)| if *kept { (*word).to_owned() } else { format!("{{{word}}}") });
        marked.collect::<Vec<_>>().join(" ")
    };
    (mark(&left, &same.0), mark(&right, &same.1))
}

/// Which words of either side stay unchanged in the shortest edit.
fn common(asked: &[&str], stored: &[&str]) -> (Vec<bool>, Vec<bool>) {
    let (width, table) = (stored.len() + 1, table(asked, stored));
    let mut kept = (vec![false; asked.len()], vec![false; stored.len()]);
    let (mut row, mut column) = (0, 0);
    while row < asked.len() && column < stored.len() {
        let at = row * width + column;
        let same = asked[row] == stored[column];
        if table[at] == table[at + width + 1] + usize::from(!same) {
            (kept.0[row], kept.1[column]) = (same, same);
            (row, column) = (row + 1, column + 1);
        } else if table[at] == table[at + width] + 1 {
            row += 1;
        } else {
            column += 1;
        }
    }
    kept
}
