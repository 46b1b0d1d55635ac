//! Programs that show what immediate values are for: `hot_path` is a real hot path with switches.
