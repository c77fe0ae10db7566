// Reads the batches of an epoch ahead of their use, on a thread of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "common/base/bounded_queue.h"
#include "common/base/status.h"
#include "common/platform/executor.h"
#include "common/platform/monotonic_clock.h"
#include "worker/data/batch_reader.h"

namespace hdps {

// A batch as it was read, and what its reader said then.
struct ReadBatch {
  Batch batch;
  uint64_t bad_rows = 0;                 // The reader's count so far.
  double progress = 0;                   // The reader's progress: share of the epoch's bytes, 0..1.
  int64_t read_ns = 0, read_end_ns = 0;  // How long it was read, and when that had been done.
};

// Gives the batches of one epoch in order.
//
// Invariant: at most `ahead` batches wait, and one is being read.
class BatchStream {
 public:
  // Begins `epoch` after its first `skip_steps` steps. `clock`, and what the reader needs, outlive
  // the stream.
  BatchStream(std::unique_ptr<BatchReader> reader, uint32_t epoch, uint64_t skip_steps,
              size_t ahead, MonotonicClock& clock);
  ~BatchStream();  // Waits for the batch that is being read.

  // Returns the next batch, which may be empty in a ragged last step; none at the end of the epoch.
  // After an error or the end there is no next.
  Result<std::optional<ReadBatch>> Next();
  // Ends the reading; Next() still returns the batches that wait. Any thread may call it.
  void Close() {
    batches_.Close();
    reader_->Stop();
  }

 private:
  struct Item {
    Status status;
    ReadBatch read;
  };
  void ReadAll(uint32_t epoch, uint64_t skip_steps);

  const std::unique_ptr<BatchReader> reader_;  // Used by the thread only.
  MonotonicClock& clock_;
  BoundedQueue<Item> batches_;
  const std::unique_ptr<Thread> reading_;  // Last: it starts when all else is there.
};

}  // namespace hdps
