// Kernels by program: memory, then disk, then the code generator.
//
// The table in memory is read without a lock: a growing array of pointers to entries that are never freed. A missing
// key is inserted as a pending entry by one thread, which produces the code without holding a lock; the others wait
// on the entry. Failures stay in memory, so a program that cannot be generated is tried once a process.
#include "codegen/kernel_cache.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/options.h"
#include "base/os.h"
#include "codegen/isa.h"
#include "codegen/kernel_family.h"
#include "codegen/kernel_program_internal.h"
#include "codegen/loader.h"
#include "codegen/object_cache.h"
#include "codegen/plugin.h"

enum { PENDING, READY, FAILED };

typedef struct tn_kernel_entry {
  uint64_t hash;
  _Atomic uint32_t state;  // release store pairs with the acquire load of a lookup
  _Atomic int32_t owner;   // process that produces it: a fork loses the producing thread
  tn_kernel_fn_t kernel;   // READY
  size_t code_size;        // READY
  int64_t produce_ns;      // READY: to generate it, or to read it from disk
  _Atomic int64_t uses;    // lookups
  tn_code_t code;          // FAILED
  char message[TN_CODEGEN_ERROR_SIZE];
  size_t size;
  uint8_t bytes[];  // canonical program
} tn_kernel_entry_t;

typedef struct tn_kernel_table {
  size_t mask;
  struct tn_kernel_table* previous;  // readers may still be in it; freed never, half the size each
  _Atomic(tn_kernel_entry_t*) slots[];
} tn_kernel_table_t;

static _Atomic(tn_kernel_table_t*) table;  // release store in grow
static size_t entry_count;                 // guarded by table_lock
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
  _Atomic int64_t memory_hits, disk_hits, generated, failures, bad_entries, generate_ns, load_ns,
      entries, code_bytes;
} stats;
#define COUNT(field, amount) \
  atomic_fetch_add_explicit(&stats.field, (int64_t)(amount), memory_order_relaxed)

// ---- sessions of the code generator: one per concurrent caller, kept ------------------------------------------
enum { SESSIONS = 32 };
static tn_codegen_session_t* sessions[SESSIONS];  // idle ones, guarded by session_lock
static int session_count;
static pthread_mutex_t session_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_all(void) {
  pthread_mutex_lock(&table_lock);
  pthread_mutex_lock(&session_lock);
}
static void unlock_all(void) {
  pthread_mutex_unlock(&session_lock);
  pthread_mutex_unlock(&table_lock);
}
static void watch_forks(void) { pthread_atfork(lock_all, unlock_all, unlock_all); }

static tn_status_t take_session(const tn_codegen_api_t* api, tn_codegen_session_t** out_session) {
  pthread_mutex_lock(&session_lock);
  *out_session = session_count > 0 ? sessions[--session_count] : NULL;
  pthread_mutex_unlock(&session_lock);
  if (*out_session) return TN_OK;
  char error[TN_CODEGEN_ERROR_SIZE] = "";
  const int code = api->session_create(tn_codegen_isa(), out_session, error);
  return code ? TN_ERROR((tn_code_t)code, "%s", error) : TN_OK;
}
static void give_session(const tn_codegen_api_t* api, tn_codegen_session_t* session) {
  pthread_mutex_lock(&session_lock);
  const bool keep = session_count < SESSIONS;
  if (keep) sessions[session_count++] = session;
  pthread_mutex_unlock(&session_lock);
  if (!keep) api->session_destroy(session);
}

// ---- table ---------------------------------------------------------------------------------------------------
static tn_kernel_entry_t* find(const tn_kernel_table_t* t, uint64_t hash, const uint8_t* bytes,
                               size_t size) {
  if (!t) return NULL;
  for (size_t i = hash & t->mask;; i = (i + 1) & t->mask) {
    tn_kernel_entry_t* entry = atomic_load_explicit(&t->slots[i], memory_order_acquire);
    if (!entry) return NULL;
    if (entry->hash == hash && entry->size == size && memcmp(entry->bytes, bytes, size) == 0)
      return entry;
  }
}

static void put(tn_kernel_table_t* t, tn_kernel_entry_t* entry) {
  size_t i = entry->hash & t->mask;
  while (atomic_load_explicit(&t->slots[i], memory_order_relaxed)) i = (i + 1) & t->mask;
  atomic_store_explicit(&t->slots[i], entry, memory_order_release);
}

static tn_kernel_table_t* new_table(size_t capacity, tn_kernel_table_t* previous) {
  tn_kernel_table_t* t = calloc(1, sizeof *t + capacity * sizeof t->slots[0]);
  if (!t) return NULL;
  t->mask = capacity - 1;
  t->previous = previous;
  return t;
}

