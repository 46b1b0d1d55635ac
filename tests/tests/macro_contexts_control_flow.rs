//! Where a test can stand and what its arms can do: conditions, guards, loops, arms that leave by
//! `return`, `break`, `continue` or `?`, arms with values. A branch that the compiler cannot see
//! into is easily taken for one that does not end where it stands; then code after it, or the value
//! of a local that an arm assigns, would be wrong.

// The shapes that clippy would write in another way are what is tested.
#![allow(clippy::redundant_pattern_matching, clippy::never_loop, clippy::needless_return)]

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use immediate::{Error, Immediate, immediate, immediate_if, immediate_read};

#[test]
fn conditions() -> Result<(), Error> {
    #[immediate]
    static A: Immediate<bool> = Immediate::new(false);
    #[immediate]
    static B: Immediate<u16> = Immediate::new(700);

    fn all(other: bool) -> [bool; 8] {
        let in_guard = match 3 {
            3 if immediate_if!(A) => true,
            _ if immediate_if!(B == 0) => true,
            _ => false,
        };
        let chain = if let Some(3) = Some(3)
            && immediate_if!(A)
            && other
        {
            true
        } else {
            false
        };
        [
            immediate_if!(A) && other,
            immediate_if!(A) || other,
            !immediate_if!(A) & immediate_if!(B > 699),
            immediate_if!(!A) ^ immediate_if!(B, |b| b.is_multiple_of(7)),
            in_guard,
            chain,
            matches!(Some(1), Some(_) if immediate_if!(B != 700)),
            [immediate_if!(A), immediate_if!(B < 700)].contains(&true),
        ]
    }

    let f = false;
    let t = true;
    assert_eq!(all(true), [f, t, t, f, f, f, f, f]);
    assert_eq!(all(false), [f, f, t, f, f, f, f, f]);
    A.set(true)?;
    assert_eq!(all(true), [t, t, f, t, t, t, f, t]);
    assert_eq!(all(false), [f, t, f, t, t, f, f, t]);
    A.set(false)?;
    B.set(0)?;
    assert_eq!(all(false), [f, f, f, f, t, f, t, t]);
    Ok(())
}

