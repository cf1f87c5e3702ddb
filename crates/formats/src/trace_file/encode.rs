//! A trace as bytes, in the order of the module's specification.

use std::io::{self, Write};

use super::bytes::{put_index_near, put_number, put_signed, put_text};
use super::{DETAIL, Last, MAGIC, OTHER_THREAD, VERSION};
use threadbare_trace::{
    End, Event, Failure, Frame, Object, ObjectName, Pending, ThreadIndex, Trace, TracePlace,
};

/// Writes a trace file. The trace's indices are taken as they are; [`read`](super::read) is what checks them.
pub fn write(trace: &Trace, out: &mut impl Write) -> io::Result<()> {
    let mut buffer = MAGIC.to_vec();
    buffer.push(VERSION);
    put_text(&mut buffer, &trace.program);
    put_list(&mut buffer, &trace.arguments, |buffer, argument| put_text(buffer, argument));
    put_list(&mut buffer, &trace.threads, |buffer, thread| {
        put_list(buffer, thread.path(), |buffer, &part| put_number(buffer, part.into()));
    });
    let mut address = 0;
    put_list(&mut buffer, &trace.locations, |buffer, location| {
        put_signed(buffer, location.address.wrapping_sub(address) as i64);
        address = location.address;
        put_list(buffer, &location.frames, put_frame);
    });
    let mut index = 0;
    put_list(&mut buffer, &trace.stacks, |buffer, stack| {
        // A parent that does not come first makes a number that no reader takes.
        put_number(buffer, u64::wrapping_sub(index, stack.parent.number().into()));
        put_number(buffer, stack.location.number().into());
        index += 1;
    });
    put_list(&mut buffer, &trace.objects, put_object);
    put_number(&mut buffer, trace.events.len() as u64);
    let mut lasts = vec![Last::default(); trace.threads.len()];
    let mut running = ThreadIndex::MAIN;
    for event in &trace.events {
        put_event(&mut buffer, event, &mut running, &mut lasts);
        if buffer.len() >= FLUSH_AT {
            out.write_all(&buffer)?;
            buffer.clear();
        }
    }
    put_list(&mut buffer, &trace.pending, put_pending);
    put_end(&mut buffer, &trace.end);
    out.write_all(&buffer)
}

/// Bytes of events that are gathered before they are handed on.
const FLUSH_AT: usize = 1 << 16;

fn put_list<T>(buffer: &mut Vec<u8>, items: &[T], mut put: impl FnMut(&mut Vec<u8>, &T)) {
    put_number(buffer, items.len() as u64);
    for item in items {
        put(buffer, item);
    }
}

fn put_frame(buffer: &mut Vec<u8>, frame: &Frame) {
    put_text(buffer, &frame.function);
    put_text(buffer, &frame.file);
    put_number(buffer, frame.line.into());
    put_number(buffer, frame.column.into());
}

fn put_object(buffer: &mut Vec<u8>, object: &Object) {
    match &object.name {
        ObjectName::None => buffer.push(0),
        ObjectName::Global { symbol, offset } => {
            buffer.push(1);
            put_text(buffer, symbol);
            put_number(buffer, *offset);
        }
        ObjectName::Heap { site, thread, ordinal, offset } => {
            buffer.push(2);
            put_number(buffer, site.number().into());
            put_number(buffer, thread.number().into());
            put_number(buffer, u64::from(*ordinal));
            put_number(buffer, *offset);
        }
        ObjectName::Stack { thread, offset } => {
            buffer.push(3);
            put_number(buffer, thread.number().into());
            put_signed(buffer, *offset);
        }
        ObjectName::Thread(thread) => {
            buffer.push(4);
            put_number(buffer, thread.number().into());
        }
        ObjectName::Memory { address } => {
            buffer.push(5);
            put_number(buffer, *address);
        }
    }
    put_text(buffer, &object.display);
}

fn put_event(buffer: &mut Vec<u8>, event: &Event, running: &mut ThreadIndex, lasts: &mut [Last]) {
    let switched = event.thread != *running;
    let detail = event.order as u8 | (event.outcome as u8) << 4;
    let flags = if switched { OTHER_THREAD } else { 0 } | if detail != 0 { DETAIL } else { 0 };
    buffer.push(event.kind as u8 | flags);
    if switched {
        put_number(buffer, event.thread.number().into());
        *running = event.thread;
    }
    if detail != 0 {
        buffer.push(detail);
    }
    let last = lasts.get(event.thread.index()).copied().unwrap_or_default();
    put_index_near(buffer, event.location.number(), last.location.number());
    put_index_near(buffer, event.stack.number(), last.stack.number());
    put_index_near(buffer, event.object.number(), last.object.number());
    if let Some(last) = lasts.get_mut(event.thread.index()) {
        *last = Last { location: event.location, stack: event.stack, object: event.object };
    }
    put_number(buffer, event.size.into());
    put_number(buffer, event.value);
}

fn put_pending(buffer: &mut Vec<u8>, pending: &Pending) {
    put_number(buffer, pending.thread.number().into());
    buffer.push(pending.kind as u8);
    buffer.push(pending.blocked.into());
    put_number(buffer, pending.object.number().into());
    put_number(buffer, pending.location.number().into());
    put_number(buffer, pending.stack.number().into());
    put_list(buffer, &pending.holders, |buffer, holder| put_number(buffer, holder.number().into()));
}

fn put_end(buffer: &mut Vec<u8>, end: &End<TracePlace>) {
    buffer.push(end.kind() as u8);
    match end {
        End::Failed(failure) => put_failure(buffer, failure),
        End::TimeLimit { at } => put_list(buffer, at.as_slice(), put_place),
        End::Diverged { step, reason } => {
            put_number(buffer, u64::from(*step));
            put_text(buffer, reason);
        }
        End::Unsupported { message, at } => {
            put_text(buffer, message);
            put_place(buffer, at);
        }
        End::Exec { program, at } => {
            put_text(buffer, program);
            put_place(buffer, at);
        }
        End::Finished | End::EventBound | End::MemoryLimit => {}
    }
}

fn put_failure(buffer: &mut Vec<u8>, failure: &Failure<TracePlace>) {
    buffer.push(failure.kind.number());
    failure.kind.detail().into_iter().for_each(|detail| put_signed(buffer, detail.into()));
    put_text(buffer, &failure.message);
    put_place(buffer, &failure.at);
    put_list(buffer, &failure.related, |buffer, related| {
        buffer.push(related.role as u8);
        put_place(buffer, &related.at);
    });
}

fn put_place(buffer: &mut Vec<u8>, place: &TracePlace) {
    put_number(buffer, place.thread.number().into());
    put_number(buffer, place.location.number().into());
    put_number(buffer, place.stack.number().into());
}
