// Package sim is the engine of a discrete-event simulation: integer time, an
// event queue, cancellable timers, queueing resources, random streams and a
// recorder of causes. It knows no hardware.
//
// An Engine runs events one after the other. An event is a moment, a handler
// registered before, and one 32-bit argument that usually indexes a slab of the
// handler's. Events of one moment run in the order they were scheduled, always,
// so a run is repeatable to the byte. One engine belongs to one goroutine;
// parallel work runs one engine per point.
//
// Servers and pipes compute when work starts and ends and keep
// statistics; Streams gives each user of randomness a generator of its own;
// Delay is a duration or a distribution of durations.
//
// A Recorder notes what an operation did, span by span, each with the span
// that led to it and with whoever kept it waiting. A walk back from the end of
// an operation then says where its time went, and the parts sum to the whole.
// A nil Recorder records nothing and costs nothing.
package sim
