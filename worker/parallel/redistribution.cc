// Exchanges rectangles: every rank knows what each rank holds and needs, so one exchange is enough.
#include "worker/parallel/redistribution.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace hdps {
namespace {

// Returns `part` of the whole matrix within `matrix`, which is its part `own`.
Matrix Within(const Matrix& matrix, const MatrixPart& own, const MatrixPart& part) {
  Matrix found = matrix;
  found.data +=
      (part.rows.begin - own.rows.begin) * matrix.stride + (part.columns.begin - own.columns.begin);
  found.rows = part.rows.size;
  found.cols = part.columns.size;
  return found;
}

void CopyRows(const Matrix& from, const Matrix& to) {
  for (size_t r = 0; r < from.rows; ++r) {
    std::memcpy(to.data + r * to.stride, from.data + r * from.stride, from.cols * sizeof(float));
  }
}

void AddRows(const Matrix& from, const Matrix& to) {
  for (size_t r = 0; r < from.rows; ++r) {
    const float* const source = from.data + r * from.stride;
    float* const sum = to.data + r * to.stride;
    for (size_t c = 0; c < from.cols; ++c) sum[c] += source[c];
  }
}

}  // namespace

std::vector<RankPiece> PiecesOf(const LayoutHop& hop, uint32_t rank, const StepRows& rows) {
  const MatrixPart needed = PartOf(hop.to, rank, rows, hop.to_columns);
  std::vector<RankPiece> pieces;
  for (uint32_t source = 0; source < hop.from.workers(); ++source) {
    const MatrixPart part = Common(needed, PartOf(hop.from, source, rows, hop.from_columns));
    if (part.size() == 0) continue;
    const RankPiece piece = {source, hop.from.PartOf(source, AxisRole::kSums), part};
    const auto same = std::ranges::find_if(pieces, [&](const RankPiece& other) {
      return other.summand == piece.summand && other.part == piece.part;
    });
    if (same == pieces.end()) {
      pieces.push_back(piece);
      continue;
    }
    // Among copies, a rank takes its own, else the one whose number is its own modulo the copies,
    // so that no rank serves all.
    const uint32_t copies = hop.from.parts(AxisRole::kCopies);
    const bool takes_turn = hop.from.PartOf(source, AxisRole::kCopies) == rank % copies;
    if (source == rank || (same->source != rank && takes_turn)) same->source = source;
  }
  std::ranges::stable_sort(pieces, {}, &RankPiece::summand);
  return pieces;
}

Redistribution::Redistribution(std::vector<Layout> way, const ColumnShape& from,
                               const ColumnShape& to, uint32_t rank)
    : rank_(rank), between_(way.size() - 2) {
  CHECK_GE(way.size(), 2u);
  CHECK_EQ(from.columns, to.columns);
  for (size_t i = 0; i + 1 < way.size(); ++i) {
    hops_.push_back({way[i], way[i + 1], from, i + 2 == way.size() ? to : from});
  }
}

void Redistribution::MakePlans(const StepRows& rows) {
  if (!plans_.empty() && rows == rows_) return;
  rows_ = rows;
  plans_.clear();
  for (const LayoutHop& hop : hops_) {
    Plan& plan = plans_.emplace_back();
    plan.own_from = PartOf(hop.from, rank_, rows, hop.from_columns);
    plan.own_to = PartOf(hop.to, rank_, rows, hop.to_columns);
    plan.pieces = PiecesOf(hop, rank_, rows);
    for (uint32_t other = 0; other < hop.to.workers(); ++other) {
      if (other == rank_) continue;
      for (const RankPiece& piece : PiecesOf(hop, other, rows)) {
        if (piece.source == rank_) plan.gives.push_back({other, piece.part});
      }
    }
  }
}

Status Redistribution::Run(Collective& group, const StepRows& rows, const Matrix& from,
                           const Matrix& to) {
  MakePlans(rows);
  Matrix source = from;
  for (size_t i = 0; i < plans_.size(); ++i) {
    Matrix target = to;
    if (i + 1 < plans_.size()) {
      const MatrixPart& own = plans_[i].own_to;
      between_[i].resize(own.size());
      target = {between_[i].data(), own.rows.size, own.columns.size, own.columns.size};
    }
    HDPS_RETURN_IF_ERROR(RunHop(group, plans_[i], source, target));
    source = target;
  }
  return Status();
}

Status Redistribution::RunHop(Collective& group, const Plan& plan, const Matrix& from,
                              const Matrix& to) {
  size_t given = 0, taken = 0;
  for (const Plan::Give& give : plan.gives) given += give.part.size();
  for (const RankPiece& piece : plan.pieces) {
    taken += piece.source == rank_ ? 0 : piece.part.size();
  }
  given_.resize(given);
  taken_.resize(taken);
  std::vector<RankBytes> sends, receives;
  float* at = given_.data();
  for (const Plan::Give& give : plan.gives) {
    const MatrixPart& part = give.part;
    CopyRows(Within(from, plan.own_from, part),
             {at, part.rows.size, part.columns.size, part.columns.size});
    sends.push_back({give.to, reinterpret_cast<std::byte*>(at), part.size() * sizeof(float)});
    bytes_sent_ += sends.back().size;
    at += part.size();
  }
  at = taken_.data();
  for (const RankPiece& piece : plan.pieces) {
    if (piece.source == rank_) continue;
    receives.push_back(
        {piece.source, reinterpret_cast<std::byte*>(at), piece.part.size() * sizeof(float)});
    at += piece.part.size();
  }
  if (!sends.empty() || !receives.empty()) HDPS_RETURN_IF_ERROR(group.Exchange(sends, receives));
  at = taken_.data();
  for (const RankPiece& piece : plan.pieces) {
    const MatrixPart& part = piece.part;
    Matrix source = Within(from, plan.own_from, part);
    if (piece.source != rank_) {
      source = {at, part.rows.size, part.columns.size, part.columns.size};
      at += part.size();
    }
    const Matrix target = Within(to, plan.own_to, part);
    if (piece.summand == 0) {
      CopyRows(source, target);
    } else {
      AddRows(source, target);
    }
  }
  return Status();
}

}  // namespace hdps
