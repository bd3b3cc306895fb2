// What a queue pair in memory of one's own needs of libibverbs and libmlx5, both
// opened when they are needed. Calls return 0, or -1 with the reason in err.
#ifndef GDISIM_MLX5_RDMA_H
#define GDISIM_MLX5_RDMA_H
#include <stddef.h>
#include <stdint.h>

enum { GM_RDMA_ERR = 256 };

int gm_rdma_load(char *err);
int gm_pd_number(void *pd, uint32_t *pdn, char *err);
int gm_eqn(void *ctx, uint32_t *eqn, char *err);
int gm_mac(void *pd, int port, int gid_index, const uint8_t gid[16], uint8_t mac[6], char *err);
// gm_uar_alloc takes a page of doorbell registers, uncached where the device has
// such. *reg is the register.
int gm_uar_alloc(void *ctx, void **uar, void **reg, uint32_t *page_id, char *err);
void gm_uar_free(void *uar);
// Memory for the device: by address, or by a dma-buf where fd is none below 0.
int gm_umem_reg(void *ctx, uint64_t addr, size_t bytes, int fd, void **umem, uint32_t *id, char *err);
void gm_umem_dereg(void *umem);
int gm_mr_reg(void *pd, uint64_t addr, size_t bytes, int fd, void **mr, uint32_t *lkey, char *err);
void gm_mr_dereg(void *mr);
int gm_create(void *ctx, const void *in, size_t inlen, void *out, size_t outlen, void **obj, char *err);
int gm_modify(void *obj, const void *in, size_t inlen, void *out, size_t outlen, char *err);
void gm_destroy(void *obj);
#endif
