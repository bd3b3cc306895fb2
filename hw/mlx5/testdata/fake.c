// libibverbs.so.1 and libmlx5.so.1 of a machine that has no NIC: one mlx5 device in
// this process, with a thread that serves the queue pairs made by device
// commands. It reads the commands by numbers of its own. Both ends of a connection
// are in this process: an RDMA write is a copy.
//
// FAKE_LIVE names a file that holds the number of live objects, FAKE_REFUSE what
// call fails.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../dv.h"

static struct gv_device *the_device = (struct gv_device *)"mlx5_0";
static int live;

static void count(int n)
{
	const char *name = getenv("FAKE_LIVE");
	live += n;
	FILE *f = name ? fopen(name, "w") : NULL;
	if (f) {
		fprintf(f, "%d\n", live);
		fclose(f);
	}
}

static int refused(const char *what)
{
	const char *r = getenv("FAKE_REFUSE");
	if (!r || strcmp(r, what))
		return 0;
	errno = EPERM;
	return 1;
}

static void *object(size_t n)
{
	count(1);
	return calloc(1, n);
}

static int gone(void *p)
{
	count(-1);
	free(p);
	return 0;
}

static int none() { return 0; }

struct gv_device **ibv_get_device_list(int *n)
{
	struct gv_device **l = calloc(2, sizeof *l);
	l[0] = the_device;
	*n = 1;
	return l;
}
void ibv_free_device_list(struct gv_device **l) { free(l); }
const char *ibv_get_device_name(struct gv_device *d) { return (const char *)d; }

struct gv_context *ibv_open_device(struct gv_device *d)
{
	char *room = object(4096); // what a library keeps before and behind it
	struct gv_context *c = (struct gv_context *)(room + 2048);
	c->device = d;
	c->ops.poll_cq = none;
	int p[2];
	if (pipe(p))
		return NULL;
	c->async_fd = p[0];
	return c;
}
int ibv_close_device(struct gv_context *c) { return gone((char *)c - 2048); }
int ibv_query_device(struct gv_context *c, struct gv_device_attr *a)
{
	(void)c;
	a->vendor_id = 0x2c9;
	a->vendor_part_id = 4129;
	a->max_qp_wr = 32768;
	a->max_cqe = 1 << 20;
	a->max_qp = a->max_cq = a->max_mr = 1000;
	a->phys_port_cnt = 1;
	return 0;
}
int ibv_query_port(struct gv_context *c, uint8_t port, struct gv_port_attr *a)
{
	(void)c, (void)port;
	a->state = GV_PORT_ACTIVE;
	a->active_mtu = a->max_mtu = 5;
	a->gid_tbl_len = 1;
	a->link_layer = GV_LINK_ETHERNET;
	return 0;
}
int ibv_query_gid(struct gv_context *c, uint8_t port, int i, union gv_gid *g)
{
	(void)c, (void)port, (void)i;
	memset(g, 0, sizeof *g);
	g->raw[10] = g->raw[11] = 0xff;
	g->raw[12] = 127;
	g->raw[15] = 1;
	return 0;
}
struct gv_pd *ibv_alloc_pd(struct gv_context *c) { return (void)c, object(64); }
int ibv_dealloc_pd(struct gv_pd *p) { return gone(p); }

// Keys are numbers; the last of each memory region is kept.
static struct gv_mr regions[64];
static int nregions;

struct gv_mr *ibv_reg_mr(struct gv_pd *pd, void *addr, size_t n, int access)
{
	(void)access;
	if (refused("reg_mr"))
		return NULL;
	struct gv_mr *m = &regions[nregions++ % 64];
	count(1);
	*m = (struct gv_mr){NULL, pd, addr, n, 0, 0x100u + nregions, 0x200u + nregions};
	return m;
}
int ibv_dereg_mr(struct gv_mr *m)
{
	count(-1);
	m->length = 0;
	return 0;
}
struct gv_comp_channel *ibv_create_comp_channel(struct gv_context *c) { return (void)c, object(sizeof(struct gv_comp_channel)); }
int ibv_destroy_comp_channel(struct gv_comp_channel *c) { return gone(c); }
struct gv_cq *ibv_create_cq(struct gv_context *c, int n, void *x, struct gv_comp_channel *ch, int v)
{
	(void)n, (void)x, (void)ch, (void)v;
	struct gv_cq *q = object(256);
	q->context = c;
	return q;
}
int ibv_destroy_cq(struct gv_cq *q) { return gone(q); }
int ibv_get_cq_event() { return -1; }
void ibv_ack_cq_events() {}
struct gv_qp *ibv_create_qp(struct gv_pd *pd, struct gv_qp_init_attr *a)
{
	struct gv_qp *q = object(512);
	q->pd = pd;
	q->qp_num = 0x70;
	a->cap.max_inline_data = 64;
	return q;
}
int ibv_modify_qp(struct gv_qp *q, struct gv_qp_attr *a, int mask) { return (void)q, (void)a, (void)mask, 0; }
int ibv_destroy_qp(struct gv_qp *q) { return gone(q); }
int ibv_get_async_event() { return -1; }
void ibv_ack_async_event() {}
const char *ibv_wc_status_str(int s) { return (void)s, "a status"; }
struct gv_ah *ibv_create_ah(struct gv_pd *pd, struct gv_ah_attr *a) { return (void)pd, a->grh.dgid.raw[12] == 127 ? object(64) : (errno = ENETUNREACH, NULL); }
int ibv_destroy_ah(struct gv_ah *a) { return gone(a); }

