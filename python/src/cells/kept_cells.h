// Keeps the memory of a table's cells: buffers of Python, and cells that were made here.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace hdps::python {

// Invariant: what was added stays where it is until this is destroyed. Any thread may destroy it.
class KeptCells {
 public:
  KeptCells() = default;
  ~KeptCells() {
    if (views_.empty()) return;
    const pybind11::gil_scoped_acquire lock;
    for (Py_buffer& view : views_) PyBuffer_Release(&view);
  }
  KeptCells(const KeptCells&) = delete;
  KeptCells& operator=(const KeptCells&) = delete;

  // Takes over a view of a buffer.
  void Add(const Py_buffer& view) { views_.push_back(view); }
  // Returns memory of at least `bytes`, zeroed and aligned for any number.
  void* New(size_t bytes) { return made_.emplace_back(bytes / sizeof(uint64_t) + 1).data(); }
  std::string* NewText() { return &texts_.emplace_back(); }

 private:
  std::vector<Py_buffer> views_;
  std::deque<std::vector<uint64_t>> made_;
  std::deque<std::string> texts_;
};

}  // namespace hdps::python
