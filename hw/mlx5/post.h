// The poster: builds WQEs, orders, rings, polls. Who includes it says first how
// memory is reached (mem_cpu.h, mem_weak.h, mem_gpu.h): gm_ld32 and gm_ld64 see what
// others wrote, gm_ld*_acquire precede everything behind them, gm_st* are stores that
// nothing orders, gm_st*_release what everything before precedes at that scope,
// gm_fence_* full fences.
#include "layout.h"

// The poster's place in its queues. Counters run on and are cut to 16 or 24
// bits where the device wants that.
struct gm_state {
	uint32_t head, tail; // WQEBBs built; WQEBBs that are free again
	uint32_t polled; // CQEs
	uint32_t sent, completed; // messages
	uint32_t shape, unsignaled; // of the next message; messages since one that asked for a CQE
	uint32_t rings, full, samples; // counted here: the report may be far away
	uint64_t bell; // first 8 B of the last WQE's control segment
};

GM_FN uint32_t gm_be32(uint32_t x) { return x >> 24 | (x >> 8 & 0xff00) | (x << 8 & 0xff0000) | x << 24; }

// gm_segments returns the 16-byte segments of a shape's WQE: control, address,
// then a data pointer or the inline bytes behind their count.
GM_FN uint32_t gm_segments(const struct gm_shape *s) { return s->inlined ? 2 + (4 + s->bytes + 15) / 16 : 3; }

GM_FN uint32_t gm_wqebbs(uint32_t segments) { return (segments + 3) / 4; }

// A WQE goes on at the ring's start where it meets the end.
GM_FN uint8_t *gm_segment(const struct gm_queue *q, uint32_t bb, uint32_t k)
{
	return q->sq + (uint64_t)((bb * 4 + k) & (q->wqebbs * 4 - 1)) * 16;
}

// gm_inline returns word k of message i's payload, 0 behind its end.
GM_FN uint32_t gm_inline(const struct gm_run *r, const struct gm_shape *s, const uint8_t *src, uint32_t i, uint32_t k)
{
	uint32_t last = s->bytes - 1, shift = last % 4 * 8, x;
	if (k > last / 4)
		return 0;
	x = gm_ld_payload((const uint32_t *)(src + k * 4));
	if (k < last / 4)
		return x;
	x &= 0xffffffffu >> (24 - shift);
	return r->stamp ? (x & ~(0xffu << shift)) | (i % 255 + 1) << shift : x;
}

GM_FN void gm_build(const struct gm_run *r, struct gm_state *st, uint32_t i)
{
	const struct gm_queue *q = &r->q;
	const struct gm_shape *s = &r->shape[st->shape];
	uint32_t ds = gm_segments(s), bb = st->head;
	uint64_t off = i % GM_SLOTS * r->stride, to = r->remote + off;
	uint32_t c0 = gm_be32((bb & 0xffff) << 8 | s->opcode), c1 = gm_be32(q->qpn << 8 | ds);
	int ask = ++st->unsignaled == r->signal_every || i + 1 == r->warmup + r->n;
	uint32_t flags = s->flags | (ask ? GM_CQ_UPDATE : 0);
	const uint8_t *src = r->source + off;

	gm_st128(gm_segment(q, bb, 0), c0, c1, gm_be32(flags), s->opcode == GM_OP_WRITE_IMM ? gm_be32(i) : 0);
	gm_st128(gm_segment(q, bb, 1), gm_be32((uint32_t)(to >> 32)), gm_be32((uint32_t)to), gm_be32(r->rkey), 0);
	if (!s->inlined) {
		uint64_t from = r->local + off;
		if (r->stamp)
			gm_st8((uint8_t *)src + s->bytes - 1, i % 255 + 1);
		gm_st128(gm_segment(q, bb, 2), gm_be32(s->bytes), gm_be32(r->lkey), gm_be32((uint32_t)(from >> 32)), gm_be32((uint32_t)from));
	} else {
		for (uint32_t seg = 2, k = 0; seg < ds; seg++) {
			uint32_t w0 = seg == 2 ? gm_be32(GM_INLINE | s->bytes) : gm_inline(r, s, src, i, k++);
			uint32_t w1 = gm_inline(r, s, src, i, k), w2 = gm_inline(r, s, src, i, k + 1), w3 = gm_inline(r, s, src, i, k + 2);
			gm_st128(gm_segment(q, bb, seg), w0, w1, w2, w3);
			k += 3;
		}
	}
	st->bell = (uint64_t)c1 << 32 | c0;
	st->head += gm_wqebbs(ds);
	if (ask)
		st->unsignaled = 0;
	if (++st->shape == r->shapes) // no division: it would cost more than a WQE's stores
		st->shape = 0;
}

