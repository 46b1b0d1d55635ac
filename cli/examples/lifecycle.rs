//! What becomes of the socket when the process exits, forks, or closes the endpoint: for the tests.

#![allow(unsafe_code)]

use std::io::{BufRead, Read};

use immediate::{Immediate, control, immediate};

#[immediate(name = "lifecycle::LEVEL")]
static LEVEL: Immediate<u8> = Immediate::new(1);

fn line() -> std::io::Result<()> {
    std::io::stdin().lock().read_line(&mut String::new()).map(|_| ())
}

fn main() -> std::io::Result<()> {
    let how = std::env::args().nth(1).unwrap_or_default();
    let control = control::serve()?;
    println!("serving at {}", control.path().display());
    assert!(control::serve().is_err(), "a process has one endpoint");
    line()?;
    match how.as_str() {
        // No destructor runs.
        "exit" => std::process::exit(0),
        "close" => {
            drop(control);
            println!("level {}", LEVEL.get());
            let again = control::serve()?;
            println!("again at {}", again.path().display());
            line()?;
        }
        "fork" => {
            // SAFETY: the child goes on with this thread alone and uses nothing that another thread
            // could have held, but for standard output, which this thread has just flushed.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // The guard of the parent's endpoint.
                drop(control);
                let own = control::serve()?;
                println!("child at {}", own.path().display());
                std::io::stdin().read_to_end(&mut Vec::new())?;
            } else {
                std::io::stdin().read_to_end(&mut Vec::new())?;
                // SAFETY: waits for our own child.
                unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            }
        }
        other => panic!("exit, close or fork, not {other:?}"),
    }
    Ok(())
}
