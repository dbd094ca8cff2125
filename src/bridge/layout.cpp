// Strides of fresh results, as PyTorch's CPU would choose them.
#include <ATen/native/Resize.h>

#include "op.h"

namespace tn::bridge {
namespace {

void contiguous(int rank, const int64_t* sizes, int64_t* out) {
  int64_t next = 1;
  for (int i = rank - 1; i >= 0; --i) {
    out[i] = next;
    next *= sizes[i] > 1 ? sizes[i] : 1;
  }
}

void channels_last(int rank, const int64_t* sizes, int64_t* out) {
  int64_t next = 1;
  out[1] = next;
  next *= sizes[1] > 1 ? sizes[1] : 1;
  for (int i = rank - 1; i >= 0; --i) {
    if (i == 1) continue;
    out[i] = next;
    next *= sizes[i] > 1 ? sizes[i] : 1;
  }
}

bool same_sizes(const StrideOperand& operand, int rank, const int64_t* sizes) {
  return operand.rank == rank && std::equal(sizes, sizes + rank, operand.sizes);
}

bool is_contiguous(const StrideOperand& operand) {
  int64_t next = 1;
  for (int i = operand.rank - 1; i >= 0; --i) {
    if (operand.sizes[i] == 0) return true;
    if (operand.sizes[i] == 1) continue;
    if (operand.strides[i] != next) return false;
    next *= operand.sizes[i];
  }
  return true;
}

bool is_channels_last(const StrideOperand& operand) {
  if (operand.rank != 4 && operand.rank != 5) return false;
  const c10::IntArrayRef sizes(operand.sizes, operand.rank), strides(operand.strides, operand.rank);
  int64_t expected[5];
  channels_last(operand.rank, operand.sizes, expected);
  for (int i = 0; i < operand.rank; ++i)
    if (sizes[i] != 1 && strides[i] != expected[i]) return false;
  return true;
}

// 1 channels_last, 2 channels_last_3d, 0 contiguous, as Tensor::suggest_memory_format.
bool suggests_channels_last(const StrideOperand& operand) {
  const c10::IntArrayRef sizes(operand.sizes, operand.rank), strides(operand.strides, operand.rank);
  if (operand.rank == 4) return c10::is_channels_last_strides_2d(sizes, strides);
  if (operand.rank == 5) return c10::is_channels_last_strides_3d(sizes, strides);
  return false;
}

bool is_dense(const StrideOperand& operand) {
  int order[64];
  for (int i = 0; i < operand.rank; ++i) order[i] = i;
  std::sort(order, order + operand.rank, [&](int a, int b) {
    if (operand.sizes[a] < 2) return false;
    if (operand.sizes[b] < 2) return true;
    return operand.strides[a] < operand.strides[b];
  });
  int64_t next = 1;
  for (int i = 0; i < operand.rank; ++i) {
    const int dim = order[i];
    if (operand.sizes[dim] < 2) return true;
    if (operand.strides[dim] != next) return false;
    next *= operand.sizes[dim];
  }
  return true;
}

// TensorIterator: fast set-up, else the inputs' common order of dimensions.
void pointwise(const std::vector<StrideOperand>& operands, int rank, const int64_t* sizes,
               int64_t* out) {
  bool all_same = !operands.empty(), all_contiguous = true, all_last = true, all_dense = true;
  for (const StrideOperand& operand : operands) {
    all_same = all_same && same_sizes(operand, rank, sizes);
    if (!all_same) break;
    all_contiguous = all_contiguous && is_contiguous(operand);
    all_last = all_last && rank == 4 && is_channels_last(operand);
    all_dense = all_dense && is_dense(operand) &&
                std::equal(operand.strides, operand.strides + rank, operands[0].strides);
  }
  if (all_same) {
    if (all_contiguous) return contiguous(rank, sizes, out);
    if (all_last) return channels_last(rank, sizes, out);
    if (all_dense) {
      std::copy(operands[0].strides, operands[0].strides + rank, out);
      return;
    }
  }
  int order[64];  // fastest first
  for (int i = 0; i < rank; ++i) order[i] = rank - 1 - i;
  const auto stride_of = [&](const StrideOperand& operand, int dim) -> int64_t {
    const int own = dim - (rank - operand.rank);
    if (own < 0 || (operand.sizes[own] == 1 && sizes[dim] != 1)) return 0;
    return operand.strides[own];
  };
  const auto compare = [&](int a, int b) {
    for (const StrideOperand& operand : operands) {
      const int64_t sa = stride_of(operand, a), sb = stride_of(operand, b);
      if (sa == 0 || sb == 0) continue;  // a broadcast dimension has no say
      if (sa != sb) return sa < sb ? -1 : 1;
      if (sizes[a] > sizes[b]) return 1;
    }
    return 0;
  };
  for (int i = 1; i < rank; ++i) {
    int moved = i;
    for (int j = i - 1; j >= 0; --j) {
      const int comparison = compare(order[j], order[moved]);
      if (comparison > 0) {
        std::swap(order[j], order[moved]);
        moved = j;
      } else if (comparison < 0) {
        break;
      }
    }
  }
  bool is_trivial = true;
  for (int i = 0; i < rank; ++i) is_trivial = is_trivial && order[i] == rank - 1 - i;
  if (is_trivial) return contiguous(rank, sizes, out);
  int64_t next = 1;
  for (int i = 0; i < rank; ++i) {
    out[order[i]] = next;
    next *= sizes[order[i]];
  }
}

bool any_suggests(const std::vector<StrideOperand>& operands, size_t first, int rank) {
  for (size_t i = first; i < operands.size(); ++i)
    if (operands[i].rank == rank && suggests_channels_last(operands[i])) return true;
  return false;
}

bool all_suggest(const std::vector<StrideOperand>& operands, int rank) {
  for (const StrideOperand& operand : operands)
    if (operand.rank != rank || !suggests_channels_last(operand)) return false;
  return !operands.empty();
}

}  // namespace

// The iteration of x[i, :, j] is one over x, whose indexed dimensions are walked by the indices (stride 0), and over the
// indices.
void index_strides(const at::Tensor& self, c10::ArrayRef<c10::IValue> indices, int rank,
                   const int64_t* sizes, int64_t* out) {
  std::vector<int> indexed;
  int index_rank = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i].isTensor() || !indices[i].toTensor().defined()) continue;
    indexed.push_back(static_cast<int>(i));
    index_rank = std::max(index_rank, static_cast<int>(indices[i].toTensor().dim()));
  }
  const int count = static_cast<int>(indexed.size());
  if (count == 0 || self.dim() - count + index_rank != rank) return contiguous(rank, sizes, out);
  const bool is_adjacent = indexed.back() - indexed.front() + 1 == count;
  const int position = is_adjacent ? indexed.front() : 0;
  // One row of sizes and one of strides for x and for every index.
  std::vector<int64_t> memory(static_cast<size_t>(2 * rank) * (count + 1));
  std::vector<StrideOperand> operands;
  for (int i = 0; i <= count; ++i) {
    int64_t *own_sizes = memory.data() + static_cast<ptrdiff_t>(2 * rank) * i,
            *own_strides = own_sizes + rank;
    operands.push_back({own_sizes, own_strides, rank, TN_F32});
    std::fill(own_sizes, own_sizes + rank, 1);
    if (i == 0) {
      std::copy(sizes, sizes + rank, own_sizes);
      for (int d = 0, at = 0; d < static_cast<int>(self.dim()); ++d) {
        if (std::find(indexed.begin(), indexed.end(), d) != indexed.end()) continue;
        own_strides[at < position ? at : at + index_rank] = self.stride(d);
        ++at;
      }
      continue;
    }
    const at::Tensor& index = indices[indexed[i - 1]].toTensor();
    const int lead = position + index_rank - static_cast<int>(index.dim());
    for (int d = 0; d < index_rank; ++d) own_sizes[position + d] = sizes[position + d];
    for (int d = 0; d < static_cast<int>(index.dim()); ++d)
      if (index.size(d) != 1) own_strides[lead + d] = index.stride(d);
  }
  pointwise(operands, rank, sizes, out);
}