// Room for one more entry. Called with table_lock held.
static tn_kernel_table_t* grow(void) {
  tn_kernel_table_t* old = atomic_load_explicit(&table, memory_order_relaxed);
  if (old && entry_count * 2 < old->mask) return old;
  tn_kernel_table_t* t = new_table(old ? 2 * (old->mask + 1) : 256, old);
  if (!t) return NULL;
  for (size_t i = 0; old && i <= old->mask; ++i) {
    tn_kernel_entry_t* entry = atomic_load_explicit(&old->slots[i], memory_order_relaxed);
    if (entry) put(t, entry);
  }
  atomic_store_explicit(&table, t, memory_order_release);
  return t;
}

// The entry of the key; *out_is_mine if this thread must produce it. NULL without memory.
static tn_kernel_entry_t* find_or_insert(uint64_t hash, const uint8_t* bytes, size_t size,
                                         bool* out_is_mine) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch_forks);
  *out_is_mine = false;
  pthread_mutex_lock(&table_lock);
  tn_kernel_entry_t* entry =
      find(atomic_load_explicit(&table, memory_order_relaxed), hash, bytes, size);
  if (!entry) {
    tn_kernel_table_t* t = grow();
    entry = t ? calloc(1, sizeof *entry + size) : NULL;
    if (entry) {
      entry->hash = hash;
      entry->size = size;
      memcpy(entry->bytes, bytes, size);
      atomic_store_explicit(&entry->owner, getpid(), memory_order_relaxed);
      put(t, entry);
      ++entry_count;
      COUNT(entries, 1);
      *out_is_mine = true;
    }
  }
  pthread_mutex_unlock(&table_lock);
  return entry;
}

// ---- production ------------------------------------------------------------------------------------------------
static void dump(const tn_codegen_api_t* api, tn_codegen_session_t* session,
                 const tn_kernel_program_t* program, uint64_t hash) {
  const char* folder = tn_option_string(TN_OPTION_TN_DUMP);
  if (!folder[0]) return;
  tn_status_free(tn_os_make_folders(folder));
  static const struct {
    tn_codegen_format_t format;
    const char* ending;
  } kinds[] = {{TN_CODEGEN_IR, "ll"}, {TN_CODEGEN_ASSEMBLY, "s"}};
  char path[1024], error[TN_CODEGEN_ERROR_SIZE];
  char* text = NULL;
  tn_status_free(tn_kernel_program_print(program, &text));
  snprintf(path, sizeof path, "%s/kernel-%016llx.txt", folder, (unsigned long long)hash);
  if (text) tn_status_free(tn_os_write_file(path, text, strlen(text)));
  free(text);
  for (int i = 0; i < 2; ++i) {
    void* data;
    size_t size;
    if (api->compile(session, program, kinds[i].format, &data, &size, error)) {
      tn_log(TN_LOG_WARNING, "kernel dump: %s", error);
      continue;
    }
    snprintf(path, sizeof path, "%s/kernel-%016llx.%s", folder, (unsigned long long)hash,
             kinds[i].ending);
    tn_status_free(tn_os_write_file(path, data, size));
    free(data);
  }
}

static tn_status_t generate(const tn_codegen_api_t* api, const tn_kernel_program_t* program,
                            uint64_t hash, void** out_object, size_t* out_size) {
  TN_TRY(tn_kernel_program_verify(program));
  tn_codegen_session_t* session;
  TN_TRY(take_session(api, &session));
  dump(api, session, program, hash);
  char error[TN_CODEGEN_ERROR_SIZE] = "";
  const int64_t start = tn_os_now_ns();
  const int code = api->compile(session, program, TN_CODEGEN_OBJECT, out_object, out_size, error);
  COUNT(generate_ns, tn_os_now_ns() - start);
  give_session(api, session);
  if (code) return TN_ERROR((tn_code_t)code, "%s", error[0] ? error : "code generator: no memory");
  COUNT(generated, 1);
  return TN_OK;
}

static tn_status_t load(const void* object, size_t size, tn_kernel_entry_t* entry) {
  void* function;
  const int64_t start = tn_os_now_ns();
  TN_TRY(tn_loader_load(object, size, &function, &entry->code_size));
  entry->kernel = (tn_kernel_fn_t)(uintptr_t)function;
  COUNT(code_bytes, entry->code_size);
  COUNT(load_ns, tn_os_now_ns() - start);
  return TN_OK;
}

