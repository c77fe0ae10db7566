// Runs the reader's loop: read a batch, queue it.
#include "worker/step/batch_stream.h"

#include <utility>

#include "common/platform/memory_full.h"

namespace hdps {

BatchStream::BatchStream(std::unique_ptr<BatchReader> reader, uint32_t epoch, uint64_t skip_steps,
                         size_t ahead, MonotonicClock& clock)
    : reader_(std::move(reader)),
      clock_(clock),
      batches_(ahead),
      reading_(StartThread("reader", [=, this] { ReadAll(epoch, skip_steps); })) {}

BatchStream::~BatchStream() {
  Close();
  reading_->Join();
}

Result<std::optional<ReadBatch>> BatchStream::Next() {
  std::optional<Item> item = batches_.Pop();
  if (!item.has_value()) return std::optional<ReadBatch>();
  if (!item->status.ok()) return item->status;
  return std::optional<ReadBatch>(std::move(item->read));
}

void BatchStream::ReadAll(uint32_t epoch, uint64_t skip_steps) {
  const MemoryFor batches("batches of the data (train.batch_size, train.lookahead)");
  Status status = reader_->StartEpoch(epoch, skip_steps);
  while (status.ok()) {
    const int64_t begin_ns = clock_.NowNs();
    Result<std::optional<Batch>> batch = reader_->Next();
    status = batch.status();
    if (!status.ok() || !batch->has_value()) break;
    const int64_t end_ns = clock_.NowNs();
    ReadBatch read{**std::move(batch), reader_->bad_rows(), reader_->progress(), end_ns - begin_ns,
                   end_ns};
    if (!batches_.Push({{}, std::move(read)})) return;
  }
  if (!status.ok()) batches_.Push({std::move(status), {}});
  batches_.Close();
}

}  // namespace hdps