GM_FN void gm_store_record(const struct gm_run *r, uint32_t v)
{
	uint32_t *p = r->q.record + GM_SND_RECORD;
	v = gm_be32(v & 0xffff);
	switch (r->order) {
	case GM_GPU_RELEASE:
		gm_st32_release_gpu(p, v);
		return;
	case GM_SYSTEM_RELEASE:
		gm_st32_release_sys(p, v);
		return;
	case GM_DEVICE:
		gm_fence_gpu();
		break;
	case GM_SYSTEM:
		gm_fence_sys();
		break;
	}
	gm_st32(p, v);
}

// WQEs before the record before the doorbell: the NIC may read the record on
// an earlier doorbell's errand, and fetch as far as it says.
GM_FN void gm_ring(const struct gm_run *r, const struct gm_state *st)
{
	if (r->ringer == GM_RING_CPU) { // the CPU reads the mailbox, so the order is the system's
		gm_st64_release_sys(r->mailbox, st->bell);
		return;
	}
	if (r->with_record)
		gm_store_record(r, st->head);
	switch (r->order) {
	case GM_GPU_RELEASE:
		gm_st64_release_gpu(r->q.doorbell, st->bell);
		return;
	case GM_SYSTEM_RELEASE:
		gm_st64_release_sys(r->q.doorbell, st->bell);
		return;
	case GM_DEVICE:
		gm_fence_gpu();
		break;
	case GM_SYSTEM:
		gm_fence_sys();
		break;
	}
	gm_st64(r->q.doorbell, st->bell);
}

// gm_poll retires what the next CQE completes: 1 it did, 0 there is none, -1 the
// CQE is an error, which is in the report.
GM_FN int gm_poll(const struct gm_run *r, struct gm_state *st)
{
	const struct gm_queue *q = &r->q;
	uint8_t *cqe = q->cq + (uint64_t)(st->polled & (q->cqes - 1)) * GM_BB;
	// wqe_counter, signature, op_own; nothing else of the CQE is read before
	uint32_t w = gm_ld32_acquire((const uint32_t *)(cqe + 60));
	uint32_t opcode = w >> 28, counter = (w & 0xff) << 8 | (w >> 8 & 0xff);

	if (opcode == GM_CQE_INVALID || (w >> 24 & 1) != (uint32_t)!!(st->polled & q->cqes))
		return 0;
	st->polled++;
	gm_st32(q->cq_record + GM_CI_RECORD, gm_be32(st->polled & 0xffffff));
	if (opcode == GM_CQE_REQ_ERR || opcode == GM_CQE_RESP_ERR) {
		uint32_t e = gm_ld32((const uint32_t *)(cqe + 52));
		r->report->why = GM_WC_ERROR;
		r->report->syndrome = e >> 24;
		r->report->vendor = e >> 16 & 0xff;
		r->report->wqe_counter = counter;
		return -1;
	}
	// The WQE is still there: its size says what is free behind it.
	uint32_t at = st->tail + ((counter - st->tail) & 0xffff);
	uint32_t qpn_ds = gm_be32(gm_ld32((const uint32_t *)(gm_segment(q, at, 0) + 4)));
	st->tail = at + gm_wqebbs(qpn_ds & 0x3f);
	st->completed += r->signal_every;
	if (st->completed > r->warmup + r->n)
		st->completed = r->warmup + r->n;
	return 1;
}

