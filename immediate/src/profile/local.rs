//! The part of a thread: its buffer, and the scopes that it is in.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::collector;
use super::point::Point;
use super::ring::{Event, Ring, add};

/// The most stacks of a thread that are told apart; deeper ones count for their caller.
const MAX_NODES: usize = 1 << 16;

struct Local {
    ring: Arc<Ring>,
    /// Number of a point and of the node that reached it; the node's number.
    nodes: RefCell<HashMap<(u32, u32), u32>>,
    /// Where the thread is; 0 outside all scopes.
    current: Cell<u32>,
    /// Time in scopes that have ended inside the current one.
    inner_nanos: Cell<u64>,
}

impl Local {
    fn new() -> Self {
        let ring = Arc::new(Ring::new());
        collector::lock().add(Arc::clone(&ring));
        Local { ring, nodes: RefCell::default(), current: Cell::new(0), inner_nanos: Cell::new(0) }
    }

    /// The node of a point that is reached from where the thread is.
    fn node(&self, point: u32) -> u32 {
        let parent = self.current.get();
        let mut nodes = self.nodes.borrow_mut();
        if let Some(node) = nodes.get(&(parent, point)) {
            return *node;
        }
        let node = nodes.len() as u32 + 1;
        // A node that could not be told is told the next time.
        if nodes.len() >= MAX_NODES || !self.ring.write(Event::Node { node, point, parent }) {
            return parent;
        }
        nodes.insert((parent, point), node);
        node
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.ring.is_over.store(true, Ordering::Release);
    }
}

thread_local! {
    static LOCAL: Local = Local::new();
}

/// Counts a hit. Not in a thread that is ending.
#[cold]
pub fn hit(point: &'static Point) {
    let Some(number) = point.number() else { return };
    let _ = LOCAL.try_with(|local| add(&local.ring.hits[number as usize], 1));
}

/// A scope that is timed until it is dropped.
#[derive(Debug)]
#[must_use = "a scope ends when this is dropped"]
pub struct Scope {
    /// Nothing where it could not begin.
    begun: Option<Begun>,
    /// It belongs to its thread.
    _not_send: PhantomData<*const ()>,
}

#[derive(Debug)]
struct Begun {
    point: u32,
    node: u32,
    outer: u32,
    outer_inner_nanos: u64,
    at: Instant,
}

/// Begins a scope.
#[cold]
pub fn enter(point: &'static Point) -> Scope {
    let begin = |number: u32| {
        let begin = |local: &Local| {
            let node = local.node(number);
            Begun {
                point: number,
                node,
                outer: local.current.replace(node),
                outer_inner_nanos: local.inner_nanos.replace(0),
                at: Instant::now(),
            }
        };
        LOCAL.try_with(begin).ok()
    };
    Scope { begun: point.number().and_then(begin), _not_send: PhantomData }
}

impl Drop for Scope {
    #[cold]
    fn drop(&mut self) {
        let Some(begun) = self.begun.take() else { return };
        let nanos = u64::try_from(begun.at.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let _ = LOCAL.try_with(|local| {
            let own_nanos = nanos.saturating_sub(local.inner_nanos.get());
            local.inner_nanos.set(begun.outer_inner_nanos.saturating_add(nanos));
            local.current.set(begun.outer);
            let Begun { node, point, .. } = begun;
            local.ring.write(Event::Scope { node, point, nanos, own_nanos });
        });
    }
}
