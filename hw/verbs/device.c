//go:build cgo && linux

#define _GNU_SOURCE
#include "device.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

// The library, opened once and never closed.
static struct {
	struct gv_device **(*get_device_list)(int *);
	void (*free_device_list)(struct gv_device **);
	const char *(*get_device_name)(struct gv_device *);
	struct gv_context *(*open_device)(struct gv_device *);
	int (*close_device)(struct gv_context *);
	int (*query_device)(struct gv_context *, struct gv_device_attr *);
	int (*query_port)(struct gv_context *, uint8_t, struct gv_port_attr *);
	int (*query_gid)(struct gv_context *, uint8_t, int, union gv_gid *);
	struct gv_pd *(*alloc_pd)(struct gv_context *);
	int (*dealloc_pd)(struct gv_pd *);
	struct gv_mr *(*reg_mr)(struct gv_pd *, void *, size_t, int);
	int (*dereg_mr)(struct gv_mr *);
	struct gv_comp_channel *(*create_comp_channel)(struct gv_context *);
	int (*destroy_comp_channel)(struct gv_comp_channel *);
	struct gv_cq *(*create_cq)(struct gv_context *, int, void *, struct gv_comp_channel *, int);
	int (*destroy_cq)(struct gv_cq *);
	int (*get_cq_event)(struct gv_comp_channel *, struct gv_cq **, void **);
	void (*ack_cq_events)(struct gv_cq *, unsigned);
	struct gv_qp *(*create_qp)(struct gv_pd *, struct gv_qp_init_attr *);
	int (*modify_qp)(struct gv_qp *, struct gv_qp_attr *, int);
	int (*destroy_qp)(struct gv_qp *);
	int (*get_async_event)(struct gv_context *, struct gv_async_event *);
	void (*ack_async_event)(struct gv_async_event *);
	const char *(*wc_status_str)(int);
} lib;

int gv_load(char *err, size_t n)
{
	const struct {
		void **f;
		const char *name;
	} syms[] = {
#define SYM(x) {(void **)&lib.x, "ibv_" #x}
		SYM(get_device_list), SYM(free_device_list), SYM(get_device_name), SYM(open_device), SYM(close_device),
		SYM(query_device), SYM(query_port), SYM(query_gid), SYM(alloc_pd), SYM(dealloc_pd), SYM(reg_mr), SYM(dereg_mr),
		SYM(create_comp_channel), SYM(destroy_comp_channel), SYM(create_cq), SYM(destroy_cq), SYM(get_cq_event),
		SYM(ack_cq_events), SYM(create_qp), SYM(modify_qp), SYM(destroy_qp), SYM(get_async_event), SYM(ack_async_event),
		SYM(wc_status_str),
	};
	void *h = dlopen("libibverbs.so.1", RTLD_NOW);
	if (!h) {
		snprintf(err, n, "%s", dlerror());
		return -1;
	}
	for (size_t i = 0; i < sizeof syms / sizeof *syms; i++)
		if (!(*syms[i].f = dlsym(h, syms[i].name))) {
			snprintf(err, n, "libibverbs.so.1 has no %s", syms[i].name);
			return -1;
		}
	return 0;
}

const char *gv_status(int s) { return lib.wc_status_str(s); }

// gv_devices writes the names, a line each; -errno where the kernel has no RDMA.
int gv_devices(char *names, size_t n)
{
	int num = 0;
	struct gv_device **list = lib.get_device_list(&num);
	size_t used = 0;
	if (!list)
		return errno ? -errno : -ENOSYS;
	for (int i = 0; i < num && used < n; i++)
		used += snprintf(names + used, n - used, "%s\n", lib.get_device_name(list[i]));
	lib.free_device_list(list);
	return num;
}

static const char shut_up_bf[] = "MLX5_SHUT_UP_BF";

