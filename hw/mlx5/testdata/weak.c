// The poster of post.h on a machine whose stores leave a buffer in any order
// that fences and the same address allow, and beside it the NIC of nic.h, which acts
// at the worst moment: as soon as the doorbell is out. One thread, and a seed.
//
//   weak ORDER RECORD EAGER POINTER SEEDS -> a line for each seed: why, faults, fault, word
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../layout.h"

enum { ROOM = 48 };

struct store {
	uint8_t *to;
	uint32_t size;
	uint64_t v;
};

static struct {
	struct store buf[ROOM];
	int n;
	uint64_t rng, now;
	void (*nic)(void);
	uint64_t *doorbell;
} m;

static uint32_t draw(uint32_t below)
{
	m.rng ^= m.rng << 13;
	m.rng ^= m.rng >> 7;
	m.rng ^= m.rng << 17;
	return (uint32_t)(m.rng >> 33) % below;
}

static int overlap(const struct store *a, const struct store *b) { return a->to < b->to + b->size && b->to < a->to + a->size; }

static void drain(int i)
{
	for (int k = 0; k < i; k++) // the older one of the same place goes first
		if (overlap(&m.buf[k], &m.buf[i])) {
			drain(k);
			return;
		}
	struct store s = m.buf[i];
	memmove(&m.buf[i], &m.buf[i + 1], sizeof s * (m.n - i - 1));
	m.n--;
	memcpy(s.to, &s.v, s.size);
	if ((uint64_t *)s.to == m.doorbell)
		m.nic();
}

static void drain_all(void)
{
	while (m.n)
		drain(draw(m.n));
}

static void turn(void)
{
	m.now++;
	if (m.n && draw(4) == 0)
		drain(draw(m.n));
	if (draw(4) == 0)
		m.nic();
}

static void put(void *to, uint32_t size, uint64_t v)
{
	if (m.n == ROOM)
		drain(draw(m.n));
	m.buf[m.n++] = (struct store){to, size, v};
	turn();
}

static uint64_t get(const void *from, uint32_t size)
{
	uint64_t v = 0;
	turn();
	memcpy(&v, from, size);
	struct store want = {(uint8_t *)from, size, 0};
	for (int i = 0; i < m.n; i++) // what this thread stored itself it sees
		if (overlap(&m.buf[i], &want))
			for (uint32_t k = 0; k < m.buf[i].size; k++)
				if (m.buf[i].to + k >= want.to && m.buf[i].to + k < want.to + size)
					((uint8_t *)&v)[m.buf[i].to + k - want.to] = ((uint8_t *)&m.buf[i].v)[k];
	return v;
}

// The poster's memory.
#define GM_FN static inline
GM_FN uint32_t gm_ld32(const uint32_t *p) { return (uint32_t)get(p, 4); }
GM_FN uint64_t gm_ld64(const uint64_t *p) { return get(p, 8); }
GM_FN uint32_t gm_ld32_acquire(const uint32_t *p) { return (uint32_t)get(p, 4); }
GM_FN uint64_t gm_ld64_acquire(const uint64_t *p) { return get(p, 8); }
GM_FN uint32_t gm_ld_payload(const uint32_t *p) { return (uint32_t)get(p, 4); }
GM_FN void gm_st8(uint8_t *p, uint32_t v) { put(p, 1, v); }
GM_FN void gm_st32(uint32_t *p, uint32_t v) { put(p, 4, v); }
GM_FN void gm_st64(uint64_t *p, uint64_t v) { put(p, 8, v); }
GM_FN void gm_st128(uint8_t *p, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	put(p, 4, a);
	put(p + 4, 4, b);
	put(p + 8, 4, c);
	put(p + 12, 4, d);
}
#ifdef PLANT_LOOSE_RECORD // the record may pass the WQEs, the doorbell passes nothing
GM_FN void gm_st32_release_gpu(uint32_t *p, uint32_t v) { put(p, 4, v); }
GM_FN void gm_st32_release_sys(uint32_t *p, uint32_t v) { put(p, 4, v); }
#else
GM_FN void gm_st32_release_gpu(uint32_t *p, uint32_t v) { drain_all(), put(p, 4, v); }
GM_FN void gm_st32_release_sys(uint32_t *p, uint32_t v) { drain_all(), put(p, 4, v); }
#endif
GM_FN void gm_st64_release_gpu(uint64_t *p, uint64_t v) { drain_all(), put(p, 8, v); }
GM_FN void gm_st64_release_sys(uint64_t *p, uint64_t v) { drain_all(), put(p, 8, v); }
GM_FN void gm_fence_gpu(void) { drain_all(); }
GM_FN void gm_fence_sys(void) { drain_all(); }
GM_FN void gm_relax(void) {}
GM_FN uint64_t gm_clock(void) { return turn(), m.now; }
GM_FN uint64_t gm_ns(void) { return m.now; }
#include "../post.h"

extern void weak_nic_step(struct gm_nic *);

static struct gm_nic nic;
static void step(void) { weak_nic_step(&nic); }

static void one(uint64_t seed, int order, int record, int eager, int pointer)
{
	static uint8_t sq[32 * GM_BB], cq[16 * GM_BB], shadow[32 * GM_BB], src[GM_SLOTS * 128];
	static uint32_t rec[2], cqrec[2], stop;
	static uint64_t bell;
	struct gm_report rep = {0};
	struct gm_run r = {
		.q = {sq, cq, rec, cqrec, &bell, 0x1234, 32, 16, 65530, 0},
		.shape = {{GM_OP_WRITE, 1, 8, 0}, {GM_OP_WRITE_IMM, 1, 60, GM_FENCE}, {GM_OP_WRITE, !pointer, 28, 0}},
		.shapes = 3, .n = 40, .chain = 1 + seed % 3, .window = 8, .signal_every = 2,
		.order = order, .with_record = record, .local = 0x1000, .remote = 0x7f0000000000, .stride = 128,
		.lkey = 0x11, .rkey = 0x22, .source = src, .stamp = 1, .stop = &stop, .budget = 100000, .report = &rep,
	};
	memset(sq, 0, sizeof sq);
	memset(rec, 0, sizeof rec);
	memset(cqrec, 0, sizeof cqrec);
	for (int i = 0; i < 16; i++)
		cq[i * GM_BB + 63] = GM_CQE_INVALID << 4;
	rec[1] = 0xfaff0000; // 65530
	stop = 0, bell = 0;
	memset(&m, 0, sizeof m);
	m.rng = seed * 0x9e3779b97f4a7c15u + 1;
	m.nic = step;
	m.doorbell = &bell;
	memset(&nic, 0, sizeof nic);
	nic.r = r;
	nic.shadow = shadow;
	nic.eager = eager;
	nic.producer = nic.fetched = nic.retired = 65530;
	gm_post(&r);
	drain_all();
	printf("%u %u %u %u %u\n", rep.why, nic.faults, nic.fault, nic.fault_word, rep.completed);
}

int main(int argc, char **argv)
{
	if (argc != 6)
		return 2;
	for (int s = 1; s <= atoi(argv[5]); s++)
		one(s, atoi(argv[1]), atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
	return 0;
}
