// The little of mlx5's direct verbs that this package calls, declared anew so that
// no header need be installed; layout.c holds it against infiniband/mlx5dv.h.
#ifndef GDISIM_MLX5_DV_H
#define GDISIM_MLX5_DV_H
#include "../verbs/abi.h"

struct gm_umem {
	uint32_t umem_id;
};

struct gm_umem_in {
	void *addr;
	size_t size;
	uint32_t access;
	uint64_t pgsz_bitmap, comp_mask;
	int dmabuf_fd;
};

struct gm_uar {
	void *reg_addr, *base_addr;
	uint32_t page_id;
	long mmap_off;
	uint64_t comp_mask;
};

struct gm_pd_out {
	uint32_t pdn;
	uint64_t comp_mask;
};

struct gm_av {
	uint64_t key;
	uint32_t dqp_dct;
	uint8_t stat_rate_sl, fl_mlid;
	uint16_t rlid;
	uint8_t reserved0[4], rmac[6], tclass, hop_limit;
	uint32_t grh_gid_fl;
	uint8_t rgid[16];
};

struct gm_ah_out {
	struct gm_av *av;
	uint64_t comp_mask;
};

struct gm_pair {
	void *in, *out;
};

struct gm_dv_obj {
	struct gm_pair qp, cq, srq, rwq, dm, ah, pd;
};

enum {
	GM_DV_OBJ_AH = 1 << 5,
	GM_DV_OBJ_PD = 1 << 6,
	GM_UMEM_DMABUF = 1 << 0,
	GM_UAR_BLUEFLAME = 0,
	GM_UAR_NO_CACHE = 1,
};
#endif