// open_devx opens an mlx5 device so that its own commands can be given.
static struct gv_context *open_devx(struct gv_device *d, char *err, size_t n)
{
	const struct {
		uint32_t flags;
		uint64_t comp_mask;
	} attr = {.flags = 1}; // MLX5DV_CONTEXT_FLAGS_DEVX
	void *h = dlopen("libmlx5.so.1", RTLD_NOW);
	_Bool (*supported)(struct gv_device *) = h ? dlsym(h, "mlx5dv_is_supported") : NULL;
	struct gv_context *(*open)(struct gv_device *, const void *) = h ? dlsym(h, "mlx5dv_open_device") : NULL;
	struct gv_context *c = NULL;
	if (!supported || !open)
		snprintf(err, n, "no mlx5 provider: %s", dlerror());
	else if (!supported(d))
		snprintf(err, n, "%s is no mlx5 device", lib.get_device_name(d));
	else if (!(c = open(d, &attr)))
		snprintf(err, n, "open %s with DevX: %s", lib.get_device_name(d), strerror(errno));
	return c;
}

// gv_open opens a device. A provider reads its environment when it does; of mlx5,
// MLX5_SHUT_UP_BF says that nothing may be pushed through a BlueFlame register.
// One call at a time: the environment is the process's.
struct gv_context *gv_open(const char *name, int no_blueflame, int devx, char *err, size_t n)
{
	int num = 0;
	struct gv_device **list = lib.get_device_list(&num);
	struct gv_context *c = NULL;
	int found = 0;
	if (!list) {
		snprintf(err, n, "the kernel has no RDMA (%s)", strerror(errno));
		return NULL;
	}
	for (int i = 0; i < num && !found; i++)
		if (!strcmp(lib.get_device_name(list[i]), name)) {
			found = 1;
			no_blueflame = no_blueflame && !getenv(shut_up_bf);
			if (no_blueflame)
				setenv(shut_up_bf, "1", 0);
			if (devx)
				c = open_devx(list[i], err, n);
			else if (!(c = lib.open_device(list[i])))
				snprintf(err, n, "open %s: %s", name, strerror(errno));
			if (no_blueflame)
				unsetenv(shut_up_bf);
		}
	if (!found)
		snprintf(err, n, "no RDMA device %s", name);
	lib.free_device_list(list);
	return c;
}

static int query_device(struct gv_context *c, struct gv_device_attr_ex *d)
{
	memset(d, 0, sizeof *d);
	if (!gv_device_ex(c, d))
		return 0;
	memset(d, 0, sizeof *d);
	return lib.query_device(c, &d->orig_attr);
}

int gv_query(const char *name, struct gv_device_attr_ex *d, struct gv_port_attr *ports, int max, char *err, size_t n)
{
	struct gv_context *c = gv_open(name, 0, 0, err, n);
	int rc, i = 0;
	if (!c)
		return -1;
	memset(ports, 0, sizeof *ports * max);
	if ((rc = query_device(c, d)))
		snprintf(err, n, "query %s: %s", name, strerror(rc));
	for (; !rc && i < d->orig_attr.phys_port_cnt && i < max; i++)
		if ((rc = lib.query_port(c, i + 1, &ports[i])))
			snprintf(err, n, "query port %d of %s: %s", i + 1, name, strerror(rc));
	lib.close_device(c);
	return rc ? -1 : i;
}

int gv_port_state(struct gv_end *e)
{
	struct gv_port_attr p;
	memset(&p, 0, sizeof p);
	if (lib.query_port(e->ctx, e->port, &p))
		return -1;
	return p.state;
}

int64_t gv_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#define now gv_now

