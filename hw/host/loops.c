//go:build cgo && linux

#define _GNU_SOURCE
#include "loops.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

static inline int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct run {
	const struct host_args *a;
	int64_t end;
	int rc;
};

static int over(const struct run *r) { return *r->a->stop || now() > r->end; }

static int pin(int cpu)
{
	cpu_set_t s;
	CPU_ZERO(&s);
	CPU_SET(cpu, &s);
	return -pthread_setaffinity_np(pthread_self(), sizeof s, &s);
}

// A sample is `reps` executions of BODY between two clock reads.
#define BATCH(BODY)                                                                                                    \
	do {                                                                                                           \
		int i_, j_;                                                                                            \
		for (i_ = 0; i_ < a->n && !over(r); i_++) {                                                            \
			int64_t t0_ = now();                                                                           \
			for (j_ = 0; j_ < a->reps; j_++) {                                                             \
				BODY;                                                                                  \
			}                                                                                              \
			a->out[i_] = now() - t0_;                                                                      \
		}                                                                                                      \
		return i_;                                                                                             \
	} while (0)

static int simple(struct run *r)
{
	const struct host_args *a = r->a;
	static _Thread_local _Alignas(64) char line[64];
	static _Thread_local _Alignas(64) char from[4096], to[4096];
	static _Thread_local _Alignas(64) _Atomic long word;

	switch (a->what) {
	case HOST_CLOCK: {
		int i;
		for (i = 0; i < a->n && !*a->stop; i++) {
			int64_t t = now();
			a->out[i] = now() - t;
		}
		return i;
	}
	case HOST_SYSCALL: BATCH(syscall(SYS_getppid));
	case HOST_YIELD: BATCH(sched_yield());
	case HOST_XADD: BATCH(atomic_fetch_add(&word, 1));
	case HOST_MEMCPY: BATCH(memcpy(to, from, sizeof to); __asm__ volatile("" ::"r"(to), "r"(from) : "memory"));
#if defined(__x86_64__)
	case HOST_FENCE_FULL: BATCH(_mm_mfence());
	case HOST_FENCE_STORE: BATCH(*(volatile char *)line = 1; _mm_mfence());
	case HOST_FENCE_LOAD: BATCH(_mm_lfence());
	case HOST_SFENCE: BATCH(_mm_sfence());
	case HOST_PAUSE: BATCH(_mm_pause());
	case HOST_NT_STORE:
		BATCH(for (int k = 0; k < 8; k++) _mm_stream_si64((long long *)line + k, j_); _mm_sfence());
	case HOST_STORE:
		BATCH(for (int k = 0; k < 8; k++)((volatile long long *)line)[k] = j_; _mm_sfence());
#else
	case HOST_FENCE_FULL: BATCH(__atomic_thread_fence(__ATOMIC_SEQ_CST));
	case HOST_FENCE_STORE: BATCH(*(volatile char *)line = 1; __atomic_thread_fence(__ATOMIC_SEQ_CST));
#endif
	case HOST_EVENTFD: {
		int fd = eventfd(1, EFD_SEMAPHORE | EFD_CLOEXEC);
		uint64_t v = 1;
		int i, j;
		if (fd < 0)
			return -errno;
		for (i = 0; i < a->n && !over(r); i++) {
			int64_t t, sum = 0;
			for (j = 0; j < a->reps; j++) {
				t = now();
				if (read(fd, &v, sizeof v) < 0)
					break;
				sum += now() - t;
				v = 1;
				if (write(fd, &v, sizeof v) < 0)
					break;
			}
			a->out[i] = sum;
		}
		close(fd);
		return i;
	}
	}
	return -ENOSYS;
}

// ---- one thread wakes another -------------------------------------------------

enum { BUSY, READY, WOKEN };

struct wake {
	struct run *r;
	_Alignas(64) _Atomic int word;
	_Alignas(64) _Atomic int state;
	_Atomic int quit;
	int fd[2]; // eventfd, or pipe: read end, write end
	int set;   // epoll's
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	int64_t t1;
	int same;
};

