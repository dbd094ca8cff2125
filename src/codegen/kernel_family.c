#include "codegen/kernel_family.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "codegen/kernel_cache.h"
#include "codegen/kernel_program_internal.h"
#include "codegen/object_cache.h"
#include "codegen/plugin.h"

enum {
  BUCKETS = 1024,
  SINGLE_POINTS =
      4096,  // run one by one, about 30 us: a hundredth of what generating a kernel takes
};

// ---- does a kernel fit? ----------------------------------------------------------------------------------------
static bool is_reduced_vector(const tn_kernel_program_t* p) {
  return p->vector_loop >= p->parallel_count;
}

static int64_t element_size(const tn_kernel_operand_t* operand) {
  return operand->kind == TN_OPERAND_INDEX ? 1 : (int64_t)tn_dtype_size((tn_dtype_t)operand->dtype);
}

// Loops of |asked| in [begin, end) that have more than one turn.
static int real_loops(const tn_kernel_sizes_t* asked, int begin, int end, int* out_loops) {
  int count = 0;
  for (int l = begin; l < end; ++l)
    if (asked->dim[l] != 1) out_loops[count++] = l;
  return count;
}

static void place_loop(const tn_kernel_sizes_t* asked, int from, int to, tn_kernel_sizes_t* out) {
  out->dim[to] = asked->dim[from];
  for (int k = 0; k < out->program.operand_count; ++k)
    out->stride[k * out->program.loop_count + to] =
        asked->stride[k * asked->program.loop_count + from];
}

bool tn_kernel_family_fit(const tn_kernel_program_t* member, const tn_kernel_sizes_t* asked,
                          int64_t repeats, tn_kernel_sizes_t* out) {
  const tn_kernel_program_t* p = &asked->program;
  const int v = member->vector_loop;
  int parallel[TN_KERNEL_LOOPS], reduced[TN_KERNEL_LOOPS];
  int parallel_count = real_loops(asked, 0, p->parallel_count, parallel);
  int reduced_count = real_loops(asked, p->parallel_count, p->loop_count, reduced);
  out->program = *member;
  // The vector loop stays one if all operands go along it as |member| expects.
  int* vector_count = is_reduced_vector(member) ? &reduced_count : &parallel_count;
  const int* vector_loops = is_reduced_vector(member) ? reduced : parallel;
  bool is_vector = *vector_count > 0 && vector_loops[*vector_count - 1] == p->vector_loop;
  for (int k = 0; k < p->operand_count && is_vector; ++k)
    is_vector = p->operand[k].vector == member->operand[k].vector;
  if (is_vector) {
    --*vector_count;
  } else if (is_reduced_vector(member) && reduced_count > 0) {
    return false;  // the lanes of a sum are part of its meaning
  }
  const int outer_room = member->parallel_count - (is_reduced_vector(member) ? 0 : 1);
  const int reduced_room =
      member->loop_count - member->parallel_count - (is_reduced_vector(member) ? 1 : 0);
  if (parallel_count > outer_room || reduced_count > reduced_room) return false;
  if (!is_vector && !is_reduced_vector(member)) {
    int64_t points = repeats;
    for (int i = 0; i < parallel_count; ++i) points *= asked->dim[parallel[i]];
    if (points > SINGLE_POINTS) return false;
  }
  for (int l = 0; l < member->loop_count; ++l) {
    out->dim[l] = 1;
    for (int k = 0; k < member->operand_count; ++k) out->stride[k * member->loop_count + l] = 0;
  }
  for (int k = 0; k < member->operand_count; ++k)
    if (member->operand[k].vector != TN_OPERAND_SCALAR)
      out->stride[k * member->loop_count + v] = element_size(&member->operand[k]);
  if (is_vector) place_loop(asked, p->vector_loop, v, out);
  // Innermost first: the loops that are left over turn once, outside of all.
  for (int i = 0; i < parallel_count; ++i)
    place_loop(asked, parallel[i], outer_room - parallel_count + i, out);
  for (int i = 0; i < reduced_count; ++i)
    place_loop(asked, reduced[i], member->parallel_count + reduced_room - reduced_count + i, out);
  return true;
}

// ---- families in memory ----------------------------------------------------------------------------------------
typedef struct member {
  struct member* next;
  uint64_t family;
  tn_kernel_program_t program;
} member_t;

typedef struct family_mark {
  struct family_mark* next;
  uint64_t family;
} family_mark_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static member_t* members[BUCKETS];  // guarded by lock
static family_mark_t*
    scanned[BUCKETS];  // families whose files have been looked at; guarded by lock

