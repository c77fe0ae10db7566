// Rows of a table in one or a few pieces of memory, as servers sent them or as they will be sent.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

namespace hdps {

// With more pieces than this, finding a row costs more than copying the rows together.
inline constexpr size_t kRowSpansMax = 8;

// A view of a list of floats, [rows * dim], that is cut into pieces at row boundaries. Float is
// float or const float.
//
// Invariant: pieces are in the order of the list, and none is empty. Owns nothing.
template <typename Float>
class RowSpans {
 public:
  RowSpans() = default;
  template <std::convertible_to<std::span<Float>> List>
  RowSpans(List&& whole) {  // NOLINT: converts on purpose
    Append(whole);
  }
  template <std::same_as<std::remove_const_t<Float>> Other>
  RowSpans(const RowSpans<Other>& other) {  // NOLINT: likewise
    for (size_t p = 0; p < other.count(); ++p) Append(other.piece(p));
  }

  // Adds a piece at the end. Requires: fewer than kRowSpansMax pieces, unless it is empty.
  void Append(std::span<Float> piece) {
    if (piece.empty()) return;
    data_.at(count_) = piece.data();
    begin_[count_ + 1] = begin_[count_] + piece.size();
    ++count_;
  }

  size_t count() const { return count_; }         // Number of pieces.
  size_t size() const { return begin_[count_]; }  // Length of the list in floats.
  // Position in the list at which piece p begins.
  size_t begin(size_t p) const { return begin_[p]; }
  bool empty() const { return count_ == 0; }
  std::span<Float> piece(size_t p) const { return {data_[p], begin_[p + 1] - begin_[p]}; }

  // Returns the address of floats [first, first + size) of the list if they are in one piece; null
  // if not, or if size is 0.
  Float* InOnePiece(size_t first, size_t size) const {
    for (size_t p = 0; size > 0 && p < count_; ++p) {
      if (first < begin_[p + 1]) {
        return first + size <= begin_[p + 1] ? data_[p] + (first - begin_[p]) : nullptr;
      }
    }
    return nullptr;
  }
  // Calls run(memory, first, size) for each contiguous part of floats [first, first + size); the
  // `first` of a part is relative to the argument.
  template <typename Run>
  void ForEachPart(size_t first, size_t size, const Run& run) const {
    for (size_t p = 0; p < count_; ++p) {
      const size_t from = std::max(first, begin_[p]), to = std::min(first + size, begin_[p + 1]);
      if (from < to) run(data_[p] + (from - begin_[p]), from - first, to - from);
    }
  }
  // Calls body(at) once, where at(i) returns the address of float i of the list; the rest of its
  // row follows there. With one piece, body gets a simpler type of `at`, which does not search.
  template <typename Body>
  void WithAddresses(const Body& body) const {
    if (count_ <= 1) {
      Float* const data = data_[0];
      body([data](size_t i) { return data + i; });
    } else if (count_ == 2) {
      const size_t border = begin_[1];
      const std::uintptr_t first = Shifted(0), second = Shifted(1);
      body([=](size_t i) { return FloatAt(i < border ? first : second, i); });
    } else {
      std::array<std::uintptr_t, kRowSpansMax> shifted;
      for (size_t p = 0; p < kRowSpansMax; ++p) shifted[p] = Shifted(p);
      // Bisects without branches, because the next piece cannot be predicted.
      body([shifted, begin = begin_](size_t i) {
        size_t p = 0;
        for (size_t half = kRowSpansMax / 2; half > 0; half /= 2) {
          p += half * static_cast<size_t>(i >= begin[p + half]);
        }
        return FloatAt(shifted[p], i);
      });
    }
  }

 private:
  static constexpr std::array<size_t, kRowSpansMax + 1> BeforeAny() {
    std::array<size_t, kRowSpansMax + 1> begin;
    begin.fill(std::numeric_limits<size_t>::max());
    begin[0] = 0;
    return begin;
  }
  // Returns where the list would begin if all of it were contiguous with piece p.
  std::uintptr_t Shifted(size_t p) const {
    return reinterpret_cast<std::uintptr_t>(data_[p]) - begin_[p] * sizeof(Float);
  }
  static Float* FloatAt(std::uintptr_t shifted, size_t i) {
    return reinterpret_cast<Float*>(shifted + i * sizeof(Float));
  }

  size_t count_ = 0;
  std::array<Float*, kRowSpansMax> data_{};
  // Beyond the last piece: never reached.
  std::array<size_t, kRowSpansMax + 1> begin_ = BeforeAny();
};

}  // namespace hdps
