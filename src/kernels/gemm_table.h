// Functions of the matrix product that are compiled per instruction set (isa/gemm_kernel.c), and their arguments.
//
// A block is rows x columns of the result over at most TN_GEMM_BLOCK of k. Its rows are cut into tiles of nearly
// equal height <= TN_GEMM_TILE_ROWS, its columns into panels of |panel| columns. All arithmetic is f32 (F32, F16 and
// BF16 operands) or f64: the element type T of packed operands and sums.
#ifndef TN_KERNELS_GEMM_TABLE_H_
#define TN_KERNELS_GEMM_TABLE_H_

#include <stdbool.h>
#include <stdint.h>

#include "kernels/gemm.h"
#include "kernels/isa.h"

enum {
  TN_GEMM_TILE_ROWS = 6,
  TN_GEMM_PACK_SLACK = 8,
  TN_GEMM_PANEL_MAX = 128,  // columns of the widest panel (generic..avx512), a bound for buffers
};

// How |rows| are cut into tiles: |count| tiles, the first |extra| of height |base| + 1, the others of height |base|.
typedef struct tn_gemm_tiles {
  int64_t count, base, extra;
} tn_gemm_tiles_t;
static inline tn_gemm_tiles_t tn_gemm_tiles(int64_t rows) {
  tn_gemm_tiles_t tiles;
  tiles.count = (rows + TN_GEMM_TILE_ROWS - 1) / TN_GEMM_TILE_ROWS;
  tiles.base = tiles.count ? rows / tiles.count : 0;
  tiles.extra = tiles.count ? rows % tiles.count : 0;
  return tiles;
}
static inline int64_t tn_gemm_tile_start(tn_gemm_tiles_t tiles, int64_t index) {
  return index * tiles.base + (index < tiles.extra ? index : tiles.extra);
}

// What happens to a finished sum. Pointers are at the block's first element.
typedef struct tn_gemm_finish {
  tn_dtype_t dtype;  // of out, addend, bias, row_bias
  tn_activation_t activation;
  bool row_bias_first;  // the product was transposed: keeps the order of the two additions
  float alpha, beta;
  void* out;
  int64_t out_row, out_col;
  const void* addend;
  int64_t addend_row, addend_col;
  const void* bias;
  int64_t bias_stride;
  const void* row_bias;
  int64_t row_bias_stride;
} tn_gemm_finish_t;

typedef struct tn_gemm_block {
  int64_t rows, cols, depth;
  // A, as T. Element (i, k) of tile t is a[tile_start(t) * a_tile + i * a_row + k * a_col], where one of a_row and
  // a_col is 1; packed: a_row = 1, a_tile = depth and a_col is the height of the tile (given as 0 here).
  const void* a;
  int64_t a_tile, a_row, a_col;
  // B, as T. Element (k, j) of panel p is b[p * b_panel + k * b_row + j]. Packed: b_row = panel.
  const void* b;
  int64_t b_panel, b_row;
  int panel;
  bool b_is_padded;  // the last panel may be read to its full width
  // Where sums accumulate, as T with column stride 1; NULL: nowhere (then |finish| is set and depth is all of k).
  void* sum;
  int64_t sum_row;
  bool accumulate;  // add to |sum| (else overwrite)
  const tn_gemm_finish_t*
      finish;            // set when this is the last block of k; may write over |sum| itself
  bool finish_is_plain;  // out is |sum| and there is nothing to do but the sum
} tn_gemm_block_t;

// One row: sum[j] = sum over k of a[k * a_col] * b[k * b_row + j * b_col], B read where it lies.
// |depth| may be any; blocks of TN_GEMM_BLOCK are summed as gemm.h says.
typedef struct tn_gemv {
  int64_t cols, depth;
  const void* a;
  int64_t a_col;
  const void* b;
  int64_t b_row, b_col;
  void* sum;  // T
} tn_gemv_t;

typedef struct tn_gemm_table {
  int lanes_f32, lanes_f64;
  uint8_t panel_vectors[TN_GEMM_TILE_ROWS + 1];  // vectors per panel for the tallest tile's height
  // out[(p * depth + k) * panel + j]: b[k, p * panel + j], columns past |cols| are 0. |dtype| F32 F16 BF16 F64.
  void (*pack_b)(tn_dtype_t dtype, const void* b, int64_t b_row, int64_t b_col, int64_t depth,
                 int64_t cols, int panel, void* out);
  // out[tile_start(t) * depth + k * height(t) + i]; up to TN_GEMM_PACK_SLACK elements behind the last are overwritten.
  void (*pack_a)(tn_dtype_t dtype, const void* a, int64_t a_row, int64_t a_col, int64_t rows,
                 int64_t depth, void* out);
  void (*gemv)(tn_dtype_t dtype, const tn_gemv_t* gemv);
  void (*block_f32)(const tn_gemm_block_t* block);
  void (*block_f64)(const tn_gemm_block_t* block);
  // Applies |finish| to sums [rows, cols] that lie elsewhere.
  void (*finish_f32)(const tn_gemm_finish_t* finish, const float* sum, int64_t sum_row,
                     int64_t rows, int64_t cols);
  void (*finish_f64)(const tn_gemm_finish_t* finish, const double* sum, int64_t sum_row,
                     int64_t rows, int64_t cols);
} tn_gemm_table_t;

#endif  // TN_KERNELS_GEMM_TABLE_H_
