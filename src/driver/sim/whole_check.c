// Adapter of the check composite: one flag read, the launch ends there when it is set.
#include "driver/sim/whole.h"

typedef struct check {
  tn_check_kind_t kind;
} check_t;

static tn_status_t run_check(const void* record, const tn_whole_call_t* call) {
  const check_t* self = record;
  if (*(const uint8_t*)call->in[0])
    return TN_ERROR(TN_INVALID_ARGUMENT, "%s", tn_check_text(self->kind));
  *(int32_t*)call->out[0] = 0;
  return TN_OK;
}

static bool prepare_check(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                          tn_whole_t* out) {
  (void)thread_count;
  check_t* self = TN_ARENA_NEW(arena, check_t);
  if (!self) return false;
  self->kind = (tn_check_kind_t)tn_node_int(step->node, TN_ATTR_KIND, 0);
  *out = (tn_whole_t){.run = run_check, .record = self};
  return true;
}

const tn_whole_adapter_t tn_whole_checks[] = {
    {TN_OP_COMPOSITE, "check", prepare_check, NULL, false, NULL},
    {TN_OP_COUNT, NULL, NULL, NULL, false, NULL},
};
