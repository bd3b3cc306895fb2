// One end of a connection: a device opened, memory registered, queue pairs, and
// the timed loops over them. One call is one batch.
#ifndef GDISIM_VERBS_DEVICE_H
#define GDISIM_VERBS_DEVICE_H
#include "abi.h"

enum { GV_MAX_QP = 64, GV_DEPTH = 128, GV_ERR = 256 };

enum gv_op { GV_WRITE, GV_WRITE_IMM, GV_SEND, GV_READ, GV_FETCH_ADD, GV_CMP_SWAP };
enum gv_loop { GV_LATENCY, GV_PINGPONG, GV_RATE, GV_RECEIVE };
enum gv_pages { GV_SMALL, GV_THP, GV_HUGETLB };

// Offsets in the 64 B for atomics and signals, behind source and destination.
enum { GV_ATOMIC_WORD = 0, GV_ATOMIC_RESULT = 8, GV_SIGNAL_SOURCE = 16, GV_SIGNAL_WORD = 32 };

// Why a batch ended early.
enum gv_end_why { GV_DONE, GV_TIMEOUT, GV_STOPPED, GV_WC_ERROR, GV_POST_ERROR, GV_BAD_DATA, GV_ASYNC, GV_SYS_ERROR };

struct gv_end {
	struct gv_context *ctx;
	struct gv_pd *pd;
	struct gv_mr *mr;
	struct gv_comp_channel *channel;
	struct gv_cq *send_cq, *recv_cq;
	struct gv_qp *qp[GV_MAX_QP];
	int nqp, port, posted[GV_MAX_QP];
	uint32_t inline_max;
	int depth;
	uint32_t psn;
	// The memory: source, destination, and 64 B for atomics and signals, each `room` apart.
	uint8_t *buf;
	size_t room, len;
	int gid_index, mtu, pages;
	union gv_gid gid;
	struct gv_device_attr_ex dev;
	struct gv_port_attr pa;
	int extended;	// both CQs are gv_cq_ex
	uint64_t stamp; // device time of the CQE that was polled last, where it has one
	char err[GV_ERR];
};

struct gv_config {
	const char *device;
	int port, qps, depth, pages, any_gid;
	union gv_gid gid; // wanted by value, unless any_gid
	size_t bytes;
	uint32_t want_inline;
	int no_blueflame; // for providers that can be told so
	int devx;	  // of mlx5: the device's own commands can be given
	int extended;	  // poll by gv_cq_ex, with time stamps where the device has them
};

struct gv_remote {
	uint32_t qpn[GV_MAX_QP], psn, rkey;
	uint64_t addr, room;
	uint16_t lid;
	int mtu;
	union gv_gid gid;
};

// Two clocks at one moment: the device's between two reads of the CPU's.
struct gv_clocks {
	int64_t cpu_ns, half_ns;
	uint64_t device;
};

enum gv_signal { GV_NO_SIGNAL, GV_SIGNAL_WRITE, GV_SIGNAL_ATOMIC };

struct gv_batch {
	int loop, op, n, warmup, inlined, event, chain, window, qps;
	int signal; // a write is followed by this, in the same post
	int every;  // messages of a Rate batch per CQE
	uint32_t bytes;
	int64_t timeout_ns;	  // of one message
	int first;		  // ping-pong: we serve the first ball
	struct gv_remote remote;
	struct gv_end *peer;	  // the other end, where it is in this process
	volatile int *stop;
	int64_t *post, *seen, *done; // a sample each: ns from the call; seen is -1 where nobody looked
	// With an extended CQ, else NULL: when the call was, by the CPU's clock, and
	// the device time of the sender's CQE and of the receiver's in this process.
	int64_t *call;
	uint64_t *stamp, *arrived;
	struct gv_clocks clocks[2]; // before and after
	// Out.
	int got, why, wc_status, vendor_err, sys, event_type;
	int64_t elapsed_ns;
	uint64_t messages, doorbells;
};

int gv_load(char *err, size_t n);
int gv_devices(char *names, size_t n);
const char *gv_status(int wc_status);
struct gv_context *gv_open(const char *name, int no_blueflame, int devx, char *err, size_t n);
int gv_query(const char *name, struct gv_device_attr_ex *d, struct gv_port_attr *ports, int max, char *err, size_t n);
int gv_port_state(struct gv_end *e);
int gv_end_open(struct gv_end *e, const struct gv_config *c);
int gv_end_connect(struct gv_end *e, const struct gv_remote *r);
int gv_device_ex(struct gv_context *c, struct gv_device_attr_ex *d);
struct gv_cq *gv_create_cq_ex(struct gv_end *e, int cqes, struct gv_comp_channel *ch);
int gv_poll_ex(struct gv_end *e, struct gv_cq *cq, struct gv_wc *wc, int received);
int gv_clocks(struct gv_end *e, struct gv_clocks *c);
int64_t gv_now(void);
void gv_end_close(struct gv_end *e);
int gv_top_up(struct gv_end *e, uint32_t bytes);
void gv_run(struct gv_end *e, struct gv_batch *b);
int gv_register(struct gv_end *e, size_t bytes, int pages, int n, int64_t *reg, int64_t *dereg, const char **why);
#endif
