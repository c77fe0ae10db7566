// Operations on rows of slabs in the host's memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/platform/executor.h"
#include "kernels/dense_ops.h"

namespace hdps {

struct RowUpdate;

// The functions of DenseOps with the same names, in blocks of rows on `executor`.
class CpuRowSlabs {
 public:
  explicit CpuRowSlabs(Executor& executor) : executor_(executor) {}

  void Load(std::span<const uint32_t> slots, std::unique_ptr<SlabSlots>* loaded);
  // Implements BringOutside and FetchOutside.
  void CopyOutside(const SlabSlots& slots, size_t dim, const float* from, float* to);
  void Gather(const SlabSlots& slots, const RowSlab& slab, float* rows);
  void Update(const RowUpdate& update, const SlabSlots& slots, const float* gradients,
              const RowSlab& slab, float* not_finite);
  void FindSquares(const RowUpdate& update, const SlabSlots& slots, const float* gradients,
                   const RowSlab& slab, std::span<double> squares, float* not_finite);
  void Scatter(Write write, const SlabSlots& slots, const float* rows, float scale,
               const RowSlab& slab);
  void UpdateFirst(const RowUpdate& update, size_t count, const float* gradients,
                   const RowSlab& slab);
  void ReadRows(const SlabSlots& slots, std::span<const SlabRows<float>> rows);
  void WriteRows(const SlabSlots& slots, std::span<const SlabRows<const float>> rows);

 private:
  bool UpdateSlots(const RowUpdate& update, std::span<const uint32_t> slots, const float* gradients,
                   const RowSlab& slab);

  Executor& executor_;
  std::vector<uint32_t> first_slots_;  // 0, 1, ...
};

}  // namespace hdps
