// Memory that cannot be had: who asked, for how much, and what a process may have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

namespace hdps {

// Names what this thread asks memory for, as long as the name lives: the message of MemoryFull
// begins with it. The innermost name counts. Costs two words of the thread's own memory.
class MemoryFor {
 public:
  // `what` is a literal, with the settings that scale it: "the shuffle window (data.shuffle_rows)".
  explicit MemoryFor(const char* what);
  ~MemoryFor();
  // The name that counts now; null: none. For a thread that works on for this one.
  static const char* Now();
  MemoryFor(const MemoryFor&) = delete;
  MemoryFor& operator=(const MemoryFor&) = delete;

 private:
  const char* const before_;
};

// The exception of an allocation that cannot be had. Nobody catches it to go on: it is the end of
// the process, with status 3 (EndWhereMemoryIsFull in common/process).
class MemoryFull : public std::bad_alloc {
 public:
  // `bytes` were asked for; 0: a library asked, and does not say for how many.
  explicit MemoryFull(uint64_t bytes) noexcept;
  // A bound other than the memory's was reached; `text` is kept as far as there is room.
  explicit MemoryFull(const char* text) noexcept;
  const char* what() const noexcept override { return text_; }

 private:
  char text_[480];  // Room of its own: it is made where memory is short.
};

// What this process can have no more of, with the limit to raise: memory for a thread, files,
// threads. Null: nothing. Takes no memory and no lock.
const char* WhatIsShort();

}  // namespace hdps
