// One end of a connection: a device opened, memory registered, queue pairs, and
// the timed loops over them. One call is one batch.
#ifndef GDISIM_VERBS_DEVICE_H
#define GDISIM_VERBS_DEVICE_H
#include "abi.h"

enum { GV_MAX_QP = 64, GV_DEPTH = 128, GV_ERR = 256 };

enum gv_op { GV_WRITE, GV_WRITE_IMM, GV_SEND, GV_READ, GV_FETCH_ADD, GV_CMP_SWAP };
enum gv_loop { GV_LATENCY, GV_PINGPONG, GV_RATE, GV_RECEIVE };
enum gv_pages { GV_SMALL, GV_THP, GV_HUGETLB };

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
	// The memory: source, destination, and 64 B for atomics, each `room` apart.
	uint8_t *buf;
	size_t room, len;
	int gid_index, mtu, pages;
	union gv_gid gid;
	struct gv_device_attr dev;
	struct gv_port_attr pa;
	char err[GV_ERR];
};

struct gv_config {
	const char *device;
	int port, qps, depth, pages, any_gid;
	union gv_gid gid; // wanted by value, unless any_gid
	size_t bytes;
	uint32_t want_inline;
};

struct gv_remote {
	uint32_t qpn[GV_MAX_QP], psn, rkey;
	uint64_t addr, room;
	uint16_t lid;
	int mtu;
	union gv_gid gid;
};

struct gv_batch {
	int loop, op, n, warmup, inlined, event, chain, window, qps;
	uint32_t bytes;
	int64_t timeout_ns;	  // of one message
	int first;		  // ping-pong: we serve the first ball
	struct gv_remote remote;
	struct gv_end *peer;	  // the other end, where it is in this process
	volatile int *stop;
	int64_t *post, *seen, *done; // a sample each: ns from the call; seen is -1 where nobody looked
	// Out.
	int got, why, wc_status, vendor_err, sys, event_type;
	int64_t elapsed_ns;
	uint64_t messages, doorbells;
};

int gv_load(char *err, size_t n);
int gv_devices(char *names, size_t n);
const char *gv_status(int wc_status);
struct gv_context *gv_open(const char *name, char *err, size_t n);
int gv_query(const char *name, struct gv_device_attr *d, struct gv_port_attr *ports, int max, char *err, size_t n);
int gv_port_state(struct gv_end *e);
int gv_end_open(struct gv_end *e, const struct gv_config *c);
int gv_end_connect(struct gv_end *e, const struct gv_remote *r);
void gv_end_close(struct gv_end *e);
int gv_top_up(struct gv_end *e, uint32_t bytes);
void gv_run(struct gv_end *e, struct gv_batch *b);
int gv_register(struct gv_end *e, size_t bytes, int pages, int n, int64_t *reg, int64_t *dereg, const char **why);
#endif
