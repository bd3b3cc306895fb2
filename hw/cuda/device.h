// The C side of package cuda: the driver library, a GPU with all that the
// experiments use, and the experiments. An experiment allocates nothing that
// outlives it, and every wait has an end.
#ifndef GDISIM_CUDA_DEVICE_H
#define GDISIM_CUDA_DEVICE_H
#include <stddef.h>
#include <stdint.h>

// What an experiment runs.
enum gd_what {
	GD_SAMPLES, // a kernel of one thread that times each sample
	GD_POLLS,   // a kernel whose blocks poll
	GD_RATE,    // a kernel whose blocks post, as fast as they go
	GD_ASK,	    // the GPU asks by a flag, a thread answers
	GD_ANSWER,  // a thread asks, by args.how, the GPU answers
	GD_PROXY,   // blocks send descriptors to proxy threads
	GD_LAUNCH,  // launch until args.how
	GD_NOTICE,  // a kernel's last store until a waiter knows, by args.how
	GD_COPY,    // a copy, in direction args.how
	GD_REGISTER,
	GD_EXPORT,
	GD_PEER_ECHO, // two GPUs ask and answer by flags
	GD_PEER_COPY, // the SMs of one write into the other
	GD_SPIN,      // an SM that is busy for delay_ns
};

enum gd_memory { GD_GPU, GD_HOST, GD_PEER };
enum gd_background { GD_QUIET, GD_COPY_TO_HOST, GD_COPY_TO_GPU, GD_COPY_BOTH, GD_STORE_HOST, GD_LOAD_HOST, GD_STORE_GPU };
enum gd_ask { GD_STORE, GD_STREAM_WRITE, GD_COPY_WORD };
enum gd_wait { GD_POLL, GD_YIELD, GD_SLEEP_1US, GD_SLEEP_50US, GD_FUTEX, GD_EVENTFD };
enum gd_until { GD_FIRST_STORE, GD_SYNC, GD_GRAPH_STORE, GD_GRAPH_SYNC };
enum gd_by {
	GD_NEXT_KERNEL, GD_BY_STREAM_WRITE, GD_STREAM_SYNC, GD_EVENT_SYNC, GD_EVENT_QUERY, GD_BY_COPY, GD_BLOCKING_EVENT, GD_CALLBACK,
};
enum gd_direction { GD_TO_HOST, GD_TO_GPU };

// Why an experiment has no result. Below GD_E_LOST the GPU is of no more use.
enum {
	GD_E_REFUSED = -1, // the driver or the kernel refused it
	GD_E_WRONG = -2,   // the data that arrived was not what was sent
	GD_E_STOPPED = -3, // by the caller
	GD_E_LATE = -4,	   // past its deadline
	GD_E_MEMORY = -5,
	GD_E_LOST = -6,	   // an error that the context does not survive
	GD_E_HUNG = -7,	   // a kernel that does not end even when told
};

#define GD_CPUS 6 // of the caller, the first proxies, the watcher

struct gd_exp {
	int what;
	const char *kernel, *kernel2;
	int blocks, n, count, window, stride, gap;
	int64_t delay_ns;
	uint64_t bytes, offset; // offset: of the target in its memory
	int memory, background, ctas, how, proxies, wait, competing, huge, blocking;
	int cpus[GD_CPUS];
	int64_t deadline_ns;
	volatile int *stop; // another thread sets it to end the experiment

	// Filled: picoseconds of each sample, and of a second kind (the stores before
	// a fence, the call of a launch). out and out2 have room for max.
	int64_t *out, *out2;
	int max, n2;
	int64_t hz, elapsed_ps, messages, hits, wrong;
	char err[256];
};

struct gd_fact {
	char key[32], value[128];
};

struct gd_device;

// gd_open loads the library of that name and takes the GPU of that ordinal. NULL
// and a reason where it cannot; *absent says that this machine has no driver or GPU.
struct gd_device *gd_open(const char *library, int ordinal, const char *ptx, int *absent, char *err, size_t n);
int gd_facts(struct gd_device *d, struct gd_fact *f, int max);
int gd_peer(struct gd_device *d, char *err, size_t n); // 0 and no reason where there is a second GPU that it reaches
int gd_sms(struct gd_device *d);
// gd_run returns the number of samples, or why there are none.
int gd_run(struct gd_device *d, struct gd_exp *e);
void gd_close(struct gd_device *d);
#endif
