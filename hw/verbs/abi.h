// The little of the libibverbs ABI that this package uses, declared here so that
// no header needs to be installed to build, and no library to start. Names and
// order are those of the library's; a test compiles abi_check.c, which holds every size and
// offset against infiniband/verbs.h.
#ifndef GDISIM_VERBS_ABI_H
#define GDISIM_VERBS_ABI_H
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct gv_device;
struct gv_pd;
struct gv_ah;

struct gv_wc;
struct gv_send_wr;
struct gv_recv_wr;
struct gv_qp;
struct gv_cq;

// ibv_post_send and its like are no symbols of the library: they are called
// through this table.
struct gv_context_ops {
	void *before_poll_cq[11];
	int (*poll_cq)(struct gv_cq *, int, struct gv_wc *);
	int (*req_notify_cq)(struct gv_cq *, int);
	void *before_post_send[12];
	int (*post_send)(struct gv_qp *, struct gv_send_wr *, struct gv_send_wr **);
	int (*post_recv)(struct gv_qp *, struct gv_recv_wr *, struct gv_recv_wr **);
	void *rest[5];
};

struct gv_context {
	struct gv_device *device;
	struct gv_context_ops ops;
	int cmd_fd;
	int async_fd;
	int num_comp_vectors;
	pthread_mutex_t mutex;
	void *abi_compat; // all ones: a gv_verbs_context ends here
};

struct gv_device_attr {
	char fw_ver[64];
	uint64_t node_guid, sys_image_guid, max_mr_size, page_size_cap;
	uint32_t vendor_id, vendor_part_id, hw_ver;
	int max_qp, max_qp_wr;
	unsigned device_cap_flags;
	int max_sge, max_sge_rd, max_cq, max_cqe, max_mr, max_pd;
	int max_qp_rd_atom, max_ee_rd_atom, max_res_rd_atom, max_qp_init_rd_atom, max_ee_init_rd_atom;
	int atomic_cap;
	int more[14];
	uint16_t max_pkeys;
	uint8_t local_ca_ack_delay, phys_port_cnt;
};

struct gv_port_attr {
	int state, max_mtu, active_mtu, gid_tbl_len;
	uint32_t port_cap_flags, max_msg_sz, bad_pkey_cntr, qkey_viol_cntr;
	uint16_t pkey_tbl_len, lid, sm_lid;
	uint8_t lmc, max_vl_num, sm_sl, subnet_timeout, init_type_reply;
	uint8_t active_width, active_speed, phys_state, link_layer, flags;
	uint16_t port_cap_flags2;
};

union gv_gid {
	uint8_t raw[16];
	uint64_t align[2];
};

struct gv_mr {
	struct gv_context *context;
	struct gv_pd *pd;
	void *addr;
	size_t length;
	uint32_t handle, lkey, rkey;
};

struct gv_comp_channel {
	struct gv_context *context;
	int fd, refcnt;
};

struct gv_cq {
	struct gv_context *context;
};

struct gv_qp {
	struct gv_context *context;
	void *qp_context;
	struct gv_pd *pd;
	struct gv_cq *send_cq, *recv_cq;
	void *srq;
	uint32_t handle, qp_num;
};

struct gv_qp_cap {
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
};

struct gv_qp_init_attr {
	void *qp_context;
	struct gv_cq *send_cq, *recv_cq;
	void *srq;
	struct gv_qp_cap cap;
	int qp_type, sq_sig_all;
};

struct gv_ah_attr {
	struct {
		union gv_gid dgid;
		uint32_t flow_label;
		uint8_t sgid_index, hop_limit, traffic_class;
	} grh;
	uint16_t dlid;
	uint8_t sl, src_path_bits, static_rate, is_global, port_num;
};

struct gv_qp_attr {
	int qp_state, cur_qp_state, path_mtu, path_mig_state;
	uint32_t qkey, rq_psn, sq_psn, dest_qp_num;
	unsigned qp_access_flags;
	struct gv_qp_cap cap;
	struct gv_ah_attr ah_attr, alt_ah_attr;
	uint16_t pkey_index, alt_pkey_index;
	uint8_t en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num;
	uint8_t timeout, retry_cnt, rnr_retry, alt_port_num, alt_timeout;
	uint32_t rate_limit;
};

struct gv_sge {
	uint64_t addr;
	uint32_t length, lkey;
};

struct gv_send_wr {
	uint64_t wr_id;
	struct gv_send_wr *next;
	struct gv_sge *sg_list;
	int num_sge, opcode;
	unsigned send_flags;
	uint32_t imm_data;
	union {
		struct {
			uint64_t remote_addr;
			uint32_t rkey;
		} rdma;
		struct {
			uint64_t remote_addr, compare_add, swap;
			uint32_t rkey;
		} atomic;
	} wr;
	uint64_t rest[7];
};

struct gv_recv_wr {
	uint64_t wr_id;
	struct gv_recv_wr *next;
	struct gv_sge *sg_list;
	int num_sge;
};

