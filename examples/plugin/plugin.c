/* The plugin in C of the example `plugin_host`: as src/lib.rs. */

#include "immediate.h"

IMMEDIATE_SHARED(bool, profile, "host.profile", false);
IMMEDIATE_SHARED(u32, rounds, "host.rounds", 1);

static uint64_t profiled;

uint64_t plugin_version(void) {
    return 10;
}

uint64_t plugin_serve(uint64_t number) {
    if (immediate_if(profile)) {
        __atomic_fetch_add(&profiled, 1, __ATOMIC_RELAXED);
    }
    for (uint32_t round = immediate_read(rounds); round > 0; round--) {
        number = number * 3 + 10;
    }
    return number;
}

uint64_t plugin_profiled(void) {
    return __atomic_load_n(&profiled, __ATOMIC_RELAXED);
}
