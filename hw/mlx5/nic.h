// The NIC of an image, one step at a time; included behind post.h, whose access
// to memory and arithmetic of WQEs it shares. What a WQE must hold it works out by
// itself, field by field.

GM_FN void gm_fault(struct gm_nic *n, uint32_t fault, uint32_t word, uint32_t got, uint32_t want)
{
	if (n->faults++)
		return;
	n->fault = fault;
	n->fault_message = n->arrived;
	n->fault_word = word;
	n->fault_got = got;
	n->fault_want = want;
}

GM_FN uint32_t gm_word(const struct gm_nic *n, uint32_t bb, uint32_t word)
{
	return gm_ld32((const uint32_t *)(gm_segment(&n->r.q, bb, word / 4) + word % 4 * 4));
}

GM_FN int gm_is(struct gm_nic *n, uint32_t bb, uint32_t fault, uint32_t word, uint32_t want)
{
	uint32_t got = gm_word(n, bb, word);
	if (got == want)
		return 1;
	gm_fault(n, fault, word, got, want);
	return 0;
}

// gm_payload is 4 B of message i as they should arrive.
GM_FN uint32_t gm_payload(const struct gm_nic *n, uint32_t i, uint32_t k, uint32_t bytes)
{
	uint32_t x = gm_ld32((const uint32_t *)(n->r.source + i % GM_SLOTS * n->r.stride + k * 4));
	if (k * 4 + 4 > bytes)
		x &= 0xffffffffu >> (32 - bytes % 4 * 8);
	if (n->r.stamp && k == (bytes - 1) / 4) {
		uint32_t shift = (bytes - 1) % 4 * 8;
		x = (x & ~(0xffu << shift)) | (i % 255 + 1) << shift;
	}
	return x;
}

// gm_check holds the WQE at fetched against message `arrived`.
GM_FN int gm_check(struct gm_nic *n)
{
	const struct gm_run *r = &n->r;
	uint32_t i = n->arrived, bb = n->fetched;
	const struct gm_shape *s = &r->shape[i % r->shapes];
	uint64_t to = r->remote + i % GM_SLOTS * r->stride, from = r->local + i % GM_SLOTS * r->stride;
	int ce = (i + 1) % r->signal_every == 0 || i + 1 == r->warmup + r->n;
	uint32_t ds = s->inlined ? 2 + (s->bytes + 19) / 16 : 3;

	if (!gm_is(n, bb, GM_STALE_CONTROL, 0, gm_be32((bb & 0xffff) << 8 | s->opcode)) ||
	    !gm_is(n, bb, GM_STALE_CONTROL, 1, gm_be32(r->q.qpn << 8 | ds)) ||
	    !gm_is(n, bb, GM_STALE_CONTROL, 2, gm_be32(s->flags | (ce ? GM_CQ_UPDATE : 0))) ||
	    !gm_is(n, bb, GM_STALE_CONTROL, 3, s->opcode == GM_OP_WRITE_IMM ? gm_be32(i) : 0) ||
	    !gm_is(n, bb, GM_STALE_ADDRESS, 4, gm_be32((uint32_t)(to >> 32))) ||
	    !gm_is(n, bb, GM_STALE_ADDRESS, 5, gm_be32((uint32_t)to)) || !gm_is(n, bb, GM_STALE_ADDRESS, 6, gm_be32(r->rkey)))
		return 0;
	if (!s->inlined) {
		uint32_t k = (s->bytes - 1) / 4, tail = gm_ld32((const uint32_t *)(r->source + i % GM_SLOTS * r->stride + k * 4));
		uint32_t got = s->bytes % 4 ? tail & 0xffffffffu >> (32 - s->bytes % 4 * 8) : tail;
		if (got != gm_payload(n, i, k, s->bytes)) { // the stamp is not in the memory that the pointer names
			gm_fault(n, GM_STALE_PAYLOAD, k, got, gm_payload(n, i, k, s->bytes));
			return 0;
		}
		return gm_is(n, bb, GM_STALE_DATA, 8, gm_be32(s->bytes)) && gm_is(n, bb, GM_STALE_DATA, 9, gm_be32(r->lkey)) &&
		       gm_is(n, bb, GM_STALE_DATA, 10, gm_be32((uint32_t)(from >> 32))) && gm_is(n, bb, GM_STALE_DATA, 11, gm_be32((uint32_t)from));
	}
	if (!gm_is(n, bb, GM_STALE_DATA, 8, gm_be32(GM_INLINE | s->bytes)))
		return 0;
	for (uint32_t k = 0; k * 4 < s->bytes; k++)
		if (!gm_is(n, bb, GM_STALE_DATA, 9 + k, gm_payload(n, i, k, s->bytes)))
			return 0;
	return 1;
}

GM_FN uint32_t *gm_shadow(const struct gm_nic *n, uint32_t bb, uint32_t word)
{
	return (uint32_t *)(n->shadow + (uint64_t)((bb * 16 + word) & (n->r.q.wqebbs * 16 - 1)) * 4);
}