struct gv_wc {
	uint64_t wr_id;
	int status, opcode;
	uint32_t vendor_err, byte_len, imm_data, qp_num, src_qp;
	unsigned wc_flags;
	uint16_t pkey_index, slid;
	uint8_t sl, dlid_path_bits;
};

// A CQ that is polled field by field, and tells when the device wrote the CQE.
struct gv_poll_cq_attr {
	uint32_t comp_mask;
};

struct gv_cq_ex {
	struct gv_context *context;
	struct gv_comp_channel *channel;
	void *cq_context;
	uint32_t handle;
	int cqe;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	uint32_t comp_events_completed, async_events_completed, comp_mask;
	int status;
	uint64_t wr_id;
	int (*start_poll)(struct gv_cq_ex *, struct gv_poll_cq_attr *);
	int (*next_poll)(struct gv_cq_ex *);
	void (*end_poll)(struct gv_cq_ex *);
	int (*read_opcode)(struct gv_cq_ex *);
	uint32_t (*read_vendor_err)(struct gv_cq_ex *);
	uint32_t (*read_byte_len)(struct gv_cq_ex *);
	void *before_completion_ts[7];
	uint64_t (*read_completion_ts)(struct gv_cq_ex *);
};

struct gv_cq_init_attr_ex {
	uint32_t cqe;
	void *cq_context;
	struct gv_comp_channel *channel;
	uint32_t comp_vector;
	uint64_t wc_flags;
	uint32_t comp_mask, flags;
	struct gv_pd *parent_domain;
};

struct gv_device_attr_ex {
	struct gv_device_attr orig_attr;
	uint32_t comp_mask;
	uint64_t odp[3];
	uint64_t completion_timestamp_mask, hca_core_clock;
	uint64_t rest[15];
};

struct gv_values_ex {
	uint32_t comp_mask;
	struct timespec raw_clock; // ticks of hca_core_clock
};

// The calls that are no symbols of the library and not in gv_context_ops stand in
// front of the context, counted from its end: the structure grows at the front.
struct gv_verbs_context {
	int (*query_rt_values)(struct gv_context *, struct gv_values_ex *);
	struct gv_cq_ex *(*create_cq_ex)(struct gv_context *, struct gv_cq_init_attr_ex *);
	void *priv;
	int (*query_device_ex)(struct gv_context *, const void *, struct gv_device_attr_ex *, size_t);
	void *before_sz[11];
	size_t sz;
	struct gv_context context;
};

struct gv_async_event {
	union {
		void *object;
		int port_num;
	} element;
	int event_type;
};

enum {
	GV_QPT_RC = 2,
	GV_QPS_INIT = 1,
	GV_QPS_RTR = 2,
	GV_QPS_RTS = 3,
	GV_PORT_ACTIVE = 4,
	GV_LINK_ETHERNET = 2,

	GV_QP_STATE = 1 << 0,
	GV_QP_ACCESS_FLAGS = 1 << 3,
	GV_QP_PKEY_INDEX = 1 << 4,
	GV_QP_PORT = 1 << 5,
	GV_QP_AV = 1 << 7,
	GV_QP_PATH_MTU = 1 << 8,
	GV_QP_TIMEOUT = 1 << 9,
	GV_QP_RETRY_CNT = 1 << 10,
	GV_QP_RNR_RETRY = 1 << 11,
	GV_QP_RQ_PSN = 1 << 12,
	GV_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	GV_QP_MIN_RNR_TIMER = 1 << 15,
	GV_QP_SQ_PSN = 1 << 16,
	GV_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	GV_QP_DEST_QPN = 1 << 20,

	GV_ACCESS_LOCAL_WRITE = 1,
	GV_ACCESS_REMOTE_WRITE = 2,
	GV_ACCESS_REMOTE_READ = 4,
	GV_ACCESS_REMOTE_ATOMIC = 8,

	GV_WR_RDMA_WRITE = 0,
	GV_WR_RDMA_WRITE_WITH_IMM = 1,
	GV_WR_SEND = 2,
	GV_WR_RDMA_READ = 4,
	GV_WR_ATOMIC_CMP_AND_SWP = 5,
	GV_WR_ATOMIC_FETCH_AND_ADD = 6,

	GV_SEND_SIGNALED = 2,
	GV_SEND_INLINE = 8,

	GV_WC_EX_WITH_BYTE_LEN = 1 << 0,
	GV_WC_EX_WITH_COMPLETION_TIMESTAMP = 1 << 7,
	GV_VALUES_MASK_RAW_CLOCK = 1 << 0,

	GV_EVENT_CQ_ERR = 0,
	GV_EVENT_QP_FATAL = 1,
	GV_EVENT_QP_ACCESS_ERR = 3,
	GV_EVENT_DEVICE_FATAL = 8,
	GV_EVENT_PORT_ERR = 10,
};
#endif
