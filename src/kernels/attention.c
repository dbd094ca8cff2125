// Attention: tasks over heads and row blocks, scratch memory per worker.
#include "src/kernels/attention.h"

#include <string.h>

#include "src/kernels/isa.h"
#include "src/kernels/isa/attention_table.h"

TN_ISA_TABLES(tn_attention_table_t, tn_attention_table)

typedef struct job {
  const tn_attention_table_t* table;
  const tn_attention_t* attention;
  const tn_attention_grad_t* grad;
  float* workspace;
  int64_t scratch;  // floats per worker
  void* out;
  const int64_t* out_stride;
  float* out_lse;
} job_t;

static int64_t round_scratch(int64_t floats) {
  return (floats + 15) / 16 * 16;
}  // workers do not share cache lines

static void forward_tasks(void* context, int64_t begin, int64_t end, int worker) {
  const job_t* job = context;
  for (int64_t task = begin; task < end; ++task)
    job->table->forward(job->attention, task, job->workspace + worker * job->scratch, job->out,
                        job->out_stride, job->out_lse);
}
static void backward_tasks(void* context, int64_t begin, int64_t end, int worker) {
  const job_t* job = context;
  for (int64_t task = begin; task < end; ++task)
    job->table->backward(job->attention, job->grad, task, job->workspace + worker * job->scratch);
}

size_t tn_attention_forward_workspace(const tn_attention_t* attention, int thread_count) {
  const int64_t floats = round_scratch(TN_ISA_PICK(tn_attention_table)->forward_scratch(attention));
  return (size_t)floats * (size_t)(thread_count > 0 ? thread_count : 1) * sizeof(float);
}
void tn_attention_forward(tn_pool_t* pool, const tn_attention_t* attention, void* workspace,
                          void* out, const int64_t* out_stride, float* out_lse) {
  const tn_attention_table_t* table = TN_ISA_PICK(tn_attention_table);
  job_t job = {.table = table,
               .attention = attention,
               .workspace = workspace,
               .scratch = round_scratch(table->forward_scratch(attention)),
               .out = out,
               .out_stride = out_stride,
               .out_lse = out_lse};
  const int64_t tasks =
      attention->batch * attention->heads * tn_attention_block_count(attention->length);
  tn_pool_run(pool, tasks, 1, forward_tasks, &job);
}

size_t tn_attention_backward_workspace(const tn_attention_t* attention, int thread_count) {
  const int64_t floats =
      round_scratch(TN_ISA_PICK(tn_attention_table)->backward_scratch(attention));
  return (size_t)floats * (size_t)(thread_count > 0 ? thread_count : 1) * sizeof(float);
}
void tn_attention_backward(tn_pool_t* pool, const tn_attention_t* attention,
                           const tn_attention_grad_t* grad, void* workspace) {
  const tn_attention_table_t* table = TN_ISA_PICK(tn_attention_table);
  job_t job = {.table = table,
               .attention = attention,
               .grad = grad,
               .workspace = workspace,
               .scratch = round_scratch(table->backward_scratch(attention))};
  if (attention->heads_kv == 0) return;
  tn_pool_run(pool, attention->batch * attention->heads_kv, 1, backward_tasks, &job);
}