// One completion queue and one queue pair at a time.
struct object {
	int is_qp;
};
static struct {
	uint32_t cqes, wqebbs, state;
	char *cq, *sq;
	uint32_t *cq_record, *record;
	volatile uint64_t *bell;
	pthread_t thread;
	int running;
	volatile int stop;
} d;

// ---- libmlx5 ------------------------------------------------------------------

_Bool mlx5dv_is_supported(struct gv_device *d) { return d == the_device; }
struct gv_context *mlx5dv_open_device(struct gv_device *d, const uint32_t *attr) { return attr[0] == 1 ? ibv_open_device(d) : NULL; }

int mlx5dv_init_obj(struct gm_dv_obj *o, uint64_t type)
{
	static struct gm_av av = {.rmac = {2, 0, 0, 0, 0, 9}};
	if (type == GM_DV_OBJ_PD)
		((struct gm_pd_out *)o->pd.out)->pdn = 0x31;
	else if (type == GM_DV_OBJ_AH)
		((struct gm_ah_out *)o->ah.out)->av = &av;
	else
		return EINVAL;
	return 0;
}
int mlx5dv_devx_query_eqn(struct gv_context *c, uint32_t v, uint32_t *eqn) { return (void)c, (void)v, *eqn = 5, 0; }

struct gm_uar *mlx5dv_devx_alloc_uar(struct gv_context *c, uint32_t flags)
{
	(void)c;
	if (refused("uar") || (flags == GM_UAR_NO_CACHE && refused("uncached")))
		return NULL;
	struct gm_uar *u = object(sizeof *u);
	u->base_addr = aligned_alloc(4096, 4096);
	memset(u->base_addr, 0, 4096);
	u->reg_addr = (char *)u->base_addr + 0x800;
	u->page_id = 0x42;
	d.bell = u->reg_addr;
	return u;
}
void mlx5dv_devx_free_uar(struct gm_uar *u) { free(u->base_addr), gone(u); }

struct umem {
	uint32_t id;
	char *addr;
	size_t n;
};
static struct umem umems[16];
static int numems;

struct gm_umem *mlx5dv_devx_umem_reg(struct gv_context *c, void *addr, size_t n, uint32_t access)
{
	(void)c, (void)access;
	if (refused("umem") || numems == 16)
		return NULL;
	struct umem *u = &umems[numems++];
	count(1);
	*u = (struct umem){numems, addr, n};
	return (struct gm_umem *)u;
}
int mlx5dv_devx_umem_dereg(struct gm_umem *u) { return count(-1), (void)u, 0; }

static uint32_t word(const void *in, int byte) { return __builtin_bswap32(*(const uint32_t *)((const char *)in + byte)); }
static void *at(uint32_t umem, uint64_t off) { return umem < 1 || umem > (uint32_t)numems || off >= umems[umem - 1].n ? NULL : umems[umem - 1].addr + off; }

static struct gv_mr *region(uint32_t key, int remote, uint64_t addr, uint32_t n)
{
	for (int i = 0; i < 64; i++)
		if (regions[i].length && (remote ? regions[i].rkey : regions[i].lkey) == key && addr >= (uintptr_t)regions[i].addr &&
		    addr + n <= (uintptr_t)regions[i].addr + regions[i].length)
			return &regions[i];
	return NULL;
}

static void cqe(uint32_t *n, uint32_t index, int opcode, int syndrome, uint32_t wqe)
{
	uint8_t *c = (uint8_t *)d.cq + (*n % d.cqes) * 64;
	memset(c, 0, 60);
	c[55] = syndrome;
	c[54] = syndrome ? 0x99 : 0;
	*(uint32_t *)(c + 56) = __builtin_bswap32((wqe & 0xff) << 24 | 0x99);
	__atomic_store_n((uint32_t *)(c + 60), (index >> 8 & 0xff) | (index & 0xff) << 8 | (uint32_t)(opcode << 4 | (*n / d.cqes & 1)) << 24, __ATOMIC_RELEASE);
	++*n;
}

