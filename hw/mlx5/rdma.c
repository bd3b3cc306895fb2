//go:build cgo && linux

#include "rdma.h"

#include "dv.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

// The libraries, opened once and never closed.
static struct {
	struct gv_ah *(*create_ah)(struct gv_pd *, struct gv_ah_attr *);
	int (*destroy_ah)(struct gv_ah *);
	struct gv_mr *(*reg_mr)(struct gv_pd *, void *, size_t, int);
	int (*dereg_mr)(struct gv_mr *);
	int (*init_obj)(struct gm_dv_obj *, uint64_t);
	int (*query_eqn)(void *, uint32_t, uint32_t *);
	struct gm_uar *(*alloc_uar)(void *, uint32_t);
	void (*free_uar)(struct gm_uar *);
	struct gm_umem *(*umem_reg)(void *, void *, size_t, uint32_t);
	int (*umem_dereg)(struct gm_umem *);
	void *(*create)(void *, const void *, size_t, void *, size_t);
	int (*modify)(void *, const void *, size_t, void *, size_t);
	int (*destroy)(void *);
	// Of newer libraries.
	struct gm_umem *(*umem_reg_ex)(void *, struct gm_umem_in *);
	struct gv_mr *(*reg_dmabuf_mr)(struct gv_pd *, uint64_t, size_t, uint64_t, int, int);
} lib;

int gm_rdma_load(char *err)
{
	const char *names[] = {"libibverbs.so.1", "libmlx5.so.1"};
	void *h[2];
	const struct {
		void **f;
		int of;
		const char *name;
	} syms[] = {
#define IBV(x) {(void **)&lib.x, 0, "ibv_" #x}
#define DV(x, name) {(void **)&lib.x, 1, "mlx5dv_" name}
		IBV(create_ah), IBV(destroy_ah), IBV(reg_mr), IBV(dereg_mr), DV(init_obj, "init_obj"), DV(query_eqn, "devx_query_eqn"),
		DV(alloc_uar, "devx_alloc_uar"), DV(free_uar, "devx_free_uar"), DV(umem_reg, "devx_umem_reg"), DV(umem_dereg, "devx_umem_dereg"),
		DV(create, "devx_obj_create"), DV(modify, "devx_obj_modify"), DV(destroy, "devx_obj_destroy"),
	};
	for (int i = 0; i < 2; i++)
		if (!(h[i] = dlopen(names[i], RTLD_NOW))) {
			snprintf(err, GM_RDMA_ERR, "%s", dlerror());
			return -1;
		}
	for (size_t i = 0; i < sizeof syms / sizeof *syms; i++)
		if (!(*syms[i].f = dlsym(h[syms[i].of], syms[i].name))) {
			snprintf(err, GM_RDMA_ERR, "%s has no %s", names[syms[i].of], syms[i].name);
			return -1;
		}
	*(void **)&lib.reg_dmabuf_mr = dlsym(h[0], "ibv_reg_dmabuf_mr");
	*(void **)&lib.umem_reg_ex = dlsym(h[1], "mlx5dv_devx_umem_reg_ex");
	return 0;
}

static int failed(const char *what, int error, char *err)
{
	snprintf(err, GM_RDMA_ERR, "%s: %s%s", what, strerror(error), error == ENOMEM ? " (see the limit of locked memory, ulimit -l)" : "");
	return -1;
}

int gm_pd_number(void *pd, uint32_t *pdn, char *err)
{
	struct gm_pd_out out = {0};
	struct gm_dv_obj o = {.pd = {pd, &out}};
	int rc = lib.init_obj(&o, GM_DV_OBJ_PD);
	if (rc)
		return failed("number of the protection domain", rc, err);
	*pdn = out.pdn;
	return 0;
}

int gm_eqn(void *ctx, uint32_t *eqn, char *err)
{
	int rc = lib.query_eqn(ctx, 0, eqn);
	return rc ? failed("number of the event queue", rc, err) : 0;
}