size_t tn_kernel_program_pack_family(const tn_kernel_program_t* program, uint8_t* out_bytes) {
  tn_kernel_program_t common = *program;
  common.vector_loop =
      (uint8_t)(is_reduced_vector(program) + 2 * (program->loop_count > program->parallel_count));
  common.loop_count = common.parallel_count = 0;
  for (int k = 0; k < program->operand_count; ++k) common.operand[k].vector = 0;
  return tn_kernel_program_pack(&common, out_bytes);
}

static uint64_t family_of(const tn_kernel_program_t* program) {
  uint8_t bytes[TN_KERNEL_PACKED_MAX];
  return tn_hash_bytes(bytes, tn_kernel_program_pack_family(program, bytes), 0);
}

static bool same_program(const tn_kernel_program_t* a, const tn_kernel_program_t* b) {
  uint8_t x[TN_KERNEL_PACKED_MAX], y[TN_KERNEL_PACKED_MAX];
  const size_t size = tn_kernel_program_pack(a, x);
  return size == tn_kernel_program_pack(b, y) && memcmp(x, y, size) == 0;
}

static void add(uint64_t family, const tn_kernel_program_t* program) {
  pthread_mutex_lock(&lock);
  member_t** at = &members[family % BUCKETS];
  const member_t* old = *at;
  while (old && !(old->family == family && same_program(&old->program, program))) old = old->next;
  member_t* member =
      old ? NULL : malloc(sizeof *member);  // without memory there is one kernel more
  if (member) {
    *member = (member_t){.next = *at, .family = family, .program = *program};
    *at = member;
  }
  pthread_mutex_unlock(&lock);
}

void tn_kernel_family_add(const tn_kernel_program_t* program) { add(family_of(program), program); }

void tn_kernel_family_forget(void) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < BUCKETS; ++i) {
    for (member_t* m = members[i]; m;) {
      member_t* next = m->next;
      free(m);
      m = next;
    }
    for (family_mark_t* m = scanned[i]; m;) {
      family_mark_t* next = m->next;
      free(m);
      m = next;
    }
    members[i] = NULL;
    scanned[i] = NULL;
  }
  pthread_mutex_unlock(&lock);
}

static bool find_in_memory(uint64_t family, const tn_kernel_sizes_t* asked, int64_t repeats,
                           tn_kernel_sizes_t* out) {
  bool is_found = false;
  pthread_mutex_lock(&lock);
  for (const member_t* m = members[family % BUCKETS]; m && !is_found; m = m->next)
    is_found = m->family == family && tn_kernel_family_fit(&m->program, asked, repeats, out);
  pthread_mutex_unlock(&lock);
  return is_found;
}

// ---- families on disk ------------------------------------------------------------------------------------------
static bool begin_scan(uint64_t family) {
  pthread_mutex_lock(&lock);
  family_mark_t* mark = scanned[family % BUCKETS];
  while (mark && mark->family != family) mark = mark->next;
  family_mark_t* fresh = mark ? NULL : malloc(sizeof *fresh);
  if (fresh) {
    *fresh = (family_mark_t){scanned[family % BUCKETS], family};
    scanned[family % BUCKETS] = fresh;
  }
  pthread_mutex_unlock(&lock);
  return fresh != NULL;
}

static void add_file(void* context, const uint8_t* bytes, size_t size) {
  tn_kernel_program_t program;
  if (!tn_kernel_program_unpack(bytes, size, &program)) return;
  tn_status_t status = tn_kernel_program_verify(&program);
  const uint64_t family = *(const uint64_t*)context;
  if (!status && family_of(&program) == family) add(family, &program);
  tn_status_free(status);
}

bool tn_kernel_family_find(const tn_kernel_sizes_t* asked, int64_t repeats,
                           tn_kernel_sizes_t* out) {
  const uint64_t family = family_of(&asked->program);
  if (find_in_memory(family, asked, repeats, out)) return true;
  const tn_codegen_api_t* api;
  tn_status_t status = tn_codegen_plugin(&api);
  if (status) {
    tn_status_free(status);
    return false;
  }
  const tn_object_key_t key = tn_kernel_key(api->emitter(), &asked->program);
  if (tn_object_cache_has(&key) || !begin_scan(family)) return false;
  tn_object_cache_each_related(&key, add_file, (void*)(uintptr_t)&family);
  return find_in_memory(family, asked, repeats, out);
}
