// What rdma-core's own helpers make of the cases of layout_test.go: a line of
// hexadecimal bytes each. Arguments: KIND and the fields, by number.
#include <endian.h>
#include <infiniband/mlx5_user_ioctl_verbs.h>
#include <infiniband/mlx5dv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../dv.h"
#include "../layout.h"

#define SAME(a, b) _Static_assert((unsigned long)(a) == (unsigned long)(b), #a " is not " #b)
SAME(GM_BB, MLX5_SEND_WQE_BB);
SAME(GM_OP_WRITE, MLX5_OPCODE_RDMA_WRITE);
SAME(GM_OP_WRITE_IMM, MLX5_OPCODE_RDMA_WRITE_IMM);
SAME((uint32_t)GM_INLINE, (uint32_t)MLX5_INLINE_SEG);
SAME(GM_CQ_UPDATE, MLX5_WQE_CTRL_CQ_UPDATE);
SAME(GM_FENCE, MLX5_WQE_CTRL_FENCE);
SAME(GM_SMALL_FENCE, MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE);
SAME(GM_CQE_REQ, MLX5_CQE_REQ);
SAME(GM_CQE_REQ_ERR, MLX5_CQE_REQ_ERR);
SAME(GM_CQE_RESP_ERR, MLX5_CQE_RESP_ERR);
SAME(GM_CQE_INVALID, MLX5_CQE_INVALID);
SAME(GM_SYN_LOCAL_QP_OP, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
SAME(GM_SYN_FLUSH, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
SAME(GM_SYN_REMOTE_ACCESS, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
SAME(GM_SND_RECORD, MLX5_SND_DBR);
SAME(sizeof(struct mlx5_cqe64), GM_BB);
SAME(offsetof(struct mlx5_cqe64, sop_drop_qpn), 56);
SAME(offsetof(struct mlx5_cqe64, wqe_counter), 60);
SAME(offsetof(struct mlx5_cqe64, op_own), 63);

#define AT(a, b, f) SAME(offsetof(struct a, f), offsetof(struct b, f))
SAME(sizeof(struct gm_umem), sizeof(struct mlx5dv_devx_umem));
SAME(sizeof(struct gm_umem_in), sizeof(struct mlx5dv_devx_umem_in));
AT(gm_umem_in, mlx5dv_devx_umem_in, size);
AT(gm_umem_in, mlx5dv_devx_umem_in, access);
AT(gm_umem_in, mlx5dv_devx_umem_in, pgsz_bitmap);
AT(gm_umem_in, mlx5dv_devx_umem_in, comp_mask);
AT(gm_umem_in, mlx5dv_devx_umem_in, dmabuf_fd);
SAME(sizeof(struct gm_uar), sizeof(struct mlx5dv_devx_uar));
AT(gm_uar, mlx5dv_devx_uar, reg_addr);
AT(gm_uar, mlx5dv_devx_uar, base_addr);
AT(gm_uar, mlx5dv_devx_uar, page_id);
SAME(sizeof(struct gm_pd_out), sizeof(struct mlx5dv_pd));
AT(gm_pd_out, mlx5dv_pd, pdn);
SAME(sizeof(struct gm_ah_out), sizeof(struct mlx5dv_ah));
SAME(sizeof(struct gm_av), sizeof(struct mlx5_wqe_av));
AT(gm_av, mlx5_wqe_av, rmac);
AT(gm_av, mlx5_wqe_av, rgid);
SAME(sizeof(struct gm_dv_obj), sizeof(struct mlx5dv_obj));
AT(gm_dv_obj, mlx5dv_obj, ah);
AT(gm_dv_obj, mlx5dv_obj, pd);
SAME(GM_DV_OBJ_AH, MLX5DV_OBJ_AH);
SAME(GM_DV_OBJ_PD, MLX5DV_OBJ_PD);
SAME(GM_UMEM_DMABUF, MLX5DV_UMEM_MASK_DMABUF);
SAME(GM_UAR_BLUEFLAME, MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF);
SAME(GM_UAR_NO_CACHE, MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC);
SAME(MLX5DV_CONTEXT_FLAGS_DEVX, 1); // as package verbs opens a device
AT(gv_ah_attr, ibv_ah_attr, grh);
AT(gv_ah_attr, ibv_ah_attr, is_global);
AT(gv_ah_attr, ibv_ah_attr, port_num);
AT(gv_mr, ibv_mr, lkey);

// Functions that rdma.c and package verbs find by name: as the headers declare them.
#define TYPE(f, ...) _Static_assert(__builtin_types_compatible_p(__typeof__(&f), __VA_ARGS__), #f)
TYPE(mlx5dv_is_supported, bool (*)(struct ibv_device *));
TYPE(mlx5dv_open_device, struct ibv_context *(*)(struct ibv_device *, struct mlx5dv_context_attr *));
TYPE(mlx5dv_init_obj, int (*)(struct mlx5dv_obj *, uint64_t));
TYPE(mlx5dv_devx_query_eqn, int (*)(struct ibv_context *, uint32_t, uint32_t *));
TYPE(mlx5dv_devx_alloc_uar, struct mlx5dv_devx_uar *(*)(struct ibv_context *, uint32_t));
TYPE(mlx5dv_devx_free_uar, void (*)(struct mlx5dv_devx_uar *));
TYPE(mlx5dv_devx_umem_reg, struct mlx5dv_devx_umem *(*)(struct ibv_context *, void *, size_t, uint32_t));
TYPE(mlx5dv_devx_umem_reg_ex, struct mlx5dv_devx_umem *(*)(struct ibv_context *, struct mlx5dv_devx_umem_in *));
TYPE(mlx5dv_devx_umem_dereg, int (*)(struct mlx5dv_devx_umem *));
TYPE(mlx5dv_devx_obj_create, struct mlx5dv_devx_obj *(*)(struct ibv_context *, const void *, size_t, void *, size_t));
TYPE(mlx5dv_devx_obj_modify, int (*)(struct mlx5dv_devx_obj *, const void *, size_t, void *, size_t));
TYPE(mlx5dv_devx_obj_destroy, int (*)(struct mlx5dv_devx_obj *));
TYPE(ibv_create_ah, struct ibv_ah *(*)(struct ibv_pd *, struct ibv_ah_attr *));
TYPE(ibv_reg_dmabuf_mr, struct ibv_mr *(*)(struct ibv_pd *, uint64_t, size_t, uint64_t, int, int));

static void hex(const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		printf("%02x", ((const unsigned char *)p)[i]);
	printf("\n");
}

static unsigned long long arg(char **v, int i) { return strtoull(v[i], NULL, 0); }

// wqe OP INDEX QPN FLAGS IMM RADDR RKEY INLINE(0|1) BYTES LKEY ADDR: inline byte i is 3 i + 1
static void wqe(char **v)
{
	unsigned char b[1024] = {0};
	unsigned bytes = arg(v, 8), inlined = arg(v, 7);
	unsigned ds = inlined ? 2 + (sizeof(struct mlx5_wqe_inl_data_seg) + bytes + 15) / 16 : 3;
	struct mlx5_wqe_ctrl_seg *c = (void *)b;
	struct mlx5_wqe_raddr_seg *r = (void *)(c + 1);
	mlx5dv_set_ctrl_seg(c, arg(v, 1), arg(v, 0), 0, arg(v, 2), arg(v, 3), ds, 0, arg(v, 0) == MLX5_OPCODE_RDMA_WRITE_IMM ? htobe32(arg(v, 4)) : 0);
	r->raddr = htobe64(arg(v, 5));
	r->rkey = htobe32(arg(v, 6));
	r->reserved = 0;
	if (inlined) {
		struct mlx5_wqe_inl_data_seg *i = (void *)(r + 1);
		i->byte_count = htobe32(bytes | MLX5_INLINE_SEG);
		for (unsigned k = 0; k < bytes; k++)
			((unsigned char *)(i + 1))[k] = 3 * k + 1;
	} else
		mlx5dv_set_data_seg((void *)(r + 1), bytes, arg(v, 9), arg(v, 10));
	hex(b, ds * 16);
	hex(b, 8); // the doorbell: the first 8 B as they lie there
}

// cqe OPCODE OWNER COUNTER QPN OP SYNDROME VENDOR
static void cqe(char **v)
{
	// The error CQE has no public type; rdma-core's provider has vendor and
	// syndrome in the two bytes before the WQE's opcode.
	struct mlx5_cqe64 c;
	memset(&c, 0, sizeof c);
	c.op_own = arg(v, 0) << 4;
	mlx5dv_set_cqe_owner(&c, arg(v, 1));
	c.wqe_counter = htobe16(arg(v, 2));
	c.sop_drop_qpn = htobe32(arg(v, 4) << 24 | arg(v, 3));
	((unsigned char *)&c)[offsetof(struct mlx5_cqe64, sop_drop_qpn) - 2] = arg(v, 6);
	((unsigned char *)&c)[offsetof(struct mlx5_cqe64, sop_drop_qpn) - 1] = arg(v, 5);
	hex(&c, sizeof c);
	printf("%u %u\n", mlx5dv_get_cqe_opcode(&c), mlx5dv_get_cqe_owner(&c));
}

int main(int argc, char **argv)
{
	if (argc == 13 && !strcmp(argv[1], "wqe"))
		wqe(argv + 2);
	else if (argc == 9 && !strcmp(argv[1], "cqe"))
		cqe(argv + 2);
	else
		return 2;
	return 0;
}