static uint8_t *map(size_t len, int pages)
{
	size_t huge = 2 << 20;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (pages == GV_HUGETLB ? MAP_HUGETLB : 0);
	uint8_t *p;
	if (pages != GV_SMALL)
		len = (len + huge - 1) & ~(huge - 1);
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	madvise(p, len, pages == GV_THP ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	for (size_t i = 0; i < len; i += 4096) // every page is there before a clock runs
		*(volatile uint8_t *)(p + i) = 0;
	return p;
}

static void unmap(uint8_t *p, size_t len, int pages)
{
	size_t huge = 2 << 20;
	if (pages != GV_SMALL)
		len = (len + huge - 1) & ~(huge - 1);
	munmap(p, len);
}

static const int access_all = GV_ACCESS_LOCAL_WRITE | GV_ACCESS_REMOTE_WRITE | GV_ACCESS_REMOTE_READ | GV_ACCESS_REMOTE_ATOMIC;

#define FAIL(...)                                                                                                      \
	do {                                                                                                           \
		snprintf(e->err, sizeof e->err, __VA_ARGS__);                                                          \
		gv_end_close(e);                                                                                       \
		return -1;                                                                                             \
	} while (0)

static struct gv_cq *create_cq(struct gv_end *e, int cqes, struct gv_comp_channel *ch)
{
	return e->extended ? gv_create_cq_ex(e, cqes, ch) : lib.create_cq(e->ctx, cqes, NULL, ch, 0);
}

int gv_end_open(struct gv_end *e, const struct gv_config *c)
{
	int rc;
	memset(e, 0, sizeof *e);
	e->port = c->port;
	e->pages = c->pages;
	e->gid_index = -1;
	if (!(e->ctx = gv_open(c->device, c->no_blueflame, c->devx, e->err, sizeof e->err)))
		return -1;
	e->extended = c->extended;
	if ((rc = query_device(e->ctx, &e->dev)))
		FAIL("query device: %s", strerror(rc));
	if ((rc = lib.query_port(e->ctx, c->port, &e->pa)))
		FAIL("query port %d: %s", c->port, strerror(rc));
	if (e->pa.state != GV_PORT_ACTIVE) {
		snprintf(e->err, sizeof e->err, "port %d is not active", c->port);
		gv_end_close(e);
		return -2;
	}
	e->mtu = e->pa.active_mtu;
	for (int i = 0; i < e->pa.gid_tbl_len && i < 4096; i++) {
		union gv_gid g, zero = {{0}};
		if (lib.query_gid(e->ctx, c->port, i, &g) || !memcmp(&g, &zero, sizeof g))
			continue;
		if (c->any_gid) {
			// RoCE v2 with an IPv4 address is the last of its kind; on
			// InfiniBand there is one.
			static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
			int better = e->gid_index < 0 || !memcmp(g.raw, v4, sizeof v4);
			if (!better)
				continue;
		} else if (memcmp(&g, &c->gid, sizeof g))
			continue;
		e->gid = g;
		e->gid_index = i;
	}
	if (e->gid_index < 0)
		FAIL("port %d has no such GID", c->port);
	if (!(e->pd = lib.alloc_pd(e->ctx)))
		FAIL("protection domain: %s", strerror(errno));
	e->room = (c->bytes + 4095) & ~(size_t)4095;
	e->len = 2 * e->room + 4096;
	if (!(e->buf = map(e->len, c->pages)))
		FAIL("%zu bytes of memory: %s", e->len, strerror(errno));
	if (!(e->mr = lib.reg_mr(e->pd, e->buf, e->len, access_all)))
		FAIL("register %zu bytes: %s%s", e->len, strerror(errno), errno == ENOMEM ? " (see the limit of locked memory, ulimit -l)" : "");
	if (!(e->channel = lib.create_comp_channel(e->ctx)))
		FAIL("completion channel: %s", strerror(errno));
	e->depth = c->depth;
	if (e->depth > e->dev.orig_attr.max_qp_wr)
		e->depth = e->dev.orig_attr.max_qp_wr;
	int cqes = e->depth * c->qps;
	if (cqes > e->dev.orig_attr.max_cqe)
		FAIL("%d queue pairs of depth %d need %d CQEs, the device has %d", c->qps, e->depth, cqes, e->dev.orig_attr.max_cqe);
	if (!(e->send_cq = create_cq(e, cqes, e->channel)) || !(e->recv_cq = create_cq(e, GV_DEPTH * c->qps, NULL)))
		FAIL("completion queue of %d: %s", cqes, strerror(errno));
	for (; e->nqp < c->qps; e->nqp++) {
		struct gv_qp_init_attr a;
		// What can be sent inline is asked for and read back: ask less until
		// the device agrees.
		for (uint32_t in = c->want_inline;; in /= 2) {
			memset(&a, 0, sizeof a);
			a.send_cq = e->send_cq;
			a.recv_cq = e->recv_cq;
			a.qp_type = GV_QPT_RC;
			a.cap.max_send_wr = e->depth;
			a.cap.max_recv_wr = GV_DEPTH;
			a.cap.max_send_sge = a.cap.max_recv_sge = 1;
			a.cap.max_inline_data = in;
			if ((e->qp[e->nqp] = lib.create_qp(e->pd, &a)) || in == 0)
				break;
		}
		if (!e->qp[e->nqp])
			FAIL("queue pair %d: %s", e->nqp, strerror(errno));
		e->inline_max = a.cap.max_inline_data;
		struct gv_qp_attr q;
		memset(&q, 0, sizeof q);
		q.qp_state = GV_QPS_INIT;
		q.port_num = c->port;
		q.qp_access_flags = access_all;
		if ((rc = lib.modify_qp(e->qp[e->nqp], &q, GV_QP_STATE | GV_QP_PKEY_INDEX | GV_QP_PORT | GV_QP_ACCESS_FLAGS))) {
			e->nqp++;
			FAIL("queue pair to INIT: %s", strerror(rc));
		}
	}
	e->psn = (uint32_t)(now() / 1000) & 0xffffff;
	return 0;
}

int gv_end_connect(struct gv_end *e, const struct gv_remote *r)
{
	for (int i = 0; i < e->nqp; i++) {
		struct gv_qp_attr q;
		int rc;
		memset(&q, 0, sizeof q);
		q.qp_state = GV_QPS_RTR;
		q.path_mtu = r->mtu < e->mtu ? r->mtu : e->mtu;
		q.dest_qp_num = r->qpn[i];
		q.rq_psn = r->psn;
		q.max_dest_rd_atomic = 1;
		q.min_rnr_timer = 12; // 0.64 ms
		q.ah_attr.port_num = e->port;
		q.ah_attr.dlid = r->lid;
		if (e->pa.link_layer == GV_LINK_ETHERNET || r->lid == 0) {
			q.ah_attr.is_global = 1;
			q.ah_attr.grh.dgid = r->gid;
			q.ah_attr.grh.sgid_index = e->gid_index;
			q.ah_attr.grh.hop_limit = 64;
		}
		rc = lib.modify_qp(e->qp[i], &q, GV_QP_STATE | GV_QP_AV | GV_QP_PATH_MTU | GV_QP_DEST_QPN | GV_QP_RQ_PSN | GV_QP_MAX_DEST_RD_ATOMIC | GV_QP_MIN_RNR_TIMER);
		if (rc) {
			snprintf(e->err, sizeof e->err, "queue pair to RTR: %s (no route to the other end's GID?)", strerror(rc));
			return -1;
		}
		memset(&q, 0, sizeof q);
		q.qp_state = GV_QPS_RTS;
		q.sq_psn = e->psn;
		q.timeout = 14; // 67 ms
		q.retry_cnt = 7;
		q.rnr_retry = 6; // 7 would be for ever
		q.max_rd_atomic = 1;
		rc = lib.modify_qp(e->qp[i], &q, GV_QP_STATE | GV_QP_TIMEOUT | GV_QP_RETRY_CNT | GV_QP_RNR_RETRY | GV_QP_SQ_PSN | GV_QP_MAX_QP_RD_ATOMIC);
		if (rc) {
			snprintf(e->err, sizeof e->err, "queue pair to RTS: %s", strerror(rc));
			return -1;
		}
	}
	return 0;
}

void gv_end_close(struct gv_end *e)
{
	while (e->nqp > 0)
		lib.destroy_qp(e->qp[--e->nqp]);
	if (e->send_cq)
		lib.destroy_cq(e->send_cq);
	if (e->recv_cq)
		lib.destroy_cq(e->recv_cq);
	if (e->channel)
		lib.destroy_comp_channel(e->channel);
	if (e->mr)
		lib.dereg_mr(e->mr);
	if (e->buf)
		unmap(e->buf, e->len, e->pages);
	if (e->pd)
		lib.dealloc_pd(e->pd);
	if (e->ctx)
		lib.close_device(e->ctx);
	e->send_cq = e->recv_cq = NULL;
	e->channel = NULL;
	e->mr = NULL;
	e->buf = NULL;
	e->pd = NULL;
	e->ctx = NULL;
}

// gv_top_up posts receives until every queue pair has GV_DEPTH - 1 of them. All
// land in the destination.
int gv_top_up(struct gv_end *e, uint32_t bytes)
{
	for (int i = 0; i < e->nqp; i++)
		for (; e->posted[i] < GV_DEPTH - 1; e->posted[i]++) {
			struct gv_sge s = {(uintptr_t)e->buf + e->room, (uint32_t)e->room, e->mr->lkey};
			struct gv_recv_wr wr = {.wr_id = i, .sg_list = &s, .num_sge = 1}, *bad;
			int rc = e->ctx->ops.post_recv(e->qp[i], &wr, &bad);
			if (rc)
				return -rc;
		}
	(void)bytes;
	return 0;
}

// ---- loops ----------------------------------------------------------------------

static int stopped(struct gv_batch *b, int64_t until)
{
	if (*b->stop)
		b->why = GV_STOPPED;
	else if (now() > until)
		b->why = GV_TIMEOUT;
	return b->why;
}

// reap polls one completion: 1 got it, 0 none, -1 error noted in b.
static int reap(struct gv_end *e, struct gv_cq *cq, struct gv_batch *b, struct gv_wc *wc)
{
	int n = e->extended ? gv_poll_ex(e, cq, wc, cq == e->recv_cq) : e->ctx->ops.poll_cq(cq, 1, wc);
	if (n < 0) {
		b->why = GV_SYS_ERROR;
		b->sys = -n;
		return -1;
	}
	if (n > 0 && wc->status) {
		b->why = GV_WC_ERROR;
		b->wc_status = wc->status;
		b->vendor_err = wc->vendor_err;
		return -1;
	}
	return n;
}

static const int opcodes[] = {GV_WR_RDMA_WRITE, GV_WR_RDMA_WRITE_WITH_IMM, GV_WR_SEND, GV_WR_RDMA_READ, GV_WR_ATOMIC_FETCH_AND_ADD, GV_WR_ATOMIC_CMP_AND_SWP};

static void build(struct gv_end *e, struct gv_batch *b, struct gv_send_wr *wr, struct gv_sge *s, uint64_t i)
{
	int atomic = b->op == GV_FETCH_ADD || b->op == GV_CMP_SWAP;
	memset(wr, 0, sizeof *wr);
	wr->sg_list = s;
	wr->num_sge = 1;
	wr->opcode = opcodes[b->op];
	s->lkey = e->mr->lkey;
	if (atomic) {
		s->addr = (uintptr_t)e->buf + 2 * e->room + GV_ATOMIC_RESULT;
		s->length = 8;
		wr->wr.atomic.remote_addr = b->remote.addr + 2 * b->remote.room;
		wr->wr.atomic.rkey = b->remote.rkey;
		wr->wr.atomic.compare_add = b->op == GV_FETCH_ADD ? 1 : i;
		wr->wr.atomic.swap = i + 1;
		return;
	}
	s->length = b->bytes;
	wr->wr.rdma.rkey = b->remote.rkey;
	if (b->op == GV_READ) { // from the other end's source into our destination
		s->addr = (uintptr_t)e->buf + e->room;
		wr->wr.rdma.remote_addr = b->remote.addr;
	} else {
		s->addr = (uintptr_t)e->buf;
		wr->wr.rdma.remote_addr = b->remote.addr + b->remote.room;
		wr->imm_data = (uint32_t)i;
		if (b->inlined)
			wr->send_flags |= GV_SEND_INLINE;
	}
}

// received consumes one receive at e and posts another.
static int received(struct gv_end *e, struct gv_batch *b)
{
	struct gv_wc wc;
	int n = reap(e, e->recv_cq, b, &wc);
	if (n <= 0)
		return n;
	if (b->op == GV_SEND && wc.byte_len != b->bytes) {
		b->why = GV_BAD_DATA;
		return -1;
	}
	e->posted[wc.wr_id]--;
	if ((n = gv_top_up(e, b->bytes))) {
		b->why = GV_POST_ERROR;
		b->sys = -n;
		return -1;
	}
	return 1;
}

static int wait_event(struct gv_end *e, struct gv_batch *b, int64_t until)
{
	struct pollfd p = {.fd = e->channel->fd, .events = POLLIN};
	struct gv_cq *cq;
	void *context;
	for (;;) {
		int n = poll(&p, 1, 20); // a short slice, so that a stop is seen
		if (n > 0)
			break;
		if (stopped(b, until))
			return -1;
	}
	if (lib.get_cq_event(e->channel, &cq, &context)) {
		b->why = GV_SYS_ERROR;
		b->sys = errno;
		return -1;
	}
	lib.ack_cq_events(cq, 1);
	return 0;
}

// signal_after makes wr the signal that follows a write: 8 B to the target's word
// for it, or one added to that word. Both make it i + 1.
static void signal_after(struct gv_end *e, struct gv_batch *b, struct gv_send_wr *wr, struct gv_sge *s, int i)
{
	uint64_t *value = (uint64_t *)(e->buf + 2 * e->room + GV_SIGNAL_SOURCE);
	uint64_t to = b->remote.addr + 2 * b->remote.room + GV_SIGNAL_WORD;
	memset(wr, 0, sizeof *wr);
	wr->sg_list = s;
	wr->num_sge = 1;
	s->addr = (uintptr_t)value;
	s->length = 8;
	s->lkey = e->mr->lkey;
	if (b->signal == GV_SIGNAL_ATOMIC) {
		wr->opcode = GV_WR_ATOMIC_FETCH_AND_ADD;
		wr->wr.atomic.remote_addr = to;
		wr->wr.atomic.rkey = b->remote.rkey;
		wr->wr.atomic.compare_add = 1;
		return;
	}
	*value = i + 1;
	wr->opcode = GV_WR_RDMA_WRITE;
	wr->wr.rdma.remote_addr = to;
	wr->wr.rdma.rkey = b->remote.rkey;
	if (e->inline_max >= 8)
		wr->send_flags |= GV_SEND_INLINE;
}

static void latency(struct gv_end *e, struct gv_batch *b)
{
	struct gv_send_wr wr[GV_DEPTH + 1], *bad;
	struct gv_sge sge[GV_DEPTH + 1];
	struct gv_wc wc;
	// Where the arrival shows, if this process can see it.
	volatile uint8_t *flag = NULL;
	volatile uint64_t *word = NULL;
	int two_sided = b->op == GV_SEND || b->op == GV_WRITE_IMM;
	volatile uint64_t *landed = (volatile uint64_t *)(e->buf + 2 * e->room + GV_ATOMIC_RESULT);
	uint64_t done = 0;

	if (b->peer && b->op == GV_WRITE && !b->event) {
		if (b->signal)
			word = (volatile uint64_t *)(b->peer->buf + 2 * b->peer->room + GV_SIGNAL_WORD);
		else
			flag = b->peer->buf + b->peer->room + b->bytes - 1;
	}
	for (int i = 0; i < b->warmup + b->n; i++) {
		uint8_t stamp = i % 255 + 1;
		int64_t t0, posted, seen = -1, end;
		int sent = 0, rc, wrs = b->chain;
		if (b->op != GV_READ)
			e->buf[b->bytes - 1] = stamp;
		for (int k = 0; k < b->chain; k++, done++)
			build(e, b, &wr[k], &sge[k], done);
		if (b->signal)
			signal_after(e, b, &wr[wrs], &sge[wrs], i), wrs++;
		for (int k = 0; k + 1 < wrs; k++)
			wr[k].next = &wr[k + 1];
		wr[wrs - 1].send_flags |= GV_SEND_SIGNALED;
		if (b->event && (rc = e->ctx->ops.req_notify_cq(e->send_cq, 0))) {
			b->why = GV_SYS_ERROR;
			b->sys = rc;
			return;
		}
		t0 = now();
		if ((rc = e->ctx->ops.post_send(e->qp[0], wr, &bad))) {
			b->why = GV_POST_ERROR;
			b->sys = rc;
			return;
		}
		posted = now();
		end = t0 + b->timeout_ns;
		if (b->event && wait_event(e, b, end))
			return;
		int waiting = b->peer && two_sided ? b->chain : 0;
		int64_t at = 0;
		while (!sent || waiting || ((flag || word) && seen < 0)) {
			if (seen < 0 && ((flag && *flag == stamp) || (word && *word == (uint64_t)i + 1)))
				seen = now();
			if (!sent) {
				if ((sent = reap(e, e->send_cq, b, &wc)) < 0)
					return;
				if (sent)
					at = now();
			}
			if (waiting) {
				int n = received(b->peer, b);
				if (n < 0)
					return;
				if (n && !--waiting)
					seen = now();
			}
			if (stopped(b, end))
				return;
		}
		if ((b->op == GV_FETCH_ADD || b->op == GV_CMP_SWAP) && *landed != done - 1) {
			b->why = GV_BAD_DATA;
			return;
		}
		if (i >= b->warmup) {
			if (b->stamp) {
				b->call[b->got] = t0;
				b->stamp[b->got] = e->stamp;
				b->arrived[b->got] = b->peer && two_sided ? b->peer->stamp : 0;
			}
			b->post[b->got] = posted - t0;
			b->seen[b->got] = seen < 0 ? -1 : seen - t0;
			b->done[b->got++] = at - t0;
			b->doorbells++;
			b->messages += b->chain;
		}
	}
}

// serve posts one ball, and waits for its own completion later, so that the
// completion is not on the round trip's way.
static int serve(struct gv_end *e, struct gv_batch *b, uint64_t addr, uint32_t rkey, uint8_t stamp)
{
	struct gv_send_wr wr, *bad;
	struct gv_sge s;
	uint64_t was = b->remote.addr;
	uint32_t key = b->remote.rkey;
	int rc;
	e->buf[b->bytes - 1] = stamp;
	b->remote.addr = addr;
	b->remote.rkey = rkey;
	build(e, b, &wr, &s, 0);
	b->remote.addr = was;
	b->remote.rkey = key;
	wr.send_flags |= GV_SEND_SIGNALED;
	if ((rc = e->ctx->ops.post_send(e->qp[0], &wr, &bad))) {
		b->why = GV_POST_ERROR;
		b->sys = rc;
		return -1;
	}
	return 0;
}

static int await(struct gv_end *e, struct gv_batch *b, uint8_t stamp, int64_t until)
{
	volatile uint8_t *flag = e->buf + e->room + b->bytes - 1;
	for (int k = 0; *flag != stamp; k++) {
		// A request that failed never arrives: its own side must be asked.
		if (k % 64 == 63 && stopped(b, until))
			return -1;
	}
	return 0;
}

static int completed(struct gv_end *e, struct gv_batch *b, int64_t until)
{
	struct gv_wc wc;
	int n;
	while ((n = reap(e, e->send_cq, b, &wc)) == 0)
		if (stopped(b, until))
			return -1;
	return n < 0 ? -1 : 0;
}

// failed looks for the completion error behind a wait that ran out.
static void failed(struct gv_end *e, struct gv_batch *b)
{
	struct gv_wc wc;
	if (b->why == GV_TIMEOUT)
		reap(e, e->send_cq, b, &wc);
}

static void pingpong(struct gv_end *e, struct gv_batch *b)
{
	struct gv_end *p = b->peer;
	for (int i = 0; i < b->warmup + b->n; i++) {
		uint8_t stamp = i % 255 + 1;
		int64_t t0 = now(), until = t0 + b->timeout_ns, posted;
		if (p) { // both ends by this thread
			if (serve(e, b, b->remote.addr, b->remote.rkey, stamp))
				return;
			posted = now();
			if (await(p, b, stamp, until)) {
				failed(e, b);
				return;
			}
			if (serve(p, b, (uintptr_t)e->buf, e->mr->rkey, stamp))
				return;
			if (await(e, b, stamp, until)) {
				failed(p, b);
				return;
			}
		} else {
			if (b->first && serve(e, b, b->remote.addr, b->remote.rkey, stamp))
				return;
			posted = now();
			if (await(e, b, stamp, until)) {
				failed(e, b);
				return;
			}
			if (!b->first && serve(e, b, b->remote.addr, b->remote.rkey, stamp))
				return;
		}
		int64_t back = now();
		if (completed(e, b, until) || (p && completed(p, b, until)))
			return;
		if (i >= b->warmup) {
			b->post[b->got] = posted - t0;
			b->seen[b->got] = -1;
			b->done[b->got++] = back - t0;
			b->messages += 2;
			b->doorbells += 2;
		}
	}
}

static void rate(struct gv_end *e, struct gv_batch *b)
{
	struct gv_send_wr wr[GV_DEPTH], *bad;
	struct gv_sge sge[GV_DEPTH];
	struct gv_wc wc;
	int flying[GV_MAX_QP] = {0}, open_chains[GV_MAX_QP] = {0}, open[GV_MAX_QP] = {0}; // chains; those and messages that no CQE will tell of yet
	uint64_t want = (uint64_t)b->warmup + b->n, sent = 0, ended = 0;
	int most = b->window / b->chain > 0 ? b->window / b->chain : 1;
	uint64_t last_window = (uint64_t)most * b->chain * b->qps;
	int64_t start = now(), last = start;

	while (ended < want) {
		for (int q = 0; q < b->qps; q++)
			while (flying[q] < most && sent < want) {
				int rc, k, n = want - sent < (uint64_t)b->chain ? (int)(want - sent) : b->chain;
				for (k = 0; k < n; k++) {
					build(e, b, &wr[k], &sge[k], 0);
					wr[k].next = k + 1 < n ? &wr[k + 1] : NULL;
				}
				flying[q]++;
				open_chains[q]++;
				open[q] += n;
				// A queue that is full, and each in the last window, needs a CQE to go on.
				if (open[q] >= b->every || flying[q] == most || want - sent <= last_window) {
					wr[n - 1].send_flags |= GV_SEND_SIGNALED;
					wr[n - 1].wr_id = (uint64_t)open[q] << 32 | (uint64_t)open_chains[q] << 8 | q;
					open[q] = open_chains[q] = 0;
				}
				if ((rc = e->ctx->ops.post_send(e->qp[q], wr, &bad))) {
					b->why = GV_POST_ERROR;
					b->sys = rc;
					return;
				}
				sent += n;
				if (ended >= (uint64_t)b->warmup)
					b->doorbells++;
			}
		int n = reap(e, e->send_cq, b, &wc);
		if (n < 0)
			return;
		if (n) {
			uint64_t before = ended, messages = wc.wr_id >> 32;
			ended += messages;
			flying[wc.wr_id & 0xff] -= (wc.wr_id >> 8) & 0xffffff;
			last = now();
			if (before < (uint64_t)b->warmup && ended >= (uint64_t)b->warmup) {
				start = last;
				b->messages = 0;
			} else
				b->messages += messages;
			b->elapsed_ns = last - start;
		} else if (stopped(b, last + b->timeout_ns))
			return;
	}
}

static void receive(struct gv_end *e, struct gv_batch *b)
{
	uint64_t want = ((uint64_t)b->warmup + b->n) * b->chain;
	for (int64_t last = now(); b->messages < want;) {
		int n = received(e, b);
		if (n < 0)
			return;
		if (n) {
			b->messages++;
			last = now();
		} else if (stopped(b, last + b->timeout_ns))
			return;
	}
}

// async notes an event that explains a batch that failed.
static void async(struct gv_end *e, struct gv_batch *b)
{
	struct pollfd p = {.fd = e->ctx->async_fd, .events = POLLIN};
	struct gv_async_event ev;
	while (poll(&p, 1, 0) > 0 && !lib.get_async_event(e->ctx, &ev)) {
		int t = ev.event_type;
		lib.ack_async_event(&ev);
		if (t == GV_EVENT_CQ_ERR || t == GV_EVENT_QP_FATAL || t == GV_EVENT_DEVICE_FATAL || t == GV_EVENT_PORT_ERR) {
			b->why = GV_ASYNC;
			b->event_type = t;
		}
	}
}

void gv_run(struct gv_end *e, struct gv_batch *b)
{
	b->got = b->why = b->wc_status = b->vendor_err = b->sys = 0;
	b->messages = b->doorbells = 0;
	b->elapsed_ns = 0;
	if (b->stamp && gv_clocks(e, &b->clocks[0]))
		b->clocks[0].half_ns = -1; // none
	switch (b->loop) {
	case GV_LATENCY: latency(e, b); break;
	case GV_PINGPONG: pingpong(e, b); break;
	case GV_RATE: rate(e, b); break;
	case GV_RECEIVE: receive(e, b); break;
	}
	if (b->stamp && gv_clocks(e, &b->clocks[1]))
		b->clocks[1].half_ns = -1;
	if (b->why != GV_DONE && b->why != GV_STOPPED)
		async(e, b);
}

int gv_register(struct gv_end *e, size_t bytes, int pages, int n, int64_t *reg, int64_t *dereg, const char **why)
{
	int i;
	for (i = 0; i < n; i++) {
		uint8_t *p = map(bytes, pages);
		struct gv_mr *mr;
		int64_t t;
		if (!p) {
			*why = strerror(errno);
			return -1;
		}
		t = now();
		mr = lib.reg_mr(e->pd, p, bytes, access_all);
		reg[i] = now() - t;
		if (!mr) {
			*why = strerror(errno);
			unmap(p, bytes, pages);
			return -1;
		}
		t = now();
		lib.dereg_mr(mr);
		dereg[i] = now() - t;
		unmap(p, bytes, pages);
	}
	return i;
}