GM_FN void gm_cqe(struct gm_nic *n, uint32_t bb, uint32_t opcode, uint32_t syndrome, uint32_t vendor)
{
	const struct gm_queue *q = &n->r.q;
	uint32_t *c = (uint32_t *)(q->cq + (uint64_t)((q->cq_start + n->cqes) & (q->cqes - 1)) * GM_BB);
	uint32_t index = q->cq_start + n->cqes, consumed = gm_be32(gm_ld32(q->cq_record + GM_CI_RECORD));
	uint32_t owner = !!(index & q->cqes), wqe = gm_be32(*gm_shadow(n, bb, 0));

	if (((index - consumed) & 0xffffff) >= q->cqes)
		gm_fault(n, GM_CQ_OVERRUN, 0, index - consumed, q->cqes);
	for (int i = 0; i < 13; i++)
		gm_st32(c + i, 0);
	gm_st32(c + 13, vendor << 16 | syndrome << 24);
	gm_st32(c + 14, gm_be32((wqe & 0xff) << 24 | q->qpn));
	gm_fence_sys(); // a device writes the 64 B at once; the owner bit is last here
	gm_st32(c + 15, (bb >> 8 & 0xff) | (bb & 0xff) << 8 | (opcode << 4 | owner) << 24);
	n->cqes++;
}

GM_FN void gm_deliver(struct gm_nic *n, uint32_t i, const struct gm_shape *s)
{
	uint32_t *to = (uint32_t *)(n->target + i % GM_SLOTS * n->r.stride);
	for (uint32_t k = 0; n->target && k * 4 < s->bytes; k++)
		gm_st32(to + k, s->inlined ? *gm_shadow(n, n->retired, 9 + k) : gm_ld32((const uint32_t *)(n->r.source + i % GM_SLOTS * n->r.stride + k * 4)));
}

GM_FN void gm_complete(struct gm_nic *n)
{
	const struct gm_run *r = &n->r;
	uint32_t i = n->finished, total = r->warmup + r->n;
	const struct gm_shape *s = &r->shape[i % r->shapes];
	uint32_t ds = gm_segments(s), bb = n->retired;
	int ask = (i + 1) % r->signal_every == 0 || i + 1 == total;

	if (n->hold && !n->draining) {
		if (n->fetched - n->retired < n->hold && n->arrived < total)
			return;
		n->draining = 1;
	}
	for (uint32_t w = 0; w < ds * 4 && !n->broken; w++)
		if (gm_word(n, bb, w) != *gm_shadow(n, bb, w)) {
			gm_fault(n, GM_OVERWRITTEN, w, gm_word(n, bb, w), *gm_shadow(n, bb, w));
			break;
		}
	if (n->broken)
		gm_cqe(n, bb, GM_CQE_REQ_ERR, GM_SYN_FLUSH, 0);
	else if (n->fail_at == i + 1) {
		n->broken = 1;
		gm_cqe(n, bb, GM_CQE_REQ_ERR, n->fail_syndrome, n->fail_vendor);
	} else {
		gm_deliver(n, i, s);
		if (ask)
			gm_cqe(n, bb, GM_CQE_REQ, 0, 0);
	}
	if (++n->finished == n->arrived)
		n->draining = 0;
	n->retired += gm_wqebbs(ds);
	n->progress = gm_clock();
}

// gm_fetch takes the next WQE. One that is not what it should be is an error
// in the queue, as on hardware.
GM_FN void gm_fetch(struct gm_nic *n)
{
	const struct gm_shape *s = &n->r.shape[n->arrived % n->r.shapes];
	uint32_t ds = gm_segments(s), good = n->broken || gm_check(n);

	for (uint32_t w = 0; w < ds * 4; w++)
		*gm_shadow(n, n->fetched, w) = gm_word(n, n->fetched, w);
	if (!good && !n->fail_at) {
		n->fail_at = n->arrived + 1;
		n->fail_syndrome = GM_SYN_LOCAL_QP_OP;
	}
	n->arrived++;
	n->fetched += gm_wqebbs(ds);
	n->progress = gm_clock();
}

// gm_nic_step looks at doorbell and record once, fetches what they announce and
// completes one message.
GM_FN void gm_nic_step(struct gm_nic *n)
{
	const struct gm_run *r = &n->r;
	uint64_t v = gm_ld64_acquire(r->q.doorbell);
	int rung = v != n->bell;

	if (rung || (n->eager && r->with_record)) {
		uint32_t producer = n->producer;
		if (r->with_record)
			producer += (gm_be32(gm_ld32_acquire(r->q.record + GM_SND_RECORD)) - producer) & 0xffff;
		if (rung) {
			uint32_t index = gm_be32((uint32_t)v) >> 8 & 0xffff, qpn_ds = gm_be32((uint32_t)(v >> 32));
			// An eager NIC may be through already with what is rung for now.
			int32_t ahead = (int16_t)(index - n->retired), room = (int32_t)r->q.wqebbs;
			uint32_t end = n->retired + ahead + gm_wqebbs(qpn_ds & 0x3f);
			n->bell = v;
			n->bells++;
			n->progress = gm_clock();
			if (qpn_ds >> 8 != r->q.qpn || ahead < -room)
				gm_fault(n, GM_BAD_DOORBELL, 0, (uint32_t)v, r->q.qpn);
			else if (!r->with_record)
				producer = (int32_t)(end - producer) > 0 ? end : producer;
			else if ((int32_t)(end - producer) > 0) {
				gm_fault(n, GM_LATE_RECORD, 0, producer, end);
				producer = end;
			}
		}
		n->producer = producer;
		if (producer - n->retired > r->q.wqebbs) {
			gm_fault(n, GM_QUEUE_OVERRUN, 0, producer - n->retired, r->q.wqebbs);
			n->producer = n->fetched; // nothing sensible is there to fetch
		}
		while ((int32_t)(n->producer - n->fetched) > 0 && n->arrived < r->warmup + r->n)
			gm_fetch(n);
	}
	if (n->finished < n->arrived)
		gm_complete(n);
}
