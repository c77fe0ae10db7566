// Brings a matrix of the step from one layout to another by messages between the ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "kernels/matrix.h"
#include "worker/collective/collective.h"
#include "worker/parallel/matrix_part.h"

namespace hdps {

// One exchange on the way from one layout to another.
struct LayoutHop {
  Layout from, to;
  ColumnShape from_columns, to_columns;  // The same number of columns; the units may differ.
};

// Source of one rectangle that a rank needs.
struct RankPiece {
  uint32_t source = 0;   // A rank that has it.
  uint32_t summand = 0;  // Number of the summand, or 0 if there is no sum.
  MatrixPart part;
};
// Returns the pieces that `rank` needs, sorted by summand; a piece that it holds comes from itself.
// Every rank computes the same result.
std::vector<RankPiece> PiecesOf(const LayoutHop& hop, uint32_t rank, const StepRows& rows);

// Moves a matrix along a fixed way of layouts. Belongs to one thread.
//
// Invariant: the result is a function of the layouts and of the ranks' matrices; sums are added in
// the order of the summands, beginning with a copy of the first.
class Redistribution {
 public:
  // Requires: at least two layouts; layouts between the first and the last have the first one's
  // columns.
  Redistribution(std::vector<Layout> way, const ColumnShape& from, const ColumnShape& to,
                 uint32_t rank);

  // Moves `from`, this rank's part under the first layout, to `to`, its part under the last; both
  // in host memory. All ranks of the group must call it.
  Status Run(Collective& group, const StepRows& rows, const Matrix& from, const Matrix& to);
  // Bytes sent by this rank so far.
  uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  // The messages of one hop for the rows of a step; kept while the rows stay the same.
  struct Plan {
    MatrixPart own_from, own_to;
    std::vector<RankPiece> pieces;  // Pieces that this rank needs.
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
  StepRows rows_;  // Rows for which the plans were made.
  std::vector<Plan> plans_;
  std::vector<std::vector<float>> between_;  // Parts after each hop except the last.
  std::vector<float> given_, taken_;         // Messages sent and received.
  uint64_t bytes_sent_ = 0;
};

}  // namespace hdps
