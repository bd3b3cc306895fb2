// The poster as a GPU thread, and beside it the NIC of an image as another, for
// queues in GPU memory that no CPU can read.
#include "mem_gpu.h"
#include "post.h"
#include "nic.h"

GM_KERNEL gm_gpu_post(struct gm_run r) { gm_post(&r); }

// Block 0 posts, block 1 is the NIC.
GM_KERNEL gm_gpu_image(struct gm_run r, struct gm_nic *out)
{
	if (gm_block() == 0) {
		gm_post(&r);
		gm_fence_sys();
		gm_st32(out->quit, 1);
		return;
	}
	struct gm_nic n = *out;
	for (;;) {
		uint64_t before = n.progress;
		gm_nic_step(&n);
		if (n.progress == before && gm_ld32_acquire(n.quit))
			break;
		if (n.fault == GM_QUEUE_OVERRUN || n.fault == GM_BAD_DOORBELL)
			gm_st32(n.r.stop, 1);
	}
	*out = n;
}
