//go:build cgo && linux

#define _GNU_SOURCE
#include "twin.h"

#include "mem_cpu.h"
#include "post.h"
#include "nic.h"

void gm_twin_post(struct gm_run *r) { gm_post(r); }

void gm_twin_nic(struct gm_nic *n)
{
	for (uint32_t idle = 0;; idle++) {
		uint64_t before = n->progress;
		gm_nic_step(n);
		if (n->progress != before)
			idle = 0;
		else if (gm_ld32(n->quit))
			return;
		else if (idle % 64 == 63)
			gm_relax();
		if (n->fault == GM_QUEUE_OVERRUN || n->fault == GM_BAD_DOORBELL)
			gm_st32(n->r.stop, 1); // no CQE will tell the poster
	}
}

void gm_twin_ring(const struct gm_run *r, const uint32_t *quit)
{
	uint64_t last = 0;
	for (uint32_t idle = 0; !gm_ld32(quit); idle++) {
		uint64_t v = gm_ld64_acquire(r->mailbox);
		if (v == last) {
			if (idle % 64 == 63)
				gm_relax();
			continue;
		}
		last = v;
		uint32_t index = gm_be32((uint32_t)v) >> 8 & 0xffff, ds = gm_be32((uint32_t)(v >> 32)) & 0x3f;
		if (r->with_record)
			gm_st32_release_sys(r->q.record + GM_SND_RECORD, gm_be32((index + gm_wqebbs(ds)) & 0xffff));
		gm_device_barrier();
		gm_st64(r->q.doorbell, v);
	}
}