int gm_mac(void *pd, int port, int gid_index, const uint8_t gid[16], uint8_t mac[6], char *err)
{
	struct gv_ah_attr a;
	memset(&a, 0, sizeof a);
	memcpy(a.grh.dgid.raw, gid, 16);
	a.grh.sgid_index = gid_index;
	a.grh.hop_limit = 64;
	a.is_global = 1;
	a.port_num = port;
	struct gv_ah *ah = lib.create_ah(pd, &a);
	if (!ah)
		return failed("route to the other end's GID", errno, err);
	struct gm_ah_out out = {0};
	struct gm_dv_obj o = {.ah = {ah, &out}};
	int rc = lib.init_obj(&o, GM_DV_OBJ_AH);
	if (!rc)
		memcpy(mac, out.av->rmac, 6);
	lib.destroy_ah(ah);
	return rc ? failed("address of the other end", rc, err) : 0;
}

int gm_uar_alloc(void *ctx, void **uar, void **reg, uint32_t *page_id, char *err)
{
	struct gm_uar *u = lib.alloc_uar(ctx, GM_UAR_NO_CACHE);
	if (!u)
		u = lib.alloc_uar(ctx, GM_UAR_BLUEFLAME);
	if (!u)
		return failed("page of doorbell registers", errno, err);
	*uar = u;
	*reg = u->reg_addr;
	*page_id = u->page_id;
	return 0;
}

void gm_uar_free(void *uar) { lib.free_uar(uar); }

int gm_umem_reg(void *ctx, uint64_t addr, size_t bytes, int fd, void **umem, uint32_t *id, char *err)
{
	struct gm_umem *u;
	if (fd < 0)
		u = lib.umem_reg(ctx, (void *)(uintptr_t)addr, bytes, GV_ACCESS_LOCAL_WRITE);
	else if (!lib.umem_reg_ex) {
		snprintf(err, GM_RDMA_ERR, "this libmlx5 registers no dma-buf (no mlx5dv_devx_umem_reg_ex)");
		return -1;
	} else {
		struct gm_umem_in in = {.size = bytes, .access = GV_ACCESS_LOCAL_WRITE, .pgsz_bitmap = ~(uint64_t)4095, .comp_mask = GM_UMEM_DMABUF, .dmabuf_fd = fd};
		u = lib.umem_reg_ex(ctx, &in);
	}
	if (!u)
		return failed(fd < 0 ? "memory for queues" : "memory for queues by dma-buf", errno, err);
	*umem = u;
	*id = u->umem_id;
	return 0;
}

void gm_umem_dereg(void *umem) { lib.umem_dereg(umem); }

int gm_mr_reg(void *pd, uint64_t addr, size_t bytes, int fd, void **mr, uint32_t *lkey, char *err)
{
	struct gv_mr *m;
	if (fd < 0)
		m = lib.reg_mr(pd, (void *)(uintptr_t)addr, bytes, GV_ACCESS_LOCAL_WRITE);
	else if (!lib.reg_dmabuf_mr) {
		snprintf(err, GM_RDMA_ERR, "this libibverbs registers no dma-buf (no ibv_reg_dmabuf_mr)");
		return -1;
	} else
		m = lib.reg_dmabuf_mr(pd, 0, bytes, addr, fd, GV_ACCESS_LOCAL_WRITE);
	if (!m)
		return failed(fd < 0 ? "memory for payload" : "memory for payload by dma-buf", errno, err);
	*mr = m;
	*lkey = m->lkey;
	return 0;
}

void gm_mr_dereg(void *mr) { lib.dereg_mr(mr); }

// A command that the device refuses leaves its answer in out, and its status is
// what tells.
static int command(const char *what, int ok, const uint8_t *out, char *err)
{
	int error = errno;
	if (ok)
		return 0;
	snprintf(err, GM_RDMA_ERR, "%s: %s, status %#x, syndrome 0x%02x%02x%02x%02x", what, strerror(error), out[0], out[4], out[5], out[6], out[7]);
	return -1;
}

int gm_create(void *ctx, const void *in, size_t inlen, void *out, size_t outlen, void **obj, char *err)
{
	*obj = lib.create(ctx, in, inlen, out, outlen);
	return command("the device makes no object", *obj != NULL, out, err);
}

int gm_modify(void *obj, const void *in, size_t inlen, void *out, size_t outlen, char *err)
{
	int rc = lib.modify(obj, in, inlen, out, outlen);
	if (rc > 0)
		errno = rc;
	return command("the device changes no state", rc == 0, out, err);
}

void gm_destroy(void *obj) { lib.destroy(obj); }
