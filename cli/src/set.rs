//! `set`.

use std::time::Duration;

use immediate::control::{Answer, Request};

use crate::arguments::Target;
use crate::client;
use crate::failure::Failure;
use crate::output::{self, CHANGED, DIM, END, plain};

pub(crate) fn set(
    target: &Target,
    assignments: &[(String, String)],
    time: Option<Duration>,
    json: bool,
) -> Result<(), Failure> {
    let for_ms = time.map(|time| {
        u64::try_from(time.as_millis())
            .map_err(|_| Failure::Arguments("the time of --for is too long".into()))
    });
    let for_ms = for_ms.transpose()?;
    let mut client = client::one(target)?;
    let request = Request::Set { values: assignments.to_vec(), for_ms };
    let Answer::Set(state) = client.ask(&request)? else {
        return Err(client.unexpected());
    };
    if json {
        return output::json(&state);
    }
    let back = time.map(|time| format!("  {DIM}for {}{END}", humantime::format_duration(time)));
    for one in &state.set {
        output::line(&format!(
            "{}  {} -> {CHANGED}{}{END}{}",
            plain(&one.name),
            plain(&one.old),
            plain(&one.new),
            back.as_deref().unwrap_or_default()
        ))?;
    }
    Ok(())
}