static void relax(const struct wake *w)
{
	if (w->same)
		sched_yield();
}

static void signal_it(struct wake *w)
{
	uint64_t one = 1;
	ssize_t n;
	switch (w->r->a->means) {
	case HOST_FUTEX:
		atomic_store(&w->word, 1);
		syscall(SYS_futex, &w->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		break;
	case HOST_CONDVAR:
		pthread_mutex_lock(&w->mutex);
		atomic_store_explicit(&w->word, 1, memory_order_relaxed);
		pthread_cond_signal(&w->cond);
		pthread_mutex_unlock(&w->mutex);
		break;
	case HOST_EPOLL:
	case HOST_EVENT: n = write(w->fd[1], &one, 8); (void)n; break;
	case HOST_PIPE: n = write(w->fd[1], &one, 1); (void)n; break;
	}
}

static void *sleeper(void *p)
{
	struct wake *w = p;
	uint64_t v;
	ssize_t n;
	pin(w->r->a->cpu_b);
	for (;;) {
		while (atomic_load(&w->state) != BUSY && !atomic_load(&w->quit))
			relax(w);
		if (atomic_load(&w->quit))
			return NULL;
		atomic_store(&w->state, READY);
		switch (w->r->a->means) {
		case HOST_FUTEX:
			while (atomic_load(&w->word) == 0 && !atomic_load(&w->quit))
				syscall(SYS_futex, &w->word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
			break;
		case HOST_CONDVAR:
			pthread_mutex_lock(&w->mutex);
			while (!atomic_load_explicit(&w->word, memory_order_relaxed) && !atomic_load(&w->quit))
				pthread_cond_wait(&w->cond, &w->mutex);
			pthread_mutex_unlock(&w->mutex);
			break;
		case HOST_EPOLL: {
			struct epoll_event ev;
			n = epoll_wait(w->set, &ev, 1, -1);
			n = read(w->fd[0], &v, 8);
			(void)n;
			break;
		}
		case HOST_EVENT: n = read(w->fd[0], &v, 8); (void)n; break;
		case HOST_PIPE: n = read(w->fd[0], &v, 1); (void)n; break;
		}
		w->t1 = now();
		atomic_store(&w->word, 0);
		atomic_store(&w->state, WOKEN);
	}
}

static int wake_loop(struct run *r)
{
	const struct host_args *a = r->a;
	struct wake w = {.r = r, .fd = {-1, -1}, .set = -1, .mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER, .same = a->cpu_a == a->cpu_b};
	pthread_t t;
	int i, rc;

	if (a->means == HOST_EVENT || a->means == HOST_EPOLL) {
		w.fd[0] = w.fd[1] = eventfd(0, EFD_CLOEXEC);
		if (w.fd[0] < 0)
			return -errno;
		if (a->means == HOST_EPOLL) {
			struct epoll_event ev = {.events = EPOLLIN};
			w.set = epoll_create1(EPOLL_CLOEXEC);
			if (w.set < 0 || epoll_ctl(w.set, EPOLL_CTL_ADD, w.fd[0], &ev)) {
				rc = -errno;
				goto out;
			}
		}
	} else if (a->means == HOST_PIPE && pipe2(w.fd, O_CLOEXEC))
		return -errno;
	if ((rc = -pthread_create(&t, NULL, sleeper, &w)))
		goto out;
	for (i = 0; i < a->n && !over(r); i++) {
		while (atomic_load(&w.state) != READY && !over(r))
			relax(&w);
		if (over(r))
			break;
		if (w.same) // let it get from READY into the kernel
			for (int k = 0; k < 3; k++)
				sched_yield();
		for (int64_t from = now(); now() - from < a->idle_ns && !*a->stop;)
			;
		int64_t t0 = now();
		signal_it(&w);
		int64_t called = now();
		while (atomic_load(&w.state) != WOKEN && !over(r))
			relax(&w);
		if (atomic_load(&w.state) != WOKEN)
			break;
		a->out[i] = w.t1 - t0;
		if (a->out2)
			a->out2[i] = called - t0;
		atomic_store(&w.state, BUSY);
	}
	rc = i;
	atomic_store(&w.quit, 1);
	signal_it(&w);
	pthread_join(t, NULL);
out:
	if (w.set >= 0)
		close(w.set);
	if (w.fd[0] >= 0)
		close(w.fd[0]);
	if (w.fd[1] >= 0 && w.fd[1] != w.fd[0])
		close(w.fd[1]);
	return rc;
}

// ---- timers, beside busy threads -----------------------------------------------

struct load {
	int cpu;
	_Atomic int *quit;
};

static void *spin(void *p)
{
	struct load *l = p;
	pin(l->cpu);
	while (!atomic_load_explicit(l->quit, memory_order_relaxed))
		;
	return NULL;
}

static int timer_loop(struct run *r)
{
	const struct host_args *a = r->a;
	enum { MOST = 64 };
	pthread_t t[MOST];
	_Atomic int quit = 0;
	struct load l = {a->cpu_a, &quit};
	int i = 0, loads = 0, rc = 0, fd = -1;

	if (a->load > MOST)
		return -EINVAL;
	for (; loads < a->load; loads++)
		if ((rc = -pthread_create(&t[loads], NULL, spin, &l)))
			goto out;
	if (a->what == HOST_TIMER && (fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) < 0) {
		rc = -errno;
		goto out;
	}
	for (; i < a->n && !over(r); i++) {
		int64_t at = now() + a->idle_ns;
		struct timespec ts = {at / 1000000000, at % 1000000000};
		if (fd >= 0) {
			struct itimerspec it = {.it_value = ts};
			uint64_t v;
			if (timerfd_settime(fd, TFD_TIMER_ABSTIME, &it, NULL) || read(fd, &v, sizeof v) < 0) {
				rc = -errno;
				goto out;
			}
		} else
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
		a->out[i] = now() - at;
	}
	rc = i;
out:
	atomic_store(&quit, 1);
	while (loads > 0)
		pthread_join(t[--loads], NULL);
	if (fd >= 0)
		close(fd);
	return rc;
}

// ---- two threads take turns ------------------------------------------------------

struct turns {
	struct run *r;
	int to[2], back[2];
	_Alignas(64) _Atomic long ball;
	_Alignas(64) _Atomic int quit;
	_Atomic int here;
};

static void *echo(void *p)
{
	struct turns *s = p;
	const struct host_args *a = s->r->a;
	char c;
	pin(a->what == HOST_LINE ? a->cpu_b : a->cpu_a);
	atomic_store(&s->here, 1);
	switch (a->what) {
	case HOST_SWITCH:
		while (read(s->to[0], &c, 1) == 1 && write(s->back[1], &c, 1) == 1)
			;
		break;
	case HOST_YIELD_TWO:
		while (!atomic_load_explicit(&s->quit, memory_order_relaxed))
			sched_yield();
		break;
	case HOST_LINE:
		for (long k = 1; !atomic_load_explicit(&s->quit, memory_order_relaxed);)
			if (atomic_load_explicit(&s->ball, memory_order_acquire) == k) {
				atomic_store_explicit(&s->ball, k + 1, memory_order_release);
				k += 2;
			}
		break;
	}
	return NULL;
}

static int turn_loop(struct run *r)
{
	const struct host_args *a = r->a;
	struct turns s = {.r = r, .to = {-1, -1}, .back = {-1, -1}};
	pthread_t t;
	long k = 0;
	char c = 0;
	int i = 0, rc;

	if (a->what == HOST_SWITCH && (pipe2(s.to, O_CLOEXEC) || pipe2(s.back, O_CLOEXEC)))
		return -errno;
	if ((rc = -pthread_create(&t, NULL, echo, &s)))
		return rc;
	while (!atomic_load(&s.here) && !over(r))
		sched_yield();
	for (; i < a->n && !over(r); i++) {
		int64_t t0 = now();
		for (int j = 0; j < a->reps; j++) {
			switch (a->what) {
			case HOST_SWITCH:
				if (write(s.to[1], &c, 1) != 1 || read(s.back[0], &c, 1) != 1)
					goto done;
				break;
			case HOST_YIELD_TWO: sched_yield(); break;
			case HOST_LINE:
				atomic_store_explicit(&s.ball, k + 1, memory_order_release);
				for (k += 2; atomic_load_explicit(&s.ball, memory_order_acquire) != k;)
					if (*a->stop)
						goto done;
				break;
			}
		}
		a->out[i] = now() - t0;
	}
done:
	atomic_store(&s.quit, 1);
	if (s.to[1] >= 0)
		close(s.to[1]); // the echo reads an end of file
	pthread_join(t, NULL);
	for (int j = 0; j < 2; j++) {
		if (j == 0 && s.to[0] >= 0)
			close(s.to[0]);
		if (s.back[j] >= 0)
			close(s.back[j]);
	}
	return i;
}

static int gap_loop(struct run *r)
{
	const struct host_args *a = r->a;
	int i = 0;
	for (int64_t t = now(), u; i < a->n && t < r->end && !*a->stop; t = u) {
		u = now();
		if (u - t > 1000)
			a->out[i++] = u - t;
	}
	return i;
}

static int mlock_loop(struct run *r)
{
	const struct host_args *a = r->a;
	int i;
	for (i = 0; i < a->n && !over(r); i++) {
		int flags = MAP_PRIVATE | MAP_ANONYMOUS | (a->pages == HOST_HUGETLB ? MAP_HUGETLB : 0), rc = 0;
		// Room to align, so that huge pages are possible at all.
		size_t huge = 2 << 20, len = a->bytes, all = a->pages == HOST_THP ? len + huge : len;
		char *p = mmap(NULL, all, PROT_READ | PROT_WRITE, flags, -1, 0), *q = p;
		if (p == MAP_FAILED)
			return -errno;
		if (a->pages == HOST_THP) {
			q = (char *)(((uintptr_t)p + huge - 1) & ~(uintptr_t)(huge - 1));
			madvise(q, len, MADV_HUGEPAGE);
		} else if (a->pages == HOST_SMALL)
			madvise(q, len, MADV_NOHUGEPAGE);
		int64_t t0 = now();
		if (mlock(q, len))
			rc = -errno;
		a->out[i] = now() - t0;
		munmap(p, all);
		if (rc)
			return rc;
	}
	return i;
}

static void *body(void *p)
{
	struct run *r = p;
	if ((r->rc = pin(r->a->cpu_a)))
		return NULL;
	r->end = now() + r->a->deadline_ns;
	if (r->a->slack_ns > 0)
		prctl(PR_SET_TIMERSLACK, (unsigned long)r->a->slack_ns);
	switch (r->a->what) {
	case HOST_WAKE: r->rc = wake_loop(r); break;
	case HOST_TIMER:
	case HOST_NANOSLEEP: r->rc = timer_loop(r); break;
	case HOST_SWITCH:
	case HOST_YIELD_TWO:
	case HOST_LINE: r->rc = turn_loop(r); break;
	case HOST_GAPS: r->rc = gap_loop(r); break;
	case HOST_MLOCK: r->rc = mlock_loop(r); break;
	default: r->rc = simple(r);
	}
	return NULL;
}

// A thread of our own is pinned, so that the caller's stays as it was.
int host_run(const struct host_args *a)
{
	struct run r = {.a = a};
	pthread_t t;
	int rc = pthread_create(&t, NULL, body, &r);
	if (rc)
		return -rc;
	pthread_join(t, NULL);
	return r.rc;
}
