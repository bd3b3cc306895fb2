// The timed loops of package host. Every experiment fills out[] with elapsed
// nanoseconds as the clock gave them, a sample each, and returns how many, or a
// negative errno. Nothing is subtracted here.
#ifndef GDISIM_HOST_LOOPS_H
#define GDISIM_HOST_LOOPS_H
#include <stdint.h>

enum host_what {
	HOST_CLOCK,	  // two clock reads, back to back
	HOST_SYSCALL,	  // getppid
	HOST_YIELD,	  // sched_yield with nobody to yield to
	HOST_FENCE_FULL,  // a full fence
	HOST_FENCE_STORE, // a full fence after a store
	HOST_FENCE_LOAD,  // lfence
	HOST_SFENCE,	  // sfence
	HOST_XADD,	  // locked add on a line of our own
	HOST_NT_STORE,	  // 64 B non-temporal store and sfence
	HOST_STORE,	  // 64 B ordinary store and sfence
	HOST_PAUSE,
	HOST_MEMCPY,	// 4 KiB in cache
	HOST_EVENTFD,	// read of a ready eventfd
	HOST_WAKE,	// waker on cpu_a, sleeper on cpu_b, by args.means
	HOST_TIMER,	// timerfd: expiry to running, beside args.load busy threads
	HOST_NANOSLEEP, // the same with clock_nanosleep
	HOST_SWITCH,	// pipe ping-pong of two threads on cpu_a, a round trip
	HOST_YIELD_TWO, // sched_yield of two threads on cpu_a, one yield
	HOST_LINE,	// a cache line between cpu_a and cpu_b, a round trip
	HOST_GAPS,	// gaps above 1 us that a spinning thread sees
	HOST_MLOCK,	// mlock of args.bytes of fresh pages, kind args.pages
};

enum host_means { HOST_FUTEX, HOST_EVENT, HOST_PIPE, HOST_EPOLL, HOST_CONDVAR };
enum host_pages { HOST_SMALL, HOST_THP, HOST_HUGETLB };

struct host_args {
	int what;
	int cpu_a, cpu_b;
	int n;	  // samples wanted
	int reps; // repetitions between two clock reads
	int means, pages, load;
	int64_t idle_ns;     // how long the sleeper sleeps before it is woken; the timer's period
	int64_t slack_ns;    // of the thread's timers; 0 for the kernel's own
	int64_t bytes;
	int64_t deadline_ns; // of the whole experiment, from its start
	int64_t *out;
	int64_t *out2;	    // the wake call's own time, may be NULL
	volatile int *stop; // another thread sets it to end the experiment
};

int host_run(const struct host_args *a);
#endif
