// Poster, NIC and ringing CPU thread as host threads, one call each.
#ifndef GDISIM_MLX5_TWIN_H
#define GDISIM_MLX5_TWIN_H
#include "layout.h"

void gm_twin_post(struct gm_run *);
// gm_twin_nic serves the image until *quit is set and nothing is left to do.
void gm_twin_nic(struct gm_nic *);
// gm_twin_ring rings for a poster that leaves doorbells in r's mailbox, until *quit.
void gm_twin_ring(const struct gm_run *r, const uint32_t *quit);
#endif
