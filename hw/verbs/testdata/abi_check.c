// Compiled, never run: every declaration of abi.h against the library's header.
#include <infiniband/verbs.h>

#include "../abi.h"

#define SIZE(t) _Static_assert(sizeof(struct gv_##t) == sizeof(struct ibv_##t), #t)
#define AT(t, m) AT2(t, m, m)
#define AT2(t, ours, theirs)                                                                                           \
	_Static_assert(offsetof(struct gv_##t, ours) == offsetof(struct ibv_##t, theirs), #t "." #ours);               \
	_Static_assert(sizeof(((struct gv_##t *)0)->ours) == sizeof(((struct ibv_##t *)0)->theirs), #t "." #ours)
// Of the calls in front of the context only what lies behind them is fixed.
#define BEFORE(m)                                                                                                      \
	_Static_assert(offsetof(struct gv_verbs_context, context) - offsetof(struct gv_verbs_context, m) ==            \
			       offsetof(struct verbs_context, context) - offsetof(struct verbs_context, m),            \
		       "verbs_context." #m)
#define SAME(a, b) _Static_assert((int)(a) == (int)(b), #a)

SIZE(context_ops); AT(context_ops, poll_cq); AT(context_ops, req_notify_cq); AT(context_ops, post_send); AT(context_ops, post_recv);
AT(context, device); AT(context, ops); AT(context, cmd_fd); AT(context, async_fd); AT(context, num_comp_vectors);
SIZE(device_attr); AT(device_attr, fw_ver); AT(device_attr, max_mr_size); AT(device_attr, vendor_id); AT(device_attr, vendor_part_id);
AT(device_attr, max_qp); AT(device_attr, max_qp_wr); AT(device_attr, device_cap_flags); AT(device_attr, max_sge); AT(device_attr, max_cq); AT(device_attr, max_cqe); AT(device_attr, max_mr);
AT(device_attr, max_qp_rd_atom); AT(device_attr, max_qp_init_rd_atom); AT(device_attr, atomic_cap); AT(device_attr, max_pkeys); AT(device_attr, phys_port_cnt);
SIZE(port_attr); AT(port_attr, state); AT(port_attr, max_mtu); AT(port_attr, active_mtu); AT(port_attr, gid_tbl_len); AT(port_attr, max_msg_sz); AT(port_attr, lid); AT(port_attr, link_layer);
_Static_assert(sizeof(union gv_gid) == sizeof(union ibv_gid) && _Alignof(union gv_gid) == _Alignof(union ibv_gid), "gid");
SIZE(mr); AT(mr, addr); AT(mr, length); AT(mr, lkey); AT(mr, rkey);
SIZE(comp_channel); AT(comp_channel, fd);
AT(cq, context); AT(qp, context); AT(qp, send_cq); AT(qp, qp_num);
SIZE(qp_cap); AT(qp_cap, max_send_wr); AT(qp_cap, max_inline_data);
SIZE(qp_init_attr); AT(qp_init_attr, send_cq); AT(qp_init_attr, recv_cq); AT(qp_init_attr, cap); AT(qp_init_attr, qp_type); AT(qp_init_attr, sq_sig_all);
SIZE(ah_attr); AT(ah_attr, grh); AT(ah_attr, dlid); AT(ah_attr, is_global); AT(ah_attr, port_num); AT(ah_attr, grh.sgid_index); AT(ah_attr, grh.hop_limit);
SIZE(qp_attr); AT(qp_attr, qp_state); AT(qp_attr, path_mtu); AT(qp_attr, rq_psn); AT(qp_attr, sq_psn); AT(qp_attr, dest_qp_num); AT(qp_attr, qp_access_flags); AT(qp_attr, cap); AT(qp_attr, ah_attr);
AT(qp_attr, pkey_index); AT(qp_attr, max_rd_atomic); AT(qp_attr, max_dest_rd_atomic); AT(qp_attr, min_rnr_timer); AT(qp_attr, port_num); AT(qp_attr, timeout); AT(qp_attr, retry_cnt); AT(qp_attr, rnr_retry); AT(qp_attr, rate_limit);
SIZE(sge); AT(sge, addr); AT(sge, length); AT(sge, lkey);
SIZE(send_wr); AT(send_wr, wr_id); AT(send_wr, next); AT(send_wr, sg_list); AT(send_wr, num_sge); AT(send_wr, opcode); AT(send_wr, send_flags); AT(send_wr, imm_data);
AT(send_wr, wr.rdma.remote_addr); AT(send_wr, wr.rdma.rkey); AT(send_wr, wr.atomic.compare_add); AT(send_wr, wr.atomic.swap); AT(send_wr, wr.atomic.rkey);
SIZE(recv_wr); AT(recv_wr, wr_id); AT(recv_wr, next); AT(recv_wr, sg_list); AT(recv_wr, num_sge);
SIZE(wc); AT(wc, wr_id); AT(wc, status); AT(wc, opcode); AT(wc, vendor_err); AT(wc, byte_len); AT(wc, imm_data); AT(wc, qp_num); AT(wc, wc_flags);
SIZE(context); AT(context, abi_compat);
BEFORE(query_rt_values); BEFORE(create_cq_ex); BEFORE(query_device_ex); BEFORE(sz);
SIZE(poll_cq_attr); AT(cq_ex, channel); AT(cq_ex, status); AT(cq_ex, wr_id); AT(cq_ex, start_poll); AT(cq_ex, next_poll); AT(cq_ex, end_poll);
AT(cq_ex, read_vendor_err); AT(cq_ex, read_byte_len); AT(cq_ex, read_completion_ts);
SIZE(cq_init_attr_ex); AT(cq_init_attr_ex, cqe); AT(cq_init_attr_ex, channel); AT(cq_init_attr_ex, comp_vector); AT(cq_init_attr_ex, wc_flags); AT(cq_init_attr_ex, comp_mask); AT(cq_init_attr_ex, flags);
SIZE(device_attr_ex); AT(device_attr_ex, orig_attr); AT(device_attr_ex, completion_timestamp_mask); AT(device_attr_ex, hca_core_clock);
SIZE(values_ex); AT(values_ex, raw_clock);
SIZE(async_event); AT(async_event, event_type);

SAME(GV_QPT_RC, IBV_QPT_RC); SAME(GV_QPS_INIT, IBV_QPS_INIT); SAME(GV_QPS_RTR, IBV_QPS_RTR); SAME(GV_QPS_RTS, IBV_QPS_RTS);
SAME(GV_PORT_ACTIVE, IBV_PORT_ACTIVE); SAME(GV_LINK_ETHERNET, IBV_LINK_LAYER_ETHERNET);
SAME(GV_QP_STATE, IBV_QP_STATE); SAME(GV_QP_ACCESS_FLAGS, IBV_QP_ACCESS_FLAGS); SAME(GV_QP_PKEY_INDEX, IBV_QP_PKEY_INDEX); SAME(GV_QP_PORT, IBV_QP_PORT); SAME(GV_QP_AV, IBV_QP_AV);
SAME(GV_QP_PATH_MTU, IBV_QP_PATH_MTU); SAME(GV_QP_TIMEOUT, IBV_QP_TIMEOUT); SAME(GV_QP_RETRY_CNT, IBV_QP_RETRY_CNT); SAME(GV_QP_RNR_RETRY, IBV_QP_RNR_RETRY); SAME(GV_QP_RQ_PSN, IBV_QP_RQ_PSN);
SAME(GV_QP_MAX_QP_RD_ATOMIC, IBV_QP_MAX_QP_RD_ATOMIC); SAME(GV_QP_MIN_RNR_TIMER, IBV_QP_MIN_RNR_TIMER); SAME(GV_QP_SQ_PSN, IBV_QP_SQ_PSN); SAME(GV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MAX_DEST_RD_ATOMIC); SAME(GV_QP_DEST_QPN, IBV_QP_DEST_QPN);
SAME(GV_ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE); SAME(GV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_WRITE); SAME(GV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_READ); SAME(GV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC);
SAME(GV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE); SAME(GV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM); SAME(GV_WR_SEND, IBV_WR_SEND); SAME(GV_WR_RDMA_READ, IBV_WR_RDMA_READ);
SAME(GV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP); SAME(GV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD); SAME(GV_SEND_SIGNALED, IBV_SEND_SIGNALED); SAME(GV_SEND_INLINE, IBV_SEND_INLINE);
SAME(GV_WC_EX_WITH_BYTE_LEN, IBV_WC_EX_WITH_BYTE_LEN); SAME(GV_WC_EX_WITH_COMPLETION_TIMESTAMP, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP); SAME(GV_VALUES_MASK_RAW_CLOCK, IBV_VALUES_MASK_RAW_CLOCK);
_Static_assert((uintptr_t)__VERBS_ABI_IS_EXTENDED == UINTPTR_MAX, "abi_compat");
SAME(GV_EVENT_CQ_ERR, IBV_EVENT_CQ_ERR); SAME(GV_EVENT_QP_FATAL, IBV_EVENT_QP_FATAL); SAME(GV_EVENT_QP_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR); SAME(GV_EVENT_DEVICE_FATAL, IBV_EVENT_DEVICE_FATAL); SAME(GV_EVENT_PORT_ERR, IBV_EVENT_PORT_ERR);
