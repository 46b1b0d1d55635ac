//! Patterns for names: `*` for any text, `?` for one character.

/// Whether the whole of `name` matches. Takes at most the product of both lengths.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut seen) = (0, 0);
    // The last star, and where the text after it is tried next: only that star needs a second try.
    let mut again: Option<(usize, usize)> = None;
    while seen < name.len() {
        match pattern.get(at) {
            Some('*') => {
                again = Some((at + 1, seen));
                at += 1;
            }
            Some(letter) if *letter == '?' || *letter == name[seen] => {
                at += 1;
                seen += 1;
            }
            _ => {
                let Some((after, tried)) = again else { return false };
                again = Some((after, tried + 1));
                (at, seen) = (after, tried + 1);
            }
        }
    }
    pattern[at..].iter().all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a::*", "a::B", true),
            ("*::B", "a::c::B", true),
            ("*::B", "a::c::C", false),
            ("a*b*c", "axxbyybzc", true),
            ("a*b*c", "axxbyybz", false),
            ("?", "é", true),
            ("??", "é", false),
            ("a**", "a", true),
            ("LIMIT", "LIMITS", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
        let stars = "*a".repeat(30);
        assert!(!matches(&stars, &"a".repeat(29)), "ends, whatever the pattern is");
    }
}
