// Where the kernel's header has the fields of command.go: first bit and width of
// each, by structure.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef uint16_t __be16;
typedef uint32_t __be32;
typedef uint64_t __be64;
#define BIT(n) (1ull << (n))
#define BIT_ULL(n) (1ull << (n))
#define ETH_ALEN 6
#include "mlx5_ifc.h"

#define F(s, name)                                                                                                     \
	printf(#s "." #name " %zu %zu\n", offsetof(struct mlx5_ifc_##s##_bits, name), sizeof ((struct mlx5_ifc_##s##_bits *)0)->name)
#define S(s) printf(#s " 0 %zu\n", sizeof(struct mlx5_ifc_##s##_bits))

int main(void)
{
	S(create_cq_in), S(create_qp_in), S(rst2init_qp_in), S(init2rtr_qp_in), S(rtr2rts_qp_in), S(create_cq_out), S(create_qp_out);
	F(create_cq_in, opcode), F(create_cq_in, cq_context), F(create_cq_in, cq_umem_valid), F(create_cq_out, status);
	F(create_cq_out, syndrome), F(create_cq_out, cqn), F(create_qp_out, qpn), F(rst2init_qp_in, qpn), F(create_qp_in, qpc);
	F(rst2init_qp_in, qpc), F(init2rtr_qp_in, qpc), F(rtr2rts_qp_in, qpc), F(create_qp_in, wq_umem_valid);
	F(cqc, dbr_umem_valid), F(cqc, log_cq_size), F(cqc, uar_page), F(cqc, log_page_size), F(cqc, dbr_addr), F(cqc, c_eqn_or_apu_element);
	F(qpc, pm_state), F(qpc, pd), F(qpc, mtu), F(qpc, log_msg_max), F(qpc, log_sq_size), F(qpc, uar_page), F(qpc, log_page_size);
	F(qpc, remote_qpn), F(qpc, primary_address_path), F(qpc, retry_count), F(qpc, rnr_retry);
	F(qpc, next_send_psn), F(qpc, cqn_snd), F(qpc, min_rnr_nak), F(qpc, next_rcv_psn);
	F(qpc, cqn_rcv), F(qpc, dbr_addr), F(qpc, rq_type), F(qpc, dbr_umem_valid);
	F(ads, grh), F(ads, rlid), F(ads, ack_timeout), F(ads, src_addr_index), F(ads, hop_limit);
	F(ads, rgid_rip), F(ads, udp_sport), F(ads, vhca_port_num), F(ads, rmac_47_32), F(ads, rmac_31_0);
	printf("op.create_cq %d 0\nop.create_qp %d 0\nop.rst2init %d 0\nop.init2rtr %d 0\nop.rtr2rts %d 0\nop.migrated %d 0\n", MLX5_CMD_OP_CREATE_CQ,
	       MLX5_CMD_OP_CREATE_QP, MLX5_CMD_OP_RST2INIT_QP, MLX5_CMD_OP_INIT2RTR_QP, MLX5_CMD_OP_RTR2RTS_QP, MLX5_QPC_PM_STATE_MIGRATED);
	return 0;
}