// gm_wait polls until one CQE came: 0 it did, -1 the run ends and the report
// says why. The host's word is asked for seldom: it may be far away.
GM_FN int gm_wait(const struct gm_run *r, struct gm_state *st)
{
	uint64_t since = gm_clock();
	for (uint32_t spins = 0;; spins++) {
		int got = gm_poll(r, st);
		if (got)
			return got < 0 ? -1 : 0;
		if (spins % 256 != 255)
			continue;
		gm_relax();
		if (gm_ld32(r->stop)) {
			r->report->why = GM_STOPPED;
			return -1;
		}
		if (gm_clock() - since > r->budget) {
			r->report->why = GM_TIMEOUT;
			return -1;
		}
	}
}

// gm_room waits until the next message has a slot and is allowed to be in flight.
GM_FN int gm_room(const struct gm_run *r, struct gm_state *st, uint32_t i)
{
	uint32_t need = gm_wqebbs(gm_segments(&r->shape[st->shape]));
	while (i - st->completed >= r->window ||
	       (st->head + need - st->tail > r->q.wqebbs && r->plant != GM_PLANT_NO_ROOM_CHECK)) {
		st->full++;
		if (gm_wait(r, st))
			return -1;
	}
	return 0;
}

GM_FN void gm_post(const struct gm_run *r)
{
	struct gm_state st = {r->q.start, r->q.start, r->q.cq_start, 0, 0, 0, 0, 0, 0, 0, 0};
	struct gm_report *rep = r->report;
	uint32_t total = r->warmup + r->n, failed = 0;

	rep->why = GM_DONE;
	while (st.sent < total && !failed) {
		uint64_t t0 = gm_clock(), t1;
		uint32_t first = st.sent;
		if (first == r->warmup) {
			rep->ticks[0] = t0;
			rep->ns[0] = gm_ns();
		}
		for (uint32_t k = 0; k < r->chain && st.sent < total; k++) {
			if ((failed = gm_room(r, &st, st.sent)))
				break;
			if (r->plant == GM_PLANT_EARLY_DOORBELL) { // rings for what it builds only later
				struct gm_state early = st;
				uint32_t ds = gm_segments(&r->shape[st.shape]);
				early.bell = (uint64_t)gm_be32(r->q.qpn << 8 | ds) << 32 | gm_be32((st.head & 0xffff) << 8 | r->shape[st.shape].opcode);
				early.head += gm_wqebbs(ds);
				gm_ring(r, &early);
				for (uint64_t t = gm_clock(); gm_clock() - t < r->budget / 16;)
					;
			}
			gm_build(r, &st, st.sent);
			st.sent++;
		}
		if (failed && st.sent == first)
			break;
		if (r->plant != GM_PLANT_EARLY_DOORBELL)
			gm_ring(r, &st);
		st.rings++;
		t1 = gm_clock();
		if (r->window == 1 && !failed)
			while (st.completed < st.sent && !(failed = gm_wait(r, &st)))
				;
		if (first >= r->warmup && r->issue && !failed) {
			r->issue[st.samples] = t1 - t0;
			if (r->done)
				r->done[st.samples] = gm_clock() - t0;
			st.samples++;
		}
	}
	while (!failed && st.completed < total)
		failed = gm_wait(r, &st);
	rep->ticks[1] = gm_clock();
	rep->ns[1] = gm_ns();
	rep->rings = st.rings;
	rep->full = st.full;
	rep->samples = st.samples;
	rep->posted = st.sent;
	rep->completed = st.completed;
	rep->next = st.head;
	rep->cq_next = st.polled;
}
