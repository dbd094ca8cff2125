// Adapters of the order kernels.
#include "driver/sim/whole.h"

const tn_whole_adapter_t tn_whole_order[] = {
    {TN_OP_COUNT, NULL, NULL, NULL, false, NULL},
};