tn_object_key_t tn_kernel_key(const char* emitter, const tn_kernel_program_t* program) {
  uint8_t family[TN_KERNEL_PACKED_MAX], bytes[TN_KERNEL_PACKED_MAX];
  const size_t family_size = tn_kernel_program_pack_family(program, family);
  return tn_object_key(emitter, tn_codegen_isa_name(tn_codegen_isa()), family, family_size, bytes,
                       tn_kernel_program_pack(program, bytes));
}

static tn_status_t produce(const tn_kernel_program_t* program, tn_kernel_entry_t* entry) {
  const tn_codegen_api_t* api;
  TN_TRY(tn_codegen_plugin(&api));
  const tn_object_key_t key = tn_kernel_key(api->emitter(), program);
  void* object = NULL;
  size_t size = 0;
  const tn_object_fault_t found =
      tn_object_cache_read(&key, entry->bytes, entry->size, &object, &size);
  if (found == TN_OBJECT_HIT) {
    tn_status_t status = load(object, size, entry);
    free(object);
    if (!status) {
      COUNT(disk_hits, 1);
      return TN_OK;
    }
    tn_log(TN_LOG_WARNING, "kernel cache: %s", tn_status_message(status));
    tn_status_free(status);
  }
  if (found == TN_OBJECT_BAD || found == TN_OBJECT_HIT) COUNT(bad_entries, 1);
  TN_TRY(generate(api, program, entry->hash, &object, &size));
  tn_status_t status = load(object, size, entry);
  if (!status) tn_object_cache_write(&key, entry->bytes, entry->size, object, size);
  free(object);
  return status;
}

static void fill(tn_kernel_entry_t* entry, const tn_kernel_program_t* program) {
  const int64_t start = tn_os_now_ns();
  tn_status_t status = produce(program, entry);
  entry->produce_ns = tn_os_now_ns() - start;
  if (status) {
    COUNT(failures, 1);
    entry->code = tn_status_code(status);
    snprintf(entry->message, sizeof entry->message, "%s", tn_status_message(status));
    tn_status_free(status);
  }
  atomic_store_explicit(&entry->state, entry->kernel ? READY : FAILED, memory_order_release);
  if (entry->kernel) tn_kernel_family_add(program);
  tn_os_futex_wake(&entry->state, INT_MAX);
}

static void wait_for(tn_kernel_entry_t* entry, const tn_kernel_program_t* program) {
  const int32_t self = getpid();
  while (atomic_load_explicit(&entry->state, memory_order_acquire) == PENDING) {
    int32_t owner = atomic_load_explicit(&entry->owner, memory_order_relaxed);
    if (owner != self && atomic_compare_exchange_strong(&entry->owner, &owner, self)) {
      fill(entry, program);
      return;
    }
    tn_os_futex_wait(&entry->state, PENDING, 100 * 1000 * 1000);
  }
}

bool tn_kernel_is_in_memory(const tn_kernel_program_t* program) {
  uint8_t bytes[TN_KERNEL_PACKED_MAX];
  const size_t size = tn_kernel_program_pack(program, bytes);
  return find(atomic_load_explicit(&table, memory_order_acquire), tn_hash_bytes(bytes, size, 0),
              bytes, size) != NULL;
}

tn_status_t tn_kernel_lookup(const tn_kernel_program_t* program, tn_kernel_fn_t* out_kernel) {
  uint8_t bytes[TN_KERNEL_PACKED_MAX];
  *out_kernel = NULL;
  if (program->phase_count > TN_KERNEL_PHASES || program->operand_count > TN_KERNEL_OPERANDS ||
      program->scalar_count > TN_KERNEL_SCALARS || program->inst_count > TN_KERNEL_INSTRUCTIONS)
    return tn_kernel_program_verify(program);
  const size_t size = tn_kernel_program_pack(program, bytes);
  const uint64_t hash = tn_hash_bytes(bytes, size, 0);
  tn_kernel_entry_t* entry =
      find(atomic_load_explicit(&table, memory_order_acquire), hash, bytes, size);
  if (entry && atomic_load_explicit(&entry->state, memory_order_acquire) == READY) {
    COUNT(memory_hits, 1);
    atomic_fetch_add_explicit(&entry->uses, 1, memory_order_relaxed);
    *out_kernel = entry->kernel;
    return TN_OK;
  }
  bool is_mine = false;
  if (!entry) entry = find_or_insert(hash, bytes, size, &is_mine);
  if (!entry) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "kernel cache: no memory for an entry");
  if (is_mine) {
    fill(entry, program);
  } else {
    wait_for(entry, program);
  }
  atomic_fetch_add_explicit(&entry->uses, 1, memory_order_relaxed);
  *out_kernel = entry->kernel;
  if (entry->kernel) return TN_OK;
  return TN_ERROR(entry->code, "%s", entry->message);
}

