//! The thread that serves: one `poll` over everything, a turn for each that is ready.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::answer::Desk;
use super::connection::{Connection, Gone, Phase};
use super::directory::user;
use super::endpoint::Open;
use super::protocol::{Fault, FaultKind};

/// The most connections that are open at once.
pub const MAX_CLIENTS: usize = 32;

pub(super) struct Server {
    listener: UnixListener,
    /// Becomes readable when the endpoint closes.
    wake: UnixStream,
    clients: Vec<Connection>,
    desk: Desk,
    /// Counts turns, to know who has been silent longest.
    turns: u64,
}

impl Server {
    pub(super) fn new(listener: UnixListener, wake: UnixStream) -> Self {
        Server { listener, wake, clients: Vec::new(), desk: Desk::default(), turns: 0 }
    }

    /// Serves until the endpoint closes.
    pub(super) fn run(mut self) {
        while let Ok(ready) = self.wait() {
            if ready[0] {
                break;
            }
            self.desk.temporaries.restore(Instant::now());
            // From the last on, so that removing one moves nobody who is still to come.
            for place in (0..self.clients.len()).rev() {
                if ready[place + 2] && self.turn(place).is_err() {
                    self.close(place);
                }
            }
            if ready[1] {
                self.accept();
            }
        }
        self.desk.temporaries.restore_all();
        let mut open = Open::lock();
        for client in &self.clients {
            open.remove(client.stream.as_raw_fd());
        }
        open.remove(self.listener.as_raw_fd());
        open.remove(self.wake.as_raw_fd());
        // Closed under the lock, as everything that a child would close.
        let Server { listener, wake, clients, .. } = self;
        drop((listener, wake, clients));
    }

    /// Waits until one of them is ready: the end, the listener, the clients in their order.
    fn wait(&mut self) -> io::Result<Vec<bool>> {
        let has_line: Vec<bool> = self.clients.iter_mut().map(Connection::has_line).collect();
        let now = Instant::now();
        let time = if has_line.contains(&true) {
            Some(Timespec::default())
        } else {
            self.desk.temporaries.next().map(|next| {
                let left = next.saturating_duration_since(now);
                Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 3600, tv_nsec: 0 })
            })
        };
        let mut list = vec![
            PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.listener.as_fd(), PollFlags::IN),
        ];
        list.extend(self.clients.iter().map(|client| {
            let wanted = match client.phase() {
                Phase::Answer => PollFlags::OUT,
                Phase::Request | Phase::End => PollFlags::IN,
            };
            PollFd::from_borrowed_fd(client.stream.as_fd(), wanted)
        }));
        match poll(&mut list, time.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready: Vec<bool> = list.iter().map(|one| !one.revents().is_empty()).collect();
        for (ready, has_line) in ready[2..].iter_mut().zip(has_line) {
            *ready |= has_line;
        }
        Ok(ready)
    }

    fn turn(&mut self, place: usize) -> Result<(), Gone> {
        self.turns += 1;
        let count = self.clients.len();
        let client = &mut self.clients[place];
        client.heard = self.turns;
        let desk = &mut self.desk;
        client.turn(|line| desk.answer(line, count))
    }

    fn accept(&mut self) {
        // Under the lock that `fork` takes: a descriptor is known before a child can inherit it.
        let mut open = Open::lock();
        let stream = match self.listener.accept() {
            Ok((stream, _)) => stream,
            // Without descriptors the listener would stay ready, and the thread would spin.
            Err(error) if is_out_of_descriptors(&error) => {
                drop(open);
                if let Some(place) = self.most_silent() {
                    self.close(place);
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
                return;
            }
            Err(_) => return,
        };
        open.add(stream.as_raw_fd());
        drop(open);
        if self.clients.len() >= MAX_CLIENTS
            && let Some(place) = self.most_silent()
        {
            self.close(place);
        }
        self.turns += 1;
        let place = self.clients.len();
        self.clients.push(Connection::new(stream, self.turns));
        if self.greet(place).is_err() {
            self.close(place);
        }
    }

    /// Refuses those that may not connect.
    fn greet(&mut self, place: usize) -> Result<(), Gone> {
        let client = &mut self.clients[place];
        client.stream.set_nonblocking(true).map_err(|_| Gone)?;
        let peer = rustix::net::sockopt::socket_peercred(&client.stream).map_err(|_| Gone)?;
        if peer.uid.as_raw() == user() || peer.uid.is_root() {
            return Ok(());
        }
        client.end(Fault {
            kind: FaultKind::NotAllowed,
            message: format!(
                "user {} may not operate this program; connect as user {} or root",
                peer.uid.as_raw(),
                user()
            ),
            item: None,
            valid: Vec::new(),
        })
    }

    fn most_silent(&self) -> Option<usize> {
        let all = self.clients.iter().enumerate();
        all.min_by_key(|(_, client)| client.heard).map(|(place, _)| place)
    }

    fn close(&mut self, place: usize) {
        let mut open = Open::lock();
        let client = self.clients.swap_remove(place);
        open.remove(client.stream.as_raw_fd());
        drop(client);
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
        && error.kind() != ErrorKind::WouldBlock
}
