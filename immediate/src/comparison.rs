//! Comparisons with a constant, evaluated when the program is built and when a variable is set.

use crate::value::{ImmediateValue, Kind, constant_bits};

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Operator {
    /// `==`
    Equal = 0,
    /// `!=`
    NotEqual = 1,
    /// `<`
    Less = 2,
    /// `<=`
    LessOrEqual = 3,
    /// `>`
    Greater = 4,
    /// `>=`
    GreaterOrEqual = 5,
}

impl Operator {
    /// The operator with this number in a record.
    pub(crate) fn from_number(number: u32) -> Option<Operator> {
        Some(match number {
            0 => Operator::Equal,
            1 => Operator::NotEqual,
            2 => Operator::Less,
            3 => Operator::LessOrEqual,
            4 => Operator::Greater,
            5 => Operator::GreaterOrEqual,
            _ => return None,
        })
    }

    /// As it is written.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Operator::Equal => "==",
            Operator::NotEqual => "!=",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => ">=",
        }
    }
}

/// Whether comparisons of this type can be decided from bits alone.
pub(crate) const fn is_by_bits<T: ImmediateValue>() -> bool {
    !matches!(T::KIND, Kind::Pointer | Kind::Opaque) && size_of::<T>() <= 8
}

/// `left operator right` for two values of `kind` and `size` bytes, given by their bits.
///
/// ```
/// # use immediate::__private::{Kind, Operator, compare};
/// assert!(compare(Kind::Signed, 1, 0xff, Operator::Less, 0)); // -1_i8 < 0
/// assert!(!compare(Kind::Unsigned, 1, 0xff, Operator::Less, 0)); // 255_u8 < 0
/// ```
#[must_use]
pub const fn compare(kind: Kind, size: usize, left: u64, operator: Operator, right: u64) -> bool {
    macro_rules! decide {
        ($left:expr, $right:expr) => {
            match operator {
                Operator::Equal => $left == $right,
                Operator::NotEqual => $left != $right,
                Operator::Less => $left < $right,
                Operator::LessOrEqual => $left <= $right,
                Operator::Greater => $left > $right,
                Operator::GreaterOrEqual => $left >= $right,
            }
        };
    }
    match kind {
        Kind::Float if size == 4 => {
            let (left, right) = (f32::from_bits(left as u32), f32::from_bits(right as u32));
            decide!(left, right)
        }
        Kind::Float => decide!(f64::from_bits(left), f64::from_bits(right)),
        Kind::Signed => {
            // Sign-extended from `size` bytes.
            let unused = 64_u32.saturating_sub(8 * size as u32);
            let (left, right) =
                ((left << unused) as i64 >> unused, (right << unused) as i64 >> unused);
            decide!(left, right)
        }
        _ => decide!(left, right),
    }
}

/// The bits of the constant side of a comparison.
#[must_use]
pub(crate) const fn comparand<T: ImmediateValue>(constant: T) -> u64 {
    constant_bits(constant) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Operator; 6] = [
        Operator::Equal,
        Operator::NotEqual,
        Operator::Less,
        Operator::LessOrEqual,
        Operator::Greater,
        Operator::GreaterOrEqual,
    ];

    fn check<T: ImmediateValue + PartialOrd>(values: &[T]) {
        for &left in values {
            for &right in values {
                for operator in ALL {
                    let expected = match operator {
                        Operator::Equal => left == right,
                        Operator::NotEqual => left != right,
                        Operator::Less => left < right,
                        Operator::LessOrEqual => left <= right,
                        Operator::Greater => left > right,
                        Operator::GreaterOrEqual => left >= right,
                    };
                    let got = compare(
                        T::KIND,
                        size_of::<T>(),
                        comparand(left),
                        operator,
                        comparand(right),
                    );
                    assert_eq!(got, expected, "{}", operator.symbol());
                }
            }
        }
    }

    #[test]
    fn agrees_with_the_types_own_comparisons() {
        check(&[0_u8, 1, 127, 128, 255]);
        check(&[-128_i8, -1, 0, 1, 127]);
        check(&[i16::MIN, -1, 0, i16::MAX]);
        check(&[i64::MIN, -1, 0, 1, i64::MAX]);
        check(&[0, 1, u64::MAX]);
        check(&[f32::NEG_INFINITY, -0.0, 0.0, 1.5, f32::NAN, f32::INFINITY]);
        check(&[f64::NEG_INFINITY, -0.0, 0.0, 1.5, f64::NAN, f64::INFINITY]);
        check(&[false, true]);
        check(&['a', 'z', '\u{10ffff}']);
    }

    #[test]
    fn numbers_in_records_are_those_of_the_enum() {
        for operator in ALL {
            assert_eq!(Operator::from_number(operator as u32), Some(operator));
        }
        assert_eq!(Operator::from_number(6), None);
    }
}