// ---- several -----------------------------------------------------------------------------------------------------
typedef struct tn_lookup_many {
  const tn_kernel_program_t* const* programs;
  tn_kernel_fn_t* kernels;
  _Atomic(tn_status_t) failure;
} tn_lookup_many_t;

static void lookup_range(void* context, int64_t begin, int64_t end, int worker) {
  tn_lookup_many_t* many = context;
  (void)worker;
  for (int64_t i = begin; i < end; ++i) {
    tn_status_t status = tn_kernel_lookup(many->programs[i], &many->kernels[i]), none = TN_OK;
    if (status && !atomic_compare_exchange_strong(&many->failure, &none, status))
      tn_status_free(status);
  }
}

tn_status_t tn_kernel_lookup_many(const tn_kernel_program_t* const* programs, int count,
                                  tn_kernel_fn_t* out_kernels, tn_pool_t* pool) {
  tn_lookup_many_t many = {.programs = programs, .kernels = out_kernels};
  if (count > 1) {
    tn_pool_run(pool, count, 1, lookup_range, &many);
  } else if (count == 1) {
    lookup_range(&many, 0, 1, 0);
  }
  return atomic_load(&many.failure);
}

void tn_kernel_cache_forget(void) {
  pthread_mutex_lock(&table_lock);
  // The old table stays, for readers may be in it.
  tn_kernel_table_t* t = new_table(256, atomic_load_explicit(&table, memory_order_relaxed));
  if (t) {
    atomic_store_explicit(&table, t, memory_order_release);
    entry_count = 0;
  }
  pthread_mutex_unlock(&table_lock);
  tn_kernel_family_forget();
  atomic_store(&stats.entries, 0);
}

tn_status_t tn_kernel_cache_clear(bool and_disk) {
  tn_kernel_cache_forget();
  int64_t deleted, remaining;
  return and_disk ? tn_object_cache_prune(0, &deleted, &remaining) : TN_OK;
}

void tn_kernel_cache_each(void (*visit)(void* context, const tn_kernel_info_t* info),
                          void* context) {
  // Entries are never freed, and a table that a reader is in stays as it is but for additions.
  const tn_kernel_table_t* t = atomic_load_explicit(&table, memory_order_acquire);
  for (size_t i = 0; t && i <= t->mask; ++i) {
    tn_kernel_entry_t* entry = atomic_load_explicit(&t->slots[i], memory_order_acquire);
    if (!entry || atomic_load_explicit(&entry->state, memory_order_acquire) != READY) continue;
    visit(context, &(tn_kernel_info_t){entry->hash, entry->code_size, entry->produce_ns,
                                       atomic_load_explicit(&entry->uses, memory_order_relaxed)});
  }
}

void tn_kernel_cache_stats(tn_kernel_cache_stats_t* out) {
#define READ(field) out->field = atomic_load_explicit(&stats.field, memory_order_relaxed);
  READ(memory_hits)
  READ(disk_hits)
  READ(generated)
  READ(failures) READ(bad_entries) READ(generate_ns) READ(load_ns) READ(entries) READ(code_bytes)
#undef READ
}

tn_status_t tn_codegen_open(void) {
  const tn_codegen_api_t* api;
  TN_TRY(tn_codegen_plugin(&api));
  tn_codegen_session_t* session;
  TN_TRY(take_session(api, &session));
  // The first program of a process costs three times the next ones: let it be an empty copy.
  tn_kernel_program_t warm = {
      .loop_count = 1, .parallel_count = 1, .phase_count = 1, .operand_count = 2, .inst_count = 2};
  warm.operand[0] = (tn_kernel_operand_t){TN_F32, TN_OPERAND_INPUT, TN_OPERAND_CONTIGUOUS, 0};
  warm.operand[1] = (tn_kernel_operand_t){TN_F32, TN_OPERAND_OUTPUT, TN_OPERAND_CONTIGUOUS, 0};
  warm.inst[0] = (tn_kernel_inst_t){.op = TN_KOP_LOAD, .dtype = TN_F32};
  warm.inst[1] = (tn_kernel_inst_t){.op = TN_KOP_STORE, .dtype = TN_F32, .index = 1};
  char error[TN_CODEGEN_ERROR_SIZE];
  void* data = NULL;
  size_t size;
  const int code = api->compile(session, &warm, TN_CODEGEN_OBJECT, &data, &size, error);
  free(data);
  give_session(api, session);
  return code ? TN_ERROR((tn_code_t)code, "%s", error) : TN_OK;
}
