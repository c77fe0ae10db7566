// The way from Python into the library: each function that works there holds an Entry meanwhile.
#pragma once

#include <pybind11/pybind11.h>

namespace hdps::python {

// Raises RunError in a process that was forked after the first call of this function: threads of
// the library, and locks that they held, are not in the child, so that it could wait forever.
// Requires: the interpreter's lock is held.
void RefuseFork();
// Is true in such a process.
bool Forked();

// Deletes an object that has threads, but not in a forked process, where it would wait for them.
template <typename T>
struct DeleteUnlessForked {
  void operator()(T* object) const {
    if (!Forked()) delete object;
  }
};

// Releases the interpreter's lock, so that other threads of Python run meanwhile.
//
// Invariant: while it lives, this thread touches no object of Python, but under a
// pybind11::gil_scoped_acquire.
class Entry {
 public:
  // Raises what RefuseFork() raises. Requires: the interpreter's lock is held.
  Entry() = default;

 private:
  struct NotForked {
    NotForked() { RefuseFork(); }
  };
  NotForked not_forked_;  // First, because it may raise.
  pybind11::gil_scoped_release released_;
};

// Returns what `work` returns, which it does in an Entry.
template <typename Work>
auto InLibrary(const Work& work) {
  const Entry entry;
  return work();
}

}  // namespace hdps::python
