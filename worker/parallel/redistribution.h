// A matrix of the step brought from one layout to another, by messages between the ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "kernels/matrix.h"
#include "worker/collective/collective.h"
#include "worker/parallel/matrix_part.h"

namespace hdps {

// One exchange of a way: who gives which rectangle to whom.
struct LayoutHop {
  Layout from, to;
  ColumnShape from_columns, to_columns;  // As many; the units may differ.
};

// Where each rectangle that a rank needs comes from.
struct RankPiece {
  uint32_t source = 0;   // A rank that has it.
  uint32_t summand = 0;  // Its part of the sums; 0 where there are none.
  MatrixPart part;
};
// The pieces of `rank`, by summand; a rank that has a piece itself is its source. Every rank finds
// the same for each.
std::vector<RankPiece> PiecesOf(const LayoutHop& hop, uint32_t rank, const StepRows& rows);

// Belongs to one thread.
//
// Invariant: what a rank gets is a function of the layouts and of what all have; sums are added in
// the order of their parts, beginning with a copy of the first.
class Redistribution {
 public:
  // The way has at least two layouts; one between the first and the last is cut as the first.
  Redistribution(std::vector<Layout> way, const ColumnShape& from, const ColumnShape& to,
                 uint32_t rank);

  // `from` is this rank's part under the first layout, `to` becomes the one under the last; both in
  // host memory. All ranks of the group call it.
  Status Run(Collective& group, const StepRows& rows, const Matrix& from, const Matrix& to);
  // Bytes that have left this rank.
  uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  // What one hop does for the rows of a step; kept while they stay as they are.
  struct Plan {
    MatrixPart own_from, own_to;
    std::vector<RankPiece> pieces;  // Of this rank.
    struct Give {
      uint32_t to = 0;
      MatrixPart part;
    };
    std::vector<Give> gives;
  };

  void MakePlans(const StepRows& rows);
  Status RunHop(Collective& group, const Plan& plan, const Matrix& from, const Matrix& to);

  const uint32_t rank_;
  std::vector<LayoutHop> hops_;
  StepRows rows_;  // Of the plans.
  std::vector<Plan> plans_;
  std::vector<std::vector<float>> between_;  // Parts at the ends of all hops but the last.
  std::vector<float> given_, taken_;         // Messages.
  uint64_t bytes_sent_ = 0;
};

}  // namespace hdps
