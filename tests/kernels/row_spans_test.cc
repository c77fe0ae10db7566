// Tests that rows in pieces are found at their places, and pooled to the same bits as in one piece.
#include "kernels/row_spans.h"

#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <utility>

#include "common/job/spec/pooling.h"
#include "kernels/dense_ops.h"
#include "tests/kernels/cut_rows.h"
#include "tests/kernels/random_matrix.h"

namespace hdps {
namespace {

// Returns cuts from one piece up to the maximum, with the first and the last row alone, and empty
// pieces.
std::vector<std::vector<size_t>> Cuts(size_t rows) {
  return {{},
          {rows / 2 + 1},
          {1, rows - 1},
          {0, 7, 7, rows},
          {3, 4, 9, 9, rows - 5, rows},
          {1, 2, 3, 5, 8, 13, 21}};
}

std::vector<float> Numbered(size_t size) {
  std::vector<float> all(size);
  for (size_t i = 0; i < size; ++i) all[i] = static_cast<float>(i);
  return all;
}

TEST(RowSpans, EveryFloatIsFound) {
  constexpr size_t kRows = 40;
  constexpr uint32_t kDim = 3;
  const std::vector<float> all = Numbered(kRows * kDim);
  for (const std::vector<size_t>& cut : Cuts(kRows)) {
    CutRows rows(all, kDim, cut);
    const RowSpans<const float> pieces = rows.pieces();
    ASSERT_EQ(pieces.size(), all.size());
    ASSERT_LE(pieces.count(), cut.size() + 1);
    int calls = 0;
    pieces.WithAddresses([&](const auto& at) {
      ++calls;
      for (size_t r = 0; r < kRows; ++r) {
        for (uint32_t d = 0; d < kDim; ++d) ASSERT_EQ(at(r * kDim)[d], all[r * kDim + d]);
      }
    });
    EXPECT_EQ(calls, 1);
    for (size_t first = 0; first < kRows; ++first) {
      for (size_t count = 1; first + count <= kRows; ++count) {
        size_t parts = 0, seen = 0;
        pieces.ForEachPart(first * kDim, count * kDim,
                           [&](const float* memory, size_t from, size_t size) {
                             ++parts;
                             ASSERT_EQ(from, seen);
                             for (size_t i = 0; i < size; ++i) {
                               ASSERT_EQ(memory[i], all[first * kDim + seen++]);
                             }
                           });
        ASSERT_EQ(seen, count * kDim);
        const float* const side_by_side = pieces.InOnePiece(first * kDim, count * kDim);
        ASSERT_EQ(side_by_side != nullptr, parts == 1);
        ASSERT_TRUE(side_by_side == nullptr || *side_by_side == all[first * kDim]);
      }
    }
  }
  const RowSpans<const float> none(std::vector<float>{});
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.size(), 0u);
  EXPECT_EQ(none.InOnePiece(0, 0), nullptr);
}

TEST(RowSpans, ArePooledToTheSameBits) {
  constexpr size_t kBags = 150;
  constexpr uint32_t kRows = 75;
  for (const int threads : {1, 3}) {
    const std::unique_ptr<Executor> executor = NewTbbExecutor(threads);
    const std::unique_ptr<DenseOps> ops = NewCpuOps(*executor);
    for (const uint32_t dim : {1u, 5u, 8u, 16u, 32u, 80u}) {
      for (int flags = 0; flags < 16; ++flags) {
        const PoolSpec spec{(flags & 1) != 0 ? Pooling::kMean : Pooling::kSum,
                            (flags & 2) != 0 ? Combine::kSum : Combine::kConcat, dim};
        std::vector<TestBags> features;
        std::vector<Bags> bags;
        for (uint64_t f = 0; f < 3; ++f) {
          features.emplace_back(kBags, (flags & 8) != 0 ? 4 : 1, kRows, (flags & 4) != 0, f);
        }
        for (const TestBags& feature : features) bags.push_back(feature.bags());
        const size_t width = spec.combine == Combine::kConcat ? 3 * dim : dim;
        TestMatrix rows(*ops, kRows, dim, 7, 0), gradient(*ops, kBags, width, 9);
        std::unique_ptr<BagIndex> index;
        ops->LoadBags(bags, kRows, &index);
        std::vector<std::vector<float>> pooled, given[2];
        for (const std::vector<size_t>& cut : Cuts(kRows)) {
          CutRows in_pieces(rows.whole(), dim, cut);
          TestMatrix out(*ops, kBags, width, 8);
          ops->Pool(*index, spec, in_pieces.pieces(), out.device());
          pooled.push_back(out.Fetch());
          for (const Write write : {Write::kOver, Write::kAdd}) {
            CutRows gradients(rows.whole(), dim, cut);
            ops->PoolBackward(*index, spec, gradient.device(), write, gradients.pieces());
            given[write == Write::kAdd].push_back(gradients.Joined());
          }
        }
        for (size_t c = 1; c < pooled.size(); ++c) {
          ASSERT_EQ(pooled[c], pooled[0]) << "dim " << dim << " flags " << flags << " cut " << c;
          for (const auto& way : given) {
            ASSERT_EQ(way[c], way[0]) << "dim " << dim << " flags " << flags << " cut " << c;
          }
        }
        ASSERT_NE(given[0][0], given[1][0]);
      }
    }
  }
}

}  // namespace
}  // namespace hdps
