// Makes random matrices for tests of dense operations.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/platform/random.h"
#include "kernels/dense_ops.h"

namespace hdps {

// A matrix on the device of `ops` and its copy on the host. Its stride is wider than its columns,
// so that an operation that ignores the stride is noticed.
class TestMatrix {
 public:
  TestMatrix(DenseOps& ops, size_t rows, size_t cols, uint64_t seed, size_t gap = 3)
      : ops_(ops), rows_(rows), cols_(cols), stride_(cols + gap), device_(&ops) {
    Random random(seed);
    host_.resize(rows * stride_ + 1);
    for (float& x : host_) x = static_cast<float>(2.0 * random.Unit() - 1.0);
    ops.Upload(host_, device_.Reserve(host_.size()));
  }
  Matrix device() const { return {device_.data(), rows_, cols_, stride_}; }
  // Returns the elements on the device. Requires: the matrix has no gaps.
  std::span<float> whole() const { return {device_.data(), rows_ * cols_}; }
  // Returns the host's copy, as it was uploaded; the oracle computes on it.
  Matrix host() { return {host_.data(), rows_, cols_, stride_}; }
  std::vector<float>& values() { return host_; }
  std::vector<float> Fetch() const {
    std::vector<float> values(host_.size());
    ops_.Download(device_.data(), values);
    return values;
  }

 private:
  DenseOps& ops_;
  size_t rows_, cols_, stride_;
  DeviceArray device_;
  std::vector<float> host_;
};

// The absolute values of another matrix: their products bound the rounding errors of its products.
class Sizes {
 public:
  explicit Sizes(TestMatrix& of) : values_(of.values()), view_(of.host()) {
    for (float& x : values_) x = std::fabs(x);
    view_.data = values_.data();
  }
  Sizes(const Sizes&) = delete;
  Sizes& operator=(const Sizes&) = delete;
  Matrix view() const { return view_; }

 private:
  std::vector<float> values_;
  Matrix view_;
};

// Random bags of keys over `num_rows` rows: up to `keys_max` keys a bag, some empty.
struct TestBags {
  std::vector<uint32_t> offsets, row_index;
  std::vector<float> weights;

  TestBags(size_t num_bags, uint32_t keys_max, uint32_t num_rows, bool weighted, uint64_t seed) {
    Random random(seed);
    offsets.push_back(0);
    for (size_t b = 0; b < num_bags; ++b) {
      const uint64_t keys = random.Below(keys_max + 1);
      for (uint64_t k = 0; k < keys; ++k) {
        // Skewed: low rows are in many bags.
        row_index.push_back(static_cast<uint32_t>(random.Below(random.Below(num_rows) + 1)));
        if (weighted) weights.push_back(static_cast<float>(2.0 * random.Unit() - 1.0));
      }
      offsets.push_back(static_cast<uint32_t>(row_index.size()));
    }
  }
  Bags bags() const { return {offsets, row_index, weights}; }
};

}  // namespace hdps
