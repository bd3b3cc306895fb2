package cpu

import "gdisim/sim"

// Config holds the price of each step of a proxy thread at the clocks of the
// run. Core cycles follow the core's clock, MMIO and last-level cache steps the
// uncore's; both are resolved to time before they get here.
type Config struct {
	Loop      sim.Delay // one pass of the polling loop, without what it looks at
	Check     sim.Delay // look at a ring whose line has not changed
	Miss      sim.Delay // load of a line that a device or another core has written
	Rewrite   sim.Delay // store to a line that a device or another core has read
	Dequeue   sim.Delay // check and decode one descriptor
	Build     sim.Delay // build one WQE (ibv_post_send, per WR)
	Post      sim.Delay // per ibv_post_send call: checks, doorbell record
	Flush     sim.Delay // doorbell or BlueFlame store with the flush of the write-combining buffer
	Drain     sim.Delay // the core waits on, while the doorbell is under way, for the write to be taken
	PollEmpty sim.Delay // ibv_poll_cq that finds nothing
	PollCQE   sim.Delay // ibv_poll_cq, per CQE found, without the line's miss
	Publish   sim.Delay // store of a completion counter, issue only
	Stream    sim.Delay // load of the next line of a run that a device has written
	Yield     sim.Delay // sched_yield with nobody else to run
	Lookup    sim.Delay // look-up in a tree or hash, or an uncontended lock

	Arm       sim.Delay // ibv_req_notify_cq: one event is asked for
	Interrupt sim.Delay // MSI-X write, entry, handler
	Switch    sim.Delay // the scheduler picks a thread and switches to it
	Timer     sim.Delay // end of a sleep, its slack apart, until the thread runs
	Syscall   sim.Delay // entry of the kernel and back
	WakeUp    sim.Delay // a waiter found and made runnable, in the waker's call
	Remote    sim.Delay // from there until another, idle core begins to switch
	Object    sim.Delay // work on the kernel's object behind a descriptor: eventfd, pipe, epoll
	Line      sim.Delay // a line fetched from another core

	Idle []IdleState
	Halt IdleState // what the host of a virtual machine does to a core that idles for long
	// What it does to the one that interrupts go to, and that has nothing else to do.
	Handler IdleState
}