// As cat of the tensors with the new dimension.
void stack_strides(const std::vector<StrideOperand>& operands, int64_t dim, int rank,
                   const int64_t* sizes, int64_t* out) {
  if (rank != 4 && rank != 5) return contiguous(rank, sizes, out);
  const int at = static_cast<int>(dim < 0 ? dim + rank : dim);
  std::vector<std::array<int64_t, 10>> memory(operands.size());
  std::vector<StrideOperand> wide;
  for (size_t i = 0; i < operands.size(); ++i) {
    int64_t *own_sizes = memory[i].data(), *own_strides = own_sizes + 5;
    for (int d = 0; d < rank; ++d) {
      const int from = d > at ? d - 1 : d;
      const bool is_last = from == rank - 1;
      own_sizes[d] = d == at ? 1 : operands[i].sizes[from];
      own_strides[d] = d != at   ? operands[i].strides[from]
                       : is_last ? 1
                                 : operands[i].sizes[from] * operands[i].strides[from];
    }
    wide.push_back({own_sizes, own_strides, rank, operands[i].dtype});
  }
  return all_suggest(wide, rank) ? channels_last(rank, sizes, out) : contiguous(rank, sizes, out);
}

void layout_strides(tn_layout_rule_t rule, const std::vector<StrideOperand>& operands,
                    int memory_format, int rank, const int64_t* sizes, int64_t* out) {
  const auto preserve = static_cast<int>(c10::MemoryFormat::Preserve);
  if (memory_format >= 0 && memory_format != preserve) {
    const bool is_last =
        (memory_format == static_cast<int>(c10::MemoryFormat::ChannelsLast) && rank == 4) ||
        (memory_format == static_cast<int>(c10::MemoryFormat::ChannelsLast3d) && rank == 5);
    return is_last ? channels_last(rank, sizes, out) : contiguous(rank, sizes, out);
  }
  switch (rule) {
    case TN_LAYOUT_POINTWISE: return pointwise(operands, rank, sizes, out);
    case TN_LAYOUT_LIKE_FIRST:
      if (!operands.empty() && operands[0].rank == rank && suggests_channels_last(operands[0]))
        return channels_last(rank, sizes, out);
      return contiguous(rank, sizes, out);
    case TN_LAYOUT_LIKE_ALL:
      return all_suggest(operands, rank) ? channels_last(rank, sizes, out)
                                         : contiguous(rank, sizes, out);
    case TN_LAYOUT_CONV:
    case TN_LAYOUT_CONV_BACKWARD: {
      const bool is_kept = !operands.empty() && (rank == 4 || operands[0].dtype != TN_F64);
      return is_kept && any_suggests(operands, rule == TN_LAYOUT_CONV ? 0 : 1, rank)
                 ? channels_last(rank, sizes, out)
                 : contiguous(rank, sizes, out);
    }
    case TN_LAYOUT_PRESERVE:
      if (operands.empty()) return contiguous(rank, sizes, out);
      if (same_sizes(operands[0], rank, sizes) && is_dense(operands[0])) {
        std::copy(operands[0].strides, operands[0].strides + rank, out);
        return;
      }
      return pointwise({operands[0]}, rank, sizes, out);
    default: return contiguous(rank, sizes, out);
  }
}

}  // namespace tn::bridge
