// Mirrors src/base/hash.c.
#include "tests/c/test.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/os.h"

// Digests of the first n bytes of 0, 1, ..., 250, 0, 1, ... as the reference implementation gives them. The sizes are
// those around block (64), chunk (1024) and tree boundaries.
static const struct {
  size_t size;
  const char* digest;
} vectors[] = {
    {0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"},
    {1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"},
    {63, "e9bc37a594daad83be9470df7f7b3798297c3d834ce80ba85d6e207627b7db7b"},
    {64, "4eed7141ea4a5cd4b788606bd23f46e212af9cacebacdc7d1f4c6dc7f2511b98"},
    {65, "de1e5fa0be70df6d2be8fffd0e99ceaa8eb6e8c93a63f2d8d1c30ecb6b263dee"},
    {1023, "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11"},
    {1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"},
    {1025, "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444"},
    {2048, "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a"},
    {2049, "5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030"},
    {3072, "b98cb0ff3623be03326b373de6b9095218513e64f1ee2edd2525c7ad1e5cffd2"},
    {3073, "7124b49501012f81cc7f11ca069ec9226cecb8a2c850cfe644e327d22d3e1cd3"},
    {4096, "015094013f57a5277b59d8475c0501042c0b642e531b0a1c8f58d2163229e969"},
    {4097, "9b4052b38f1c5fc8b1f9ff7ac7b27cd242487b3d890d15c96a1c25b8aa0fb995"},
    {5120, "9cadc15fed8b5d854562b26a9536d9707cadeda9b143978f319ab34230535833"},
    {8192, "aae792484c8efe4f19e2ca7d371d8c467ffb10748d8a5a1ae579948f718a2a63"},
    {16384, "f875d6646de28985646f34ee13be9a576fd515f76b5b0a26bb324735041ddde4"},
    {31744, "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47"},
    {102400, "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085"},
};

static void fill(uint8_t* data, size_t size) {
  for (size_t i = 0; i < size; ++i) data[i] = (uint8_t)(i % 251);
}

TN_TEST(blake3_agrees_with_the_reference) {
  uint8_t* data = malloc(102400);
  fill(data, 102400);
  for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); ++i) {
    uint8_t digest[TN_BLAKE3_SIZE];
    char text[2 * TN_BLAKE3_SIZE + 1];
    tn_blake3(data, vectors[i].size, digest);
    tn_blake3_hex(digest, text);
    TN_EXPECT_STR(vectors[i].digest, text);
  }
  free(data);
}

TN_TEST(blake3_does_not_depend_on_the_pieces) {
  enum { SIZE = 9000 };
  uint8_t data[SIZE], whole[TN_BLAKE3_SIZE], pieces[TN_BLAKE3_SIZE];
  fill(data, SIZE);
  tn_blake3(data, SIZE, whole);
  for (size_t step = 1; step < 3000; step = step * 3 / 2 + 1) {
    tn_blake3_t state;
    tn_blake3_init(&state);
    for (size_t at = 0; at < SIZE; at += step)
      tn_blake3_update(&state, data + at, SIZE - at < step ? SIZE - at : step);
    tn_blake3_final(&state, pieces);
    TN_EXPECT(memcmp(whole, pieces, sizeof(whole)) == 0);
  }
}

TN_TEST(hash_reads_every_byte_and_no_other) {
  uint8_t data[200];
  for (size_t size = 0; size <= 130; ++size) {
    for (size_t i = 0; i < sizeof(data); ++i) data[i] = (uint8_t)(i * 37 + 11);
    uint8_t* start = data + size % 8;
    const uint64_t hash = tn_hash_bytes(start, size, 5);
    TN_EXPECT(hash != tn_hash_bytes(start, size, 6));
    TN_EXPECT(size == 0 || hash != tn_hash_bytes(start, size - 1, 5));
    start[size] ^= 1;
    TN_EXPECT(hash == tn_hash_bytes(start, size, 5));
    for (size_t i = 0; i < size; ++i) {
      start[i] ^= 4;
      TN_EXPECT(hash != tn_hash_bytes(start, size, 5));
      start[i] ^= 4;
    }
  }
}

TN_TEST(hash_spreads_similar_keys) {
  enum { KEYS = 20000, BUCKETS = 1 << 16 };
  static uint8_t seen[BUCKETS];
  for (int shift = 0; shift <= 48; shift += 16) {
    memset(seen, 0, sizeof(seen));
    int occupied = 0;
    for (uint64_t key = 0; key < KEYS; ++key) {
      const uint64_t words[3] = {3, key << 4, 7};
      uint8_t* bucket = &seen[tn_hash_bytes(words, sizeof(words), 0) >> shift & (BUCKETS - 1)];
      occupied += *bucket == 0;
      *bucket = 1;
    }
    // A random function fills 65536 * (1 - exp(-20000 / 65536)) = 17223 buckets, deviation below 50.
    TN_EXPECT(occupied > 16900 && occupied < 17550);
  }
}

TN_TEST(speed) {
  enum { SIZE = 1 << 20 };
  uint8_t* data = calloc(1, SIZE);
  uint8_t digest[TN_BLAKE3_SIZE];
  int64_t start = tn_os_now_ns();
  tn_blake3(data, SIZE, digest);
  const double blake3 = SIZE / (double)(tn_os_now_ns() - start);
  uint64_t hash = 0;
  start = tn_os_now_ns();
  for (int i = 0; i < 100; ++i) hash += tn_hash_bytes(data, SIZE, hash);
  const double fast = 100.0 * SIZE / (double)(tn_os_now_ns() - start);
  start = tn_os_now_ns();
  for (int i = 0; i < 100000; ++i) hash += tn_hash_bytes(data + (hash & 63), 100, hash);
  printf("blake3 %.2f GB/s, hash %.1f GB/s, 100 bytes %.1f ns (%d)\n", blake3, fast,
         (double)(tn_os_now_ns() - start) / 100000, (int)(hash & 1));
  free(data);
}
