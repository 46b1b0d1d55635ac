//! Names that someone may have meant.

/// How many names are listed when none is similar.
const LISTED: usize = 8;

/// The names that are similar to `name`, best first; where none is, the first few of all.
pub(crate) fn similar(mut known: Vec<&str>, name: &str) -> Vec<String> {
    known.sort_unstable();
    known.dedup();
    let mut near: Vec<(usize, &str)> = known
        .iter()
        .filter_map(|candidate| Some((difference(candidate, name)?, *candidate)))
        .collect();
    near.sort_unstable();
    near.truncate(LISTED);
    if !near.is_empty() {
        return near.into_iter().map(|(_, name)| name.to_string()).collect();
    }
    let mut list: Vec<String> = known.iter().take(LISTED).map(ToString::to_string).collect();
    if known.len() > LISTED {
        list.push(format!("one of {} others", known.len() - LISTED));
    }
    list
}

fn last(path: &str) -> &str {
    path.rsplit([':', '.']).next().unwrap_or(path)
}

/// How far `name` is from a name that is known, or `None` if it was hardly meant. Case does not
/// count, and neither does a path that was left out.
fn difference(known: &str, name: &str) -> Option<usize> {
    let (known, name) = (known.to_lowercase(), name.to_lowercase());
    if last(&known) == last(&name) {
        return Some(0);
    }
    let whole = distance(&known, &name);
    let end = distance(last(&known), last(&name));
    let (found, length) = if name.contains([':', '.']) {
        (whole, last(&name).chars().count())
    } else {
        (end, name.chars().count())
    };
    // One slip in three letters, as the compiler allows in its own suggestions.
    (found <= length.max(3) / 3).then_some(found)
}

/// How many letters must be put in, left out or changed (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut corner = row[0];
        row[0] = line + 1;
        for (column, with) in other.iter().enumerate() {
            let changed = corner + usize::from(letter != *with);
            corner = row[column + 1];
            row[column + 1] = changed.min(corner + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_the_name() {
        let known = || vec!["server::LIMIT", "server::TRACE", "client::TRACE", "other"];
        assert_eq!(similar(known(), "server::LIMT"), ["server::LIMIT"]);
        assert_eq!(similar(known(), "Server::limit"), ["server::LIMIT"]);
        assert_eq!(similar(known(), "trace"), ["client::TRACE", "server::TRACE"]);
        assert_eq!(similar(known(), "otter"), ["other"]);
        assert_eq!(similar(known(), "zzzzzz").len(), 4, "none is similar: all are listed");
        let many: Vec<String> = (0..20).map(|number| format!("name_{number:02}")).collect();
        let listed = similar(many.iter().map(String::as_str).collect(), "zzz");
        assert_eq!(listed.len(), LISTED + 1);
        assert_eq!(listed[LISTED], "one of 12 others");
    }

    #[test]
    fn distances() {
        for (one, other, expected) in
            [("", "", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("LIMIT", "LIMT", 1)]
        {
            assert_eq!(distance(one, other), expected, "{one} {other}");
            assert_eq!(distance(other, one), expected, "{other} {one}");
        }
    }
}
