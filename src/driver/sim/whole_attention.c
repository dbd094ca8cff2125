// Adapters of the attention kernels.
#include "driver/sim/whole.h"

const tn_whole_adapter_t tn_whole_attention[] = {
    {TN_OP_COUNT, NULL, NULL, NULL, false, NULL},
};
