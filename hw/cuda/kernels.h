// What the kernels and the host share: the arguments of every kernel, and what a
// block reports. Plain integers, so that both compilers lay them out alike.
#ifndef GDISIM_CUDA_KERNELS_H
#define GDISIM_CUDA_KERNELS_H

typedef unsigned long long gd_u64;
typedef long long gd_i64;
typedef unsigned int gd_u32;

enum {
	GD_ROW = 4096,	 // samples that a launch can keep
	GD_RING = 128,	 // descriptors of a proxy ring, 64 B each
	GD_DEPTH = 256,	 // WQEs of a send queue, 64 B each
	GD_BATCH = 16,	 // polls between two clock reads
	GD_QUEUES = 160, // send queues, rings and reports that are laid out
	GD_PAYLOAD_0 = 0x55667788, // what every WQE carries
	GD_PAYLOAD_1 = 0x11223344,
};

// Why a block ended early; 0: it did not.
enum { GD_LATE = 1, GD_ABORTED, GD_WRONG };

struct gd_args {
	gd_u64 target; // where stores, loads, descriptors or a copy go
	gd_u64 source; // what a copy reads
	gd_u64 out;    // u32[blocks][n] clocks of each sample
	gd_u64 out2;   // a second row, or 0
	gd_u64 in;     // flag that the other side writes
	gd_u64 flag;   // flag that this side writes
	gd_u64 report; // gd_report[blocks]
	gd_u64 abort;  // u32 in host memory: not 0 ends the kernel
	gd_u64 stop;   // u32 in GPU memory: ends a background kernel
	gd_u64 queue;  // gd_queue[blocks]
	gd_u64 bytes;  // of target
	gd_u64 base;   // flags count from here
	gd_u64 budget; // ns that the kernel may take
	gd_u32 n;      // samples, messages or posts
	gd_u32 count;  // stores before a fence, repetitions, WQEs a doorbell
	gd_u32 window; // messages in flight
	gd_u32 delay;  // clocks until the first look; ns of a kernel that works
	gd_u32 stride; // bytes from block to block
	gd_u32 gap;    // clocks of rest before a sample
};

struct gd_report {
	gd_i64 c0, c1; // clock64 at begin and end
	gd_u64 g0, g1; // globaltimer, ns
	gd_u32 bad, hits;
	gd_u64 sum; // so that no compiler drops a load
};

// A send queue as a library keeps it: fields behind a pointer, and the index.
struct gd_queue {
	gd_u64 wqes, record, doorbell, payload; // addresses
	gd_u64 raddr;
	gd_u32 mask, number, rkey, pad;
	gd_u64 pad2[10];
	gd_u64 producer; // next index, on a line of its own
	gd_u64 pad3[15];
	gd_u64 reserved; // of a shared queue: next slot, and the next that may ring
	gd_u64 pad4[15];
	gd_u64 turn;
	gd_u64 pad5[15];
};
#endif
