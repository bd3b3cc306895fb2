//go:build cgo && linux

#define _GNU_SOURCE
#include "device.h"

#include <errno.h>
#include <string.h>

// What a provider has beyond gv_context_ops, NULL where it lacks the call.
#define EXTENDED(c, call)                                                                                              \
	({                                                                                                             \
		struct gv_verbs_context *v_ = NULL;                                                                    \
		if ((uintptr_t)(c)->abi_compat == UINTPTR_MAX) {                                                       \
			v_ = (struct gv_verbs_context *)((char *)(c) - offsetof(struct gv_verbs_context, context));    \
			if (v_->sz < sizeof *v_ - offsetof(struct gv_verbs_context, call) || !v_->call)                \
				v_ = NULL;                                                                             \
		}                                                                                                      \
		v_;                                                                                                    \
	})

// gv_device_ex asks for the attributes that ibv_query_device does not have. Zero
// where it could: the original ones are then there too.
int gv_device_ex(struct gv_context *c, struct gv_device_attr_ex *d)
{
	struct gv_verbs_context *v = EXTENDED(c, query_device_ex);
	return v ? v->query_device_ex(c, NULL, d, sizeof *d) : EOPNOTSUPP;
}

struct gv_cq *gv_create_cq_ex(struct gv_end *e, int cqes, struct gv_comp_channel *ch)
{
	struct gv_verbs_context *v = EXTENDED(e->ctx, create_cq_ex);
	struct gv_cq_init_attr_ex a = {.cqe = cqes, .channel = ch, .wc_flags = GV_WC_EX_WITH_BYTE_LEN};
	if (!v) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (e->dev.completion_timestamp_mask)
		a.wc_flags |= GV_WC_EX_WITH_COMPLETION_TIMESTAMP;
	return (struct gv_cq *)v->create_cq_ex(e->ctx, &a);
}

// gv_poll_ex is ibv_poll_cq for one completion of an extended CQ. Its device time
// goes to e->stamp.
int gv_poll_ex(struct gv_end *e, struct gv_cq *cq, struct gv_wc *wc, int received)
{
	struct gv_cq_ex *x = (struct gv_cq_ex *)cq;
	struct gv_poll_cq_attr a = {0};
	int rc = x->start_poll(x, &a);
	if (rc)
		return rc == ENOENT ? 0 : -rc;
	memset(wc, 0, sizeof *wc);
	wc->wr_id = x->wr_id;
	wc->status = x->status;
	if (wc->status)
		wc->vendor_err = x->read_vendor_err(x);
	else {
		if (received)
			wc->byte_len = x->read_byte_len(x);
		if (e->dev.completion_timestamp_mask)
			e->stamp = x->read_completion_ts(x);
	}
	x->end_poll(x);
	return 1;
}

// gv_clocks reads both clocks; of several tries the one with the CPU's reads
// closest together.
int gv_clocks(struct gv_end *e, struct gv_clocks *c)
{
	struct gv_verbs_context *v = EXTENDED(e->ctx, query_rt_values);
	if (!v)
		return EOPNOTSUPP;
	c->half_ns = INT64_MAX;
	for (int i = 0; i < 32; i++) {
		struct gv_values_ex x = {.comp_mask = GV_VALUES_MASK_RAW_CLOCK};
		int64_t before = gv_now(), after;
		int rc = v->query_rt_values(e->ctx, &x);
		after = gv_now();
		if (rc)
			return rc;
		if (!(x.comp_mask & GV_VALUES_MASK_RAW_CLOCK))
			return EOPNOTSUPP;
		if ((after - before + 1) / 2 < c->half_ns) {
			c->half_ns = (after - before + 1) / 2;
			c->cpu_ns = before + (after - before) / 2;
			c->device = (uint64_t)x.raw_clock.tv_sec * 1000000000 + x.raw_clock.tv_nsec;
		}
	}
	return 0;
}
