// Rows of a table that lie in one piece of memory or in a few, as their servers sent them or are to
// get them.
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

// With more pieces than this, looking for a row costs more than bringing the rows together.
inline constexpr size_t kRowSpansMax = 8;

// A list of floats, [rows * dim], cut into pieces between rows. Float is float or const float.
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

  // Behind those that are there. Requires: room for it where it is not empty.
  void Append(std::span<Float> piece) {
    if (piece.empty()) return;
    data_.at(count_) = piece.data();
    begin_[count_ + 1] = begin_[count_] + piece.size();
    ++count_;
  }

  size_t count() const { return count_; }             // Of pieces.
  size_t size() const { return begin_[count_]; }      // Of the list, in floats.
  size_t begin(size_t p) const { return begin_[p]; }  // The list's float that piece p begins with.
  bool empty() const { return count_ == 0; }
  std::span<Float> piece(size_t p) const { return {data_[p], begin_[p + 1] - begin_[p]}; }

  // Where floats [first, first + size) of the list lie side by side; null where they do not, and
  // where there is none.
  Float* InOnePiece(size_t first, size_t size) const {
    for (size_t p = 0; size > 0 && p < count_; ++p) {
      if (first < begin_[p + 1]) {
        return first + size <= begin_[p + 1] ? data_[p] + (first - begin_[p]) : nullptr;
      }
    }
    return nullptr;
  }
  // run(memory, first, size) for the parts of floats [first, first + size) that lie side by side;
  // `first` of a part counts from that of all.
  template <typename Run>
  void ForEachPart(size_t first, size_t size, const Run& run) const {
    for (size_t p = 0; p < count_; ++p) {
      const size_t from = std::max(first, begin_[p]), to = std::min(first + size, begin_[p + 1]);
      if (from < to) run(data_[p] + (from - begin_[p]), from - first, to - from);
    }
  }
  // body(at), once, where at(i) is the address of float i of the list, of a row's first at least:
  // a function of its own for one piece, which looks for nothing.
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
      // Halves without branches: which piece comes next cannot be foreseen.
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
  // Where the list would begin if it were whole around piece p.
  std::uintptr_t Shifted(size_t p) const {
    return reinterpret_cast<std::uintptr_t>(data_[p]) - begin_[p] * sizeof(Float);
  }
  static Float* FloatAt(std::uintptr_t shifted, size_t i) {
    return reinterpret_cast<Float*>(shifted + i * sizeof(Float));
  }

  size_t count_ = 0;
  std::array<Float*, kRowSpansMax> data_{};
  std::array<size_t, kRowSpansMax + 1> begin_ = BeforeAny();  // Behind the last one: no float's.
};

}  // namespace hdps