static void *nic(void *x)
{
	uint32_t head = 0, cqes = 0, broken = 0;
	uint64_t seen = 0;
	(void)x;
	while (!d.stop) {
		uint64_t v = *d.bell;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (v == seen) {
			sched_yield();
			continue;
		}
		seen = v;
		uint32_t idx = __builtin_bswap32((uint32_t)v) >> 8 & 0xffff, ds = __builtin_bswap32((uint32_t)(v >> 32)) & 0x3f;
		uint32_t to = (idx + (ds + 3) / 4) & 0xffff;
		if (__builtin_bswap32((uint32_t)(v >> 32)) >> 8 != 0x99)
			continue; // another pair's
		while ((head & 0xffff) != to) {
			uint8_t w[1024];
			for (int i = 0; i < 1024; i += 16)
				memcpy(w + i, d.sq + (head * 64 + i) % (d.wqebbs * 64), 16);
			uint32_t n = word(w, 4) & 0x3f, flags = word(w, 8), bytes, syn = 0;
			uint64_t raddr = (uint64_t)word(w, 16) << 32 | word(w, 20);
			const void *from = w + 36;
			bytes = word(w, 32) & 0x7fffffff;
			if (word(w, 0) != ((head & 0xffff) << 8 | 8))
				syn = 2;
			else if (!(word(w, 32) >> 31)) {
				from = (void *)((uint64_t)word(w, 40) << 32 | word(w, 44));
				if (!region(word(w, 36), 0, (uintptr_t)from, bytes))
					syn = 4;
			}
			if (!syn && !region(word(w, 24), 1, raddr, bytes))
				syn = 0x13;
			if (broken)
				syn = 5;
			if (!syn)
				memcpy((void *)raddr, from, bytes);
			broken |= syn != 0;
			if (syn || flags & 8)
				cqe(&cqes, head, syn ? 13 : 0, syn, word(w, 0));
			head += (n + 3) / 4;
		}
	}
	return NULL;
}

void *mlx5dv_devx_obj_create(struct gv_context *c, const void *in, size_t inlen, void *out, size_t outlen)
{
	uint32_t op = word(in, 0) >> 16, number;
	(void)c, (void)inlen, (void)outlen;
	memset(out, 0, 16);
	if (refused("create")) {
		((uint32_t *)out)[0] = 3; // bad parameter
		((uint32_t *)out)[1] = __builtin_bswap32(0xdecade);
		errno = EREMOTEIO;
		return NULL;
	}
	if (op == 0x400) {
		d.cqes = 1u << (word(in, 28) >> 24 & 0x1f);
		d.cq = at(word(in, 88), (uint64_t)word(in, 80) << 32 | word(in, 84));
		d.cq_record = at(word(in, 20), (uint64_t)word(in, 72) << 32 | word(in, 76));
		number = 0x77;
		if (!d.cq || !d.cq_record || word(in, 92) >> 31 != 1 || (word(in, 28) & 0xffffff) != 0x42 || word(in, 36) != 5)
			return errno = EINVAL, NULL;
	} else if (op == 0x500) {
		d.wqebbs = 1u << (word(in, 32) >> 11 & 0xf);
		d.sq = at(word(in, 264), (uint64_t)word(in, 256) << 32 | word(in, 260));
		d.record = at(word(in, 252), (uint64_t)word(in, 184) << 32 | word(in, 188));
		number = 0x99;
		if (!d.sq || !d.record || word(in, 268) >> 31 != 1 || (word(in, 28) & 0xffffff) != 0x31 || (word(in, 148) & 0xffffff) != 0x77)
			return errno = EINVAL, NULL;
	} else
		return errno = ENOTSUP, NULL;
	((uint32_t *)out)[2] = __builtin_bswap32(number);
	struct object *o = object(sizeof *o);
	o->is_qp = op == 0x500;
	return o;
}

int mlx5dv_devx_obj_modify(void *o, const void *in, size_t inlen, void *out, size_t outlen)
{
	uint32_t op = word(in, 0) >> 16;
	(void)o, (void)inlen, (void)outlen;
	memset(out, 0, 16);
	if ((word(in, 8) & 0xffffff) != 0x99 || op != 0x502 + d.state)
		return EINVAL;
	if (op == 0x503 && (word(in, 88) != 9 || (word(in, 84) & 0xffff) != 0x200 || word(in, 32) >> 29 != 5)) // MAC and MTU
		return EINVAL;
	if (++d.state == 3) {
		d.stop = 0;
		d.running = !pthread_create(&d.thread, NULL, nic, NULL);
	}
	return 0;
}

int mlx5dv_devx_obj_destroy(void *o)
{
	struct object *x = o;
	if (x->is_qp && d.running) {
		d.stop = 1;
		pthread_join(d.thread, NULL);
	}
	if (x->is_qp)
		d.running = d.state = 0;
	return gone(o);
}
