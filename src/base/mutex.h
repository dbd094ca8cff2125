// A mutex of one word: an uncontended lock and unlock are one atomic instruction each, without a call. For short
// sections on hot paths; elsewhere pthread_mutex_t is as good. Zero-initialised is unlocked.
#ifndef TN_BASE_MUTEX_H_
#define TN_BASE_MUTEX_H_

#include "base/os.h"

typedef struct tn_mutex {
  _Atomic uint32_t state;  // 0 free, 1 held, 2 held and somebody may sleep
} tn_mutex_t;

__attribute__((noinline, cold, unused)) static void tn_mutex_lock_slow(tn_mutex_t* mutex) {
  for (int i = 0; i < 100; ++i) {
    uint32_t expected = 0;
    if (atomic_load_explicit(&mutex->state, memory_order_relaxed) == 0 &&
        atomic_compare_exchange_weak_explicit(&mutex->state, &expected, 1, memory_order_acquire,
                                              memory_order_relaxed))
      return;
    tn_os_pause();
  }
  while (atomic_exchange_explicit(&mutex->state, 2, memory_order_acquire) != 0)
    tn_os_futex_wait(&mutex->state, 2, -1);
}

static inline void tn_mutex_lock(tn_mutex_t* mutex) {
  uint32_t expected = 0;
  if (__builtin_expect(!atomic_compare_exchange_strong_explicit(
                           &mutex->state, &expected, 1, memory_order_acquire, memory_order_relaxed),
                       0))
    tn_mutex_lock_slow(mutex);
}

static inline void tn_mutex_unlock(tn_mutex_t* mutex) {
  if (__builtin_expect(atomic_exchange_explicit(&mutex->state, 0, memory_order_release) == 2, 0))
    tn_os_futex_wake(&mutex->state, 1);
}

#endif  // TN_BASE_MUTEX_H_
