// Ends of a process for lack of memory: what needed it, how much, and the limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

namespace hdps {

// Names the purpose of this thread's allocations while the object lives; MemoryFull messages begin
// with it. The innermost name counts. Costs two words of thread-local memory.
class MemoryFor {
 public:
  // `what` is a literal that names the settings which scale it: "the shuffle window
  // (data.shuffle_rows)".
  explicit MemoryFor(const char* what);
  ~MemoryFor();
  // Returns the current name, or null. For a thread that continues this thread's work.
  static const char* Now();
  MemoryFor(const MemoryFor&) = delete;
  MemoryFor& operator=(const MemoryFor&) = delete;

 private:
  const char* const before_;
};

// The exception of a failed allocation. Nothing catches it to continue: it ends the process with
// status 3 (EndWhereMemoryIsFull in common/process).
class MemoryFull : public std::bad_alloc {
 public:
  // `bytes` were asked for; 0 if a library does not say how many.
  explicit MemoryFull(uint64_t bytes) noexcept;
  // For a limit other than that of memory. `text` is cut to fit.
  explicit MemoryFull(const char* text) noexcept;
  const char* what() const noexcept override { return text_; }

 private:
  char text_[480];  // A buffer inside the object, because memory is short when it is made.
};

// Returns what this process has run out of and the limit to raise: memory for a thread, files,
// threads. Returns null if nothing is exhausted. Takes no memory and no lock.
const char* WhatIsShort();

}  // namespace hdps