#[test]
fn hints_change_nothing_but_the_layout() -> Result<(), Error> {
    #[immediate]
    static FLAG: Immediate<bool> = Immediate::new(true);
    #[immediate]
    static COUNT: Immediate<i8> = Immediate::new(-1);
    // Names that are also the macro's words.
    #[immediate]
    #[allow(non_upper_case_globals)]
    static likely: Immediate<bool> = Immediate::new(true);
    #[immediate]
    #[allow(non_upper_case_globals)]
    static unlikely: Immediate<u8> = Immediate::new(1);
    #[immediate]
    #[allow(non_upper_case_globals)]
    static r#type: Immediate<u8> = Immediate::new(9);

    fn flags() -> [bool; 8] {
        [
            immediate_if!(FLAG),
            immediate_if!(likely FLAG),
            immediate_if!(unlikely FLAG),
            immediate_if!(!FLAG),
            immediate_if!(likely !FLAG),
            immediate_if!(unlikely !FLAG),
            immediate_if!(likely self::FLAG_AT_ROOT),
            immediate_if!(unlikely crate::FLAG_AT_ROOT => { true } else { false }),
        ]
    }
    fn counts() -> [bool; 4] {
        [
            immediate_if!(likely COUNT < 0),
            immediate_if!(unlikely COUNT >= -1),
            immediate_if!(likely COUNT, |count| count & 1 != 0),
            immediate_if!(unlikely COUNT == i8::MIN => { true } else { false }),
        ]
    }
    fn words() -> [bool; 7] {
        [
            immediate_if!(likely),
            immediate_if!(!likely),
            immediate_if!(likely likely),
            immediate_if!(unlikely likely),
            immediate_if!(unlikely == 1),
            immediate_if!(likely unlikely != 1),
            immediate_if!(r#type > 8),
        ]
    }
    let (t, f) = (true, false);
    assert_eq!(flags(), [t, t, t, f, f, f, f, f]);
    assert_eq!(counts(), [t, t, t, f]);
    assert_eq!(words(), [t, f, t, t, t, f, t]);
    assert!(r#type.name().ends_with("::type"), "{}", r#type.name());
    FLAG.set(false)?;
    FLAG_AT_ROOT.set(true)?;
    COUNT.set(i8::MIN)?;
    likely.set(false)?;
    unlikely.set(2)?;
    r#type.set(8)?;
    assert_eq!(flags(), [f, f, f, t, t, t, t, t]);
    assert_eq!(counts(), [t, f, f, t]);
    assert_eq!(words(), [f, t, f, f, f, t, f]);
    assert_eq!(immediate_read!(r#type), 8);
    Ok(())
}

#[immediate]
static FLAG_AT_ROOT: Immediate<bool> = Immediate::new(false);

#[test]
fn loops() -> Result<(), Error> {
    #[immediate]
    static GOING: Immediate<bool> = Immediate::new(true);
    #[immediate]
    static STEP: Immediate<u8> = Immediate::new(1);

    // A loop whose condition the loop itself changes: a compiler that took the test for something
    // that does not change would never come back.
    fn run() -> Result<u32, Error> {
        let mut rounds = 0;
        while immediate_if!(GOING) {
            rounds += 1;
            if rounds == 5 {
                GOING.set(false)?;
            }
        }
        Ok(rounds)
    }
    assert_eq!(run()?, 5);
    GOING.set(true)?;
    assert_eq!(run()?, 5);

    fn search(rows: &[[u8; 3]]) -> (usize, Vec<u8>) {
        let mut seen = Vec::new();
        let found = 'rows: loop {
            for (index, row) in rows.iter().enumerate() {
                for cell in row {
                    immediate_if!(STEP == 2 => {
                        if cell % 2 == 1 {
                            continue;
                        }
                    });
                    immediate_if!(STEP == 3 => {
                        if *cell == 1 {
                            break 'rows 77;
                        }
                    } else {
                        seen.push(*cell);
                    });
                    if *cell == 5 {
                        immediate_if!(STEP >= 1 => { break 'rows index; });
                    }
                }
            }
            break rows.len();
        };
        (found, seen)
    }
    let rows = [[1, 2, 3], [4, 5, 6]];
    assert_eq!(search(&rows), (1, vec![1, 2, 3, 4, 5]));
    STEP.set(2)?;
    assert_eq!(search(&rows), (2, vec![2, 4, 6]));
    STEP.set(0)?;
    assert_eq!(search(&rows), (2, vec![1, 2, 3, 4, 5, 6]));
    Ok(())
}

#[test]
fn arms_leave() -> Result<(), Error> {
    #[immediate]
    static WAY: Immediate<u8> = Immediate::new(0);

    fn parse(text: &str) -> Result<i32, std::num::ParseIntError> {
        immediate_if!(WAY == 1 => { return Ok(-1); });
        let number = immediate_if!(WAY == 2 => { text.parse::<i32>()? } else { 7 });
        immediate_if!(WAY == 3 => { "x".parse::<i32>()?; } else { let _ = text; });
        Ok(number)
    }
    fn diverges(way: u8) -> &'static str {
        immediate_if!(WAY == 4 => {
            if way == 4 { return "four"; }
            panic!("not four")
        } else {
            return "other";
        })
    }
    assert_eq!((parse("3"), diverges(4)), (Ok(7), "other"));
    WAY.set(1)?;
    assert_eq!(parse("3"), Ok(-1));
    WAY.set(2)?;
    assert_eq!(parse("3"), Ok(3));
    assert!(parse("three").is_err());
    WAY.set(3)?;
    assert!(parse("3").is_err());
    WAY.set(4)?;
    assert_eq!((parse("3"), diverges(4)), (Ok(7), "four"));
    Ok(())
}

#[test]
fn arms_have_values_and_assign() -> Result<(), Error> {
    #[immediate]
    static DEEP: Immediate<u32> = Immediate::new(0);
    #[immediate]
    static OUTER: Immediate<bool> = Immediate::new(true);

    fn describe(log: &mut Vec<String>) -> (i32, String) {
        let first;
        let mut count = 0;
        let text = immediate_if!(OUTER => {
            first = 10;
            count += 1;
            let inner = immediate_if!(DEEP >= 100 => {
                count += 10;
                immediate_if!(DEEP, |deep| deep.is_power_of_two() => { "power" } else { "large" })
            } else {
                count += 20;
                "small"
            });
            log.push(inner.to_owned());
            format!("outer {inner}")
        } else {
            first = 20;
            String::from("none")
        });
        immediate_if!(likely OUTER => { count *= 2; });
        (first + count, text)
    }
    let mut log = Vec::new();
    assert_eq!(describe(&mut log), (52, "outer small".into()));
    DEEP.set(128)?;
    assert_eq!(describe(&mut log), (32, "outer power".into()));
    DEEP.set(129)?;
    assert_eq!(describe(&mut log), (32, "outer large".into()));
    OUTER.set(false)?;
    assert_eq!(describe(&mut log), (20, "none".into()));
    assert_eq!(log, ["small", "power", "large"]);
    // An arm that moves out of a local, so that its drop flag hangs on the branch.
    let moved = |local: String| {
        let mut kept = None;
        immediate_if!(OUTER => { kept = Some(local); });
        kept
    };
    assert_eq!(moved("a".into()), None);
    OUTER.set(true)?;
    assert_eq!(moved("a".into()).as_deref(), Some("a"));
    Ok(())
}

/// Gives the thread back once.
struct Yield(bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Polls to the end; `between` runs each time the future has given the thread back.
fn block_on<T>(future: impl Future<Output = T>, mut between: impl FnMut()) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => between(),
        }
    }
}

#[test]
fn async_functions() {
    #[immediate]
    static PRICE: Immediate<i64> = Immediate::new(-5_000_000_000);
    #[immediate]
    static OPEN: Immediate<bool> = Immediate::new(false);

    async fn ask(log: &mut Vec<i64>) -> Result<i64, &'static str> {
        log.push(immediate_read!(PRICE));
        Yield(false).await;
        log.push(immediate_read!(PRICE));
        immediate_if!(OPEN => {
            Yield(false).await;
            log.push(immediate_read!(PRICE));
        } else {
            return Err("closed");
        });
        let sum = async { immediate_read!(PRICE) + 1 };
        Ok(sum.await)
    }

    let mut log = Vec::new();
    let answer = block_on(ask(&mut log), || PRICE.set(7).expect("a set"));
    assert_eq!((answer, log.as_slice()), (Err("closed"), &[-5_000_000_000, 7][..]));
    let mut log = Vec::new();
    let mut prices = [8, 9].into_iter();
    let answer = block_on(ask(&mut log), || {
        PRICE.set(prices.next().expect("two rounds")).expect("a set");
        OPEN.set(true).expect("a set");
    });
    assert_eq!((answer, log.as_slice()), (Ok(10), &[7, 8, 9][..]));
}
