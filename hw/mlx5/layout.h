// What an mlx5 device reads and writes in memory, and what poster, NIC of the
// image and host say to each other. Constants are those of rdma-core's
// infiniband/mlx5dv.h; layout_test.go holds the bytes against it.
#ifndef GDISIM_MLX5_LAYOUT_H
#define GDISIM_MLX5_LAYOUT_H
#include <stdint.h>

enum {
	GM_BB = 64, // bytes of a WQEBB, and of a CQE
	GM_OP_WRITE = 0x08,
	GM_OP_WRITE_IMM = 0x09,
	GM_INLINE = 0x80000000u, // flag of an inline segment's byte count
	GM_CQ_UPDATE = 2 << 2, // fm_ce_se: ask for a CQE
	GM_FENCE = 4 << 5, // fm_ce_se: wait for all earlier reads and atomics
	GM_SMALL_FENCE = 1 << 5, // fm_ce_se: initiator small fence

	GM_CQE_REQ = 0,
	GM_CQE_REQ_ERR = 13,
	GM_CQE_RESP_ERR = 14,
	GM_CQE_INVALID = 15,
	GM_SYN_LOCAL_QP_OP = 0x02,
	GM_SYN_FLUSH = 0x05,
	GM_SYN_REMOTE_ACCESS = 0x13,

	GM_SND_RECORD = 1, // word of a queue pair's doorbell record
	GM_CI_RECORD = 0, // word of a completion queue's
};

// One queue pair's send side, by the addresses of whoever uses it.
struct gm_queue {
	uint8_t *sq; // wqebbs * 64 B
	uint8_t *cq; // cqes * 64 B
	uint32_t *record; // of the queue pair: receive counter, send counter
	uint32_t *cq_record; // of the completion queue: consumer index, arm
	uint64_t *doorbell; // register in the UAR page
	uint32_t qpn, wqebbs, cqes; // wqebbs and cqes are powers of two
	uint32_t start; // WQEBBs posted before
	uint32_t cq_start; // CQEs polled before
};

// What message i is: shapes are taken in turn.
struct gm_shape {
	uint32_t opcode, inlined, bytes, flags; // flags: GM_FENCE or GM_SMALL_FENCE
};

enum { GM_SHAPES = 4, GM_SLOTS = 64 };

// Order of WQE, record and doorbell, by the names of the scenario key path.fence.
// gpu and gpu+record are release stores too: what precedes the store is what
// fence.release.gpu would be.
enum gm_order { GM_NONE, GM_GPU_RELEASE, GM_DEVICE, GM_SYSTEM_RELEASE, GM_SYSTEM };

// Who stores to the doorbell register.
enum gm_ringer { GM_RING_POSTER, GM_RING_CPU };

// A defect that tests plant.
enum gm_plant { GM_PLANT_NOTHING, GM_PLANT_EARLY_DOORBELL, GM_PLANT_NO_ROOM_CHECK };

enum gm_why { GM_DONE, GM_WC_ERROR, GM_STOPPED, GM_TIMEOUT };

// What the poster tells. Written before it ends; `posted` and `completed` count
// messages.
struct gm_report {
	uint32_t why, posted, completed, rings, full, syndrome, vendor, wqe_counter;
	uint32_t next, cq_next; // where the queues stand: start and cq_start of a next run
	uint32_t samples;
	uint32_t pad;
	uint64_t ticks[2], ns[2]; // both clocks at the first measured message and at the end
};

// One run of the poster: n messages after warmup, of which every signal_every-th
// asks for a CQE, chain of them per doorbell, at most window in flight.
struct gm_run {
	struct gm_queue q;
	struct gm_shape shape[GM_SHAPES];
	uint32_t shapes, n, warmup, chain, window, signal_every;
	uint32_t order, with_record, ringer, plant;
	uint64_t local, remote; // payload, and where it goes: addresses as WQEs carry them
	uint64_t stride; // message i goes to remote + i % GM_SLOTS * stride, and comes from there at local
	uint32_t lkey, rkey;
	uint8_t *source; // local as the poster reads and stamps it, for inline copies
	uint32_t stamp; // the last byte of message i is i % 255 + 1
	uint32_t spare;
	uint64_t *mailbox; // where the poster leaves the doorbell's value for a CPU that rings
	uint32_t *stop; // set by the host: give up
	uint64_t budget; // ticks without progress before giving up
	uint64_t *issue, *done; // samples in ticks, room for n; 0 to take none. done only with window 1
	struct gm_report *report;
};

// What the NIC of an image finds wrong, and where first.
enum gm_fault {
	GM_OK,
	GM_BAD_DOORBELL, // another queue pair's, or an index that was rung before
	GM_LATE_RECORD, // the record does not cover the doorbell
	GM_STALE_CONTROL, // a WQE was not there when the doorbell or record said so
	GM_STALE_ADDRESS,
	GM_STALE_DATA,
	GM_STALE_PAYLOAD, // what the WQE points to was not there
	GM_OVERWRITTEN, // a WQE changed before its completion
	GM_QUEUE_OVERRUN, // more WQEBBs outstanding than the queue has
	GM_CQ_OVERRUN, // a CQE would have overwritten one that was not polled
};

// A NIC that serves one queue pair of an image. It knows what the poster was told
// to post, and holds every WQE against that at the moment the doorbell arrives.
struct gm_nic {
	struct gm_run r; // by the addresses that the NIC uses
	uint8_t *shadow; // wqebbs * 64 B: the WQEs as fetched
	uint8_t *target; // where payload lands: GM_SLOTS * stride B; or 0
	uint32_t eager; // reads the record also when no doorbell came
	uint32_t hold, draining; // completes nothing until so many WQEBBs are outstanding, then all of them
	uint32_t fail_at, fail_syndrome, fail_vendor; // message fail_at - 1 ends in an error; 0 for none

	uint64_t bell; // last doorbell that was taken
	uint32_t producer, fetched, retired; // WQEBBs
	uint32_t arrived, finished, cqes; // messages fetched, messages completed, CQEs written
	uint32_t broken; // an error CQE was written: the rest is flushed
	uint32_t bells, faults; // doorbells seen; faults counted
	uint32_t fault, fault_message, fault_word, fault_got, fault_want; // the first
	uint64_t progress; // clock of the last doorbell, fetch or completion
	uint32_t *quit; // set by the host: the poster is gone
};
#endif
