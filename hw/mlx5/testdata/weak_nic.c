// The NIC beside weak.c: its own loads and stores are those of a device.
#define _GNU_SOURCE
#include "../mem_cpu.h"
#include "../post.h"
#include "../nic.h"

void weak_nic_step(struct gm_nic *n) { gm_nic_step(n); }
